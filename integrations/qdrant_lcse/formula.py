"""The score of a query as one Qdrant formula over similarities: pure, with no call to a client.

A formula has arithmetic, `exp`, `ln`, `pow` and `abs`, but no branches and no names for intermediate results; a
logarithm of zero or an overflow in one point fails the whole query. So evidence is carried as inverse odds
w = e^(-logit), where NOT and AND lose nothing, and everything is written so that it stays finite and precise for every
cosine in [-1, 1]: bounds of each part are known when the formula is written. Constants travel as float32, the database
computes in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from pydantic import BaseModel
from qdrant_client import models

from lcse_plugins.config import ScoringConfig
from lcse_plugins.edit import holistic_share, leaf_weights
from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.query import And, Concept, Not, Or, Plain, Query
from qdrant_lcse.expressions import (
    Expression,
    absolute,
    average,
    constant,
    exp,
    ln,
    negative,
    over,
    plus,
    power,
    times,
)

__all__ = ["ScoreFormula", "compile_formula"]

LARGEST_EXPONENT = 650.0
"""Natural logarithms of what may appear in a formula: float64 ends at 709."""

LARGEST_FORMULA = 20_000
"""Nodes of a formula. Parts are repeated where they are used twice, so deep OR in AND in OR grows fast."""

BLEND = 1e-7
"""Where a power mean of near-certain truths passes over to their plain mean, before 1 + w forgets w."""

PENALTY = 1e7
"""What a unit of logit below the demanded truth costs: far more than any score."""

CERTAIN = 17.0
"""Logit from which a truth is one in float32."""


@dataclass(frozen=True, eq=False)
class ScoreFormula:
    """The score as a formula.

    Attributes:
        query: the formula; `$score[i]` is the similarity to `vectors[i]`.
        vectors: (k, d) vectors whose similarities it needs.
        threshold: points that miss the demanded truth score below it, all others above; None when none is demanded.
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
    tree, config, calibration = encoded.scored_tree, encoded.config, encoded.calibration
    share = holistic_share(tree, config)
    vectors = encoded.matrix if share else encoded.concept_vectors
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    scales = [float(length) if cosine else 1.0 for length in lengths]
    leaves = {
        concept: _leaf(place, scales[place], float(lengths[place]), encoded)
        for place, concept in enumerate(encoded.concepts, start=int(share > 0.0))
    }
    truth = None if encoded.edits_nothing and not min_truth else _truth(tree, leaves, config)
    holistic, reach = times(share * scales[0], "$score[0]"), 2.0
    if truth is None or encoded.edits_nothing:
        score = holistic
    elif config.mode == "lcse":
        soft = _mean([leaves[concept] for concept in sorted(leaves)])
        score = plus(holistic, times(1.0 / calibration.beta, plus(truth.logit, negative(soft.logit))))
        reach += (truth.reach + soft.reach) / calibration.beta
    else:
        said = _averaged(truth.logit, leaves, leaf_weights(tree, config))
        logic = plus(times((1.0 - share) / calibration.beta, said), (1.0 - share) * calibration.mu)
        score = plus(holistic, logic) if share else logic
        largest = max(truth.reach, *(leaf.reach for leaf in leaves.values()))
        reach += largest / calibration.beta + abs(calibration.mu)
    if not min_truth or truth is None:
        return ScoreFormula(_checked(score), vectors, None)
    demanded = CERTAIN if min_truth >= 1.0 else min(CERTAIN, math.log(min_truth) - math.log1p(-min_truth))
    excess = plus(truth.logit, -demanded)
    shortfall = plus(excess, negative(absolute(excess)))  # zero, exactly, where the truth suffices
    score = plus(score, times(PENALTY / 2.0, shortfall))
    return ScoreFormula(_checked(score), vectors, -reach)


# --------------------------------------------------------------------------------------------- evidence and logic


@dataclass(frozen=True, eq=False)
class _Term:
    """A truth, as its logit or its inverse odds, and the range its logit cannot leave."""

    low: float
    high: float
    known_logit: Expression | None = None
    known_inverse: Expression | None = None

    @property
    def reach(self) -> float:
        return max(abs(self.low), abs(self.high))

    @property
    def logit(self) -> Expression:
        return self.known_logit if self.known_logit is not None else negative(ln(self.inverse))

    @property
    def inverse(self) -> Expression:
        """Inverse odds (1 - p) / p."""
        if self.known_inverse is not None:
            return self.known_inverse
        return _exp(negative(self.logit), self.reach)

    @property
    def odds(self) -> Expression:
        return _exp(self.logit, self.reach) if self.known_logit is not None else over(1.0, self.inverse)


def _leaf(place: int, scale: float, length: float, encoded: EncodedQuery) -> _Term:
    mu, beta = encoded.calibration.mu, encoded.calibration.beta
    reach = beta * (abs(mu) + 1.001 * length)
    return _Term(-reach, reach, known_logit=plus(times(beta * scale, f"$score[{place}]"), -beta * mu))


def _averaged(truth: Expression, leaves: dict[str, _Term], weights: dict[str, float]) -> Expression:
    """The truth's logit, averaged with the weighted logits of concepts where they have a part in the score."""
    if not weights:
        return truth
    return times(0.5, plus(truth, *(times(weight, leaves[text].logit) for text, weight in weights.items())))


