"""The score of a query as one Qdrant formula over similarities: pure, with no call to a client.

A formula has arithmetic, `exp`, `ln`, `pow` and `abs`, but no branches and no names for intermediate results; a
logarithm of zero or an overflow in one point fails the whole query. How it is kept finite is told in `terms`. Constants
travel as float32, the database computes in float64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from pydantic import BaseModel
from qdrant_client import models

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.query import Query, leaves
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import edits_nothing, holistic_share, leaf_weights
from lcse_plugins.scoring.encoded import EncodedQuery
from qdrant_lcse.expressions import Expression, absolute, negative, plus, times
from qdrant_lcse.terms import Term, evidence_of, log_ratio, mean_term, truth_term

__all__ = ["ScoreFormula", "compile_formula"]

LARGEST_FORMULA = 20_000
"""Nodes of a formula. Parts are repeated where they are used twice, so deep OR in AND in OR grows fast."""

SMALL_TREE = 3
"""Leaves up to which every formula is far smaller: at most 4,551 nodes under any exponent tried."""

PENALTY = 1e30
"""What a unit of logit below the demanded truth costs: so much that even a rounding error costs more than any score."""

ROUNDING = 2.0**-20
"""How much float32 may change a truth, and a similarity, relative to the largest."""


@dataclass(frozen=True, eq=False)
class ScoreFormula:
    """The score as a formula.

    Attributes:
        query: the formula; `$score[i]` is the similarity to `vectors[i]`.
        vectors: (k, d) vectors whose similarities it needs.
        threshold: points that miss the demanded truth by more than rounding score below it, all others above; None when
            none is demanded.
    """

    query: models.FormulaQuery
    vectors: FloatArray
    threshold: float | None


def compile_formula(encoded: EncodedQuery, *, cosine: bool, min_truth: float | None = None) -> ScoreFormula:
    """The score of a query as a formula.

    Args:
        encoded: The query.
        cosine: Whether similarities come as cosines, whatever the length of the query vectors, or as dot products.
        min_truth: Push points of lower truth below `ScoreFormula.threshold`.

    Raises:
        InvalidOption: an exponent, β or the tree is so large that no formula can hold it.
    """
    vectors = encoded.matrix if holistic_share(encoded.scored_tree, encoded.config) else encoded.concept_vectors
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    query, threshold = _written(
        encoded.scored_tree,
        encoded.concepts,
        tuple(lengths.tolist()),
        encoded.calibration,
        encoded.config,
        cosine=cosine,
        min_truth=min_truth,
    )
    return ScoreFormula(query, vectors, threshold)


@lru_cache(maxsize=64)
def _written(
    tree: Query,
    concepts: tuple[str, ...],
    lengths: tuple[float, ...],
    calibration: Calibration,
    config: ScoringConfig,
    *,
    cosine: bool,
    min_truth: float | None,
) -> tuple[models.FormulaQuery, float | None]:
    """The formula and its threshold. They are the same for every text of a query, so that the last ones are kept."""
    share, unedited = holistic_share(tree, config), edits_nothing(tree, config)
    scales = lengths if cosine else (1.0,) * len(lengths)
    terms = {
        concept: evidence_of(scales[place], lengths[place], calibration, place=place)
        for place, concept in enumerate(concepts, start=int(share > 0.0))
    }
    truth = None if unedited and not min_truth else truth_term(tree, terms, config)
    holistic, reach = times(share * scales[0], "$score[0]"), 2.0
    if truth is None or unedited:
        score = holistic
    elif config.mode == "lcse":
        soft = mean_term([terms[concept] for concept in sorted(terms)])
        score = plus(holistic, times(1.0 / calibration.beta, log_ratio(truth, soft)))
        reach += (truth.reach + soft.reach) / calibration.beta
    else:
        said = _averaged(truth.logit, terms, leaf_weights(tree, config))
        logic = plus(times((1.0 - share) / calibration.beta, said), (1.0 - share) * calibration.mu)
        score = plus(holistic, logic) if share else logic
        largest = max(truth.reach, *(term.reach for term in terms.values()))
        reach += largest / calibration.beta + abs(calibration.mu)
    if not min_truth or truth is None:
        return _checked(score, tree), None
    lowered = min_truth * (1.0 - ROUNDING)
    demanded = math.log(lowered) - math.log1p(-lowered) - ROUNDING * max(term.reach for term in terms.values())
    excess = plus(truth.logit, -demanded)
    shortfall = plus(excess, negative(absolute(excess)))  # zero, exactly, where the truth suffices
    score = plus(score, times(PENALTY / 2.0, shortfall))
    return _checked(score, tree), -reach


def _averaged(truth: Expression, terms: Mapping[str, Term], weights: Mapping[str, float]) -> Expression:
    """The truth's logit, averaged with the weighted logits of concepts where they have a part in the score."""
    if not weights:
        return truth
    return times(0.5, plus(truth, *(times(weight, terms[text].logit) for text, weight in weights.items())))


def _checked(score: Expression, tree: Query) -> models.FormulaQuery:
    known: dict[int, int] = {}

    def size(node: Any) -> int:
        if id(node) not in known:
            known[id(node)] = 1 + sum(map(size, _parts(node)))
        return known[id(node)]

    if len(tuple(leaves(tree))) > SMALL_TREE and size(score) > LARGEST_FORMULA:
        raise InvalidOption(f"the formula of this query has {size(score)} nodes; use execution='client'")
    return models.FormulaQuery.model_construct(formula=score)


def _parts(node: Any) -> list[Any]:
    if isinstance(node, list):
        return node
    return list(vars(node).values()) if isinstance(node, BaseModel) else []