def _truth(tree: Query, leaves: dict[str, _Term], config: ScoringConfig) -> _Term:
    match tree:
        case Concept(text):
            return leaves[text]
        case Not(Concept(text)):
            return _opposite(leaves[text])
        case And(children) | Or(children) | Plain(children):
            parts = [_truth(child, leaves, config) for child in children]
        case Not():
            raise AssertionError("negation stands at the leaves of a canonical tree")
    conjunction = isinstance(tree, And)
    if isinstance(tree, Plain):
        return _mean(parts)
    if config.aggregator == "probabilistic":
        return _product(parts) if conjunction else _opposite(_product([_opposite(part) for part in parts]))
    if config.aggregator == "minmax":
        return _extreme(parts, smallest=conjunction)
    return _power_mean(parts, config.gamma_and if conjunction else config.gamma_or)


def _opposite(term: _Term) -> _Term:
    if term.known_logit is not None:
        return _Term(-term.high, -term.low, known_logit=negative(term.known_logit))
    return _Term(-term.high, -term.low, known_inverse=over(1.0, term.inverse))


def _power_mean(parts: Sequence[_Term], gamma: float) -> _Term:
    """(mean p^γ)^(1/γ)."""
    if math.isinf(gamma):
        return _extreme(parts, smallest=gamma < 0)
    if gamma == 1.0:
        return _mean(parts)
    mean = average([part.inverse for part in parts])
    if gamma != -1.0:
        grown = plus(_inverse_power_mean(parts, gamma), -1.0)
        # Near certainty every power mean of p has the plain mean of w; there `grown` is rounding noise.
        mean = times(mean, over(plus(absolute(grown), BLEND), plus(mean, BLEND)))
    return _Term(min(part.low for part in parts), max(part.high for part in parts), known_inverse=mean)


def _inverse_power_mean(parts: Sequence[_Term], gamma: float) -> Expression:
    """One over the power mean: (mean (1 + w)^(-γ))^(-1/γ), at least 1."""
    grown = [plus(1.0, part.inverse) for part in parts]
    if abs(gamma) < 1e-9:
        return times(*(power(one, 1.0 / len(parts)) for one in grown))
    deepest = max(0.0, *(-part.low for part in parts)) + math.log(2.0)
    root = over(-1.0, constant(gamma))  # divided in the database: a rounded 1/γ would not undo the power by γ
    if abs(gamma) * deepest <= LARGEST_EXPONENT:
        return power(average([power(one, -gamma) for one in grown]), root)
    # Divide by a mean of the same kind with a milder exponent: at least the largest part, so that no power overflows,
    # and near enough to it that not all of them vanish.
    mild = math.copysign(LARGEST_EXPONENT / deepest, gamma)
    if abs(gamma / mild) * math.log(len(parts)) > LARGEST_EXPONENT:
        raise InvalidOption(f"a power mean with exponent {gamma:g} does not fit a formula; use execution='client'")
    reference = power(plus(*(power(one, -mild) for one in grown)), 1.0 / mild)
    return over(power(average([power(times(one, reference), -gamma) for one in grown]), root), reference)


def _mean(parts: Sequence[_Term]) -> _Term:
    """The plain mean of probabilities: mean (1 - p) over mean p, each from its own side."""
    if len(parts) == 1:
        return parts[0]
    absent = plus(*(over(1.0, plus(1.0, part.odds)) for part in parts))
    present = plus(*(over(1.0, plus(1.0, part.inverse)) for part in parts))
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    return _Term(low, high, known_logit=plus(ln(present), negative(ln(absent))))


def _product(parts: Sequence[_Term]) -> _Term:
    """The product of probabilities: 1 + w = Π (1 + w_j), expanded so that no 1 is taken away."""
    terms = [
        times(*(plus(1.0, before.inverse) for before in parts[:place]), part.inverse)
        for place, part in enumerate(parts)
    ]
    low = -sum(max(0.0, -part.low) + math.log(2.0) for part in parts)
    _check_exponent(low)
    return _Term(low, min(part.high for part in parts), known_inverse=plus(*terms))


def _extreme(parts: Sequence[_Term], *, smallest: bool) -> _Term:
    """The smallest or the largest logit: (a + b ∓ |a - b|) / 2."""

    def two(a: Expression, b: Expression) -> Expression:
        apart = absolute(plus(a, negative(b)))
        return times(0.5, plus(a, b, negative(apart) if smallest else apart))

    pick: Callable[[list[float]], float] = min if smallest else max
    logit = _halving([part.logit for part in parts], two)
    return _Term(pick([part.low for part in parts]), pick([part.high for part in parts]), known_logit=logit)


def _halving(items: Sequence[Expression], two: Callable[[Expression, Expression], Expression]) -> Expression:
    """Combine in pairs: a formula repeats its parts, and a balanced one repeats them least."""
    if len(items) <= 2:
        return reduce(two, items)
    half = len(items) // 2
    return two(_halving(items[:half], two), _halving(items[half:], two))


def _exp(part: Expression, reach: float) -> Expression:
    _check_exponent(reach)
    return exp(part)


def _check_exponent(reach: float) -> None:
    if abs(reach) > LARGEST_EXPONENT:
        raise InvalidOption("evidence is too steep for a formula (β is very large); use execution='client'")


def _checked(score: Expression) -> models.FormulaQuery:
    known: dict[int, int] = {}

    def size(node: Any) -> int:
        if id(node) not in known:
            known[id(node)] = 1 + sum(map(size, _parts(node)))
        return known[id(node)]

    if size(score) > LARGEST_FORMULA:
        raise InvalidOption(f"the formula of this query has {size(score)} nodes; use execution='client'")
    return models.FormulaQuery.model_construct(formula=score)


def _parts(node: Any) -> list[Any]:
    if isinstance(node, list):
        return node
    return list(vars(node).values()) if isinstance(node, BaseModel) else []
