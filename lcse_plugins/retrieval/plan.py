"""Plan: which vectors to search with when a collection is too large to score whole. Pure arithmetic.

A vector index ranks by a linear function <v, q>, and a score with logic in it is not linear. Two kinds of q serve:

- *Search vectors* find the best images. Around an image that satisfies the query the score is nearly linear: its slope
  there, a vector, ranks such images much as the score does. The text vector itself would fetch just what a negation
  excludes.
- *Bounds* <v, q> + c prove that none was missed: the largest of them is never below the score. In logits an AND is at
  most the mean of its children and an OR at most the largest of them, so a few weighted sums are enough.

When the score *is* linear (no logic, or one negated concept) a single search is already exact. Slopes and bounds depend
on the shape of a query, not on its words, and queries have few shapes: both are kept.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.query import And, Concept, Group, Not, Or, Query, concepts, fold, leaves, shape_of
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import edits_nothing, holistic_share, leaf_weights, score_tree
from lcse_plugins.scoring.logic import and_is_below_mean

__all__ = ["ROUNDING", "Bound", "Plan"]

ROUNDING = 1e-5
"""What float32 may add to a cosine or a score; a proof must hold by more than this."""

MAX_BOUNDS = 32
"""Bounds kept for one query; beyond it coarser, still valid ones are used, and beyond that none."""

MAX_VECTORS = 12
"""Search vectors of one query: each is a search of its own."""

ALIKE = 0.95
"""Cosine from which two vectors find much the same images; one deeper search finds more than two alike."""

EVIDENCE, DOUBT = 2.0, 1.0
"""Logit at which a part is taken as satisfied, and what a part in doubt lacks of it, as images commonly differ by."""

MOST_NUMBERS = 4096
"""Points of one query times its concepts, at most: time and memory grow with that times the concepts."""

STEP = 1e-3
"""Difference in logits from which slopes are taken."""

_Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bound:
    """A linear function <v, vector> + offset of an image vector v."""

    vector: FloatArray
    offset: float


@dataclass(frozen=True, eq=False)
class Plan:
    """How to find the best images of a query in a vector index.

    Attributes:
        tree: the canonical query tree.
        holistic: (d,) unit vector of the whole text.
        concept_vectors: (m, d) vectors of `concepts(tree)`, in that order.
        calibration: μ and β.
        config: mode and aggregation.
    """

    tree: Query
    holistic: FloatArray
    concept_vectors: FloatArray
    calibration: Calibration = field(kw_only=True)
    config: ScoringConfig = field(kw_only=True)

    @cached_property
    def linear(self) -> Bound | None:
        """The score itself as a linear function, when it is one; a search with its vector is exact."""
        is_linear = isinstance(self.tree, Concept | Not) or edits_nothing(self.tree, self.config)
        return self.bounds[0] if is_linear and self.bounds else None

    @cached_property
    def bounds(self) -> tuple[Bound, ...] | None:
        """Linear functions whose maximum is at least the score; None when none are known."""
        if edits_nothing(self.tree, self.config):
            return (Bound(np.asarray(self.holistic, dtype=np.float32), 0.0),)
        found = _bound_weights(shape_of(self.tree), self.calibration, self.config)
        if found is None:
            return None
        weights, offsets = found
        return tuple(map(Bound, self._vectors(weights).astype(np.float32), offsets.tolist()))

    @cached_property
    def search_vectors(self) -> FloatArray:
        """(b, d) vectors to search a vector index with, most useful first."""
        if self.linear is not None:
            return self.linear.vector[None, :]
        slopes = _slopes(shape_of(self.tree), self.calibration, self.config)
        return np.asarray(_unlike(self._vectors(slopes)), dtype=np.float32)

    def proves(self, kth_score: float, last_similarities: Sequence[float]) -> bool:
        """Whether no image beyond the ones seen can score above `kth_score`.

        Args:
            kth_score: The k-th best exact score found so far.
            last_similarities: For each bound, the smallest <v, bound.vector> of a search in descending order: every
                image that search did not return has at most this.
        """
        if self.bounds is None:
            return False
        most = max(last + bound.offset for last, bound in zip(last_similarities, self.bounds, strict=True))
        return kth_score > most + ROUNDING

    def _vectors(self, weights: _Table) -> _Table:
        """(b, d) vectors whose products with an image are weighted similarities, and the text's share of the score."""
        share = holistic_share(self.tree, self.config)
        return share * self.holistic.astype(np.float64) + weights @ self.concept_vectors.astype(np.float64)


# ------------------------------------------------------------------------------------------------- bounds


@lru_cache(maxsize=256)
def _bound_weights(shape: Query, calibration: Calibration, config: ScoringConfig) -> tuple[_Table, _Table] | None:
    """(b, m) weights of the concepts' similarities and (b,) offsets of the bounds; None when none are known.

    Args:
        shape: Canonical tree, its concepts numbered (see `shape_of`), whose scores are not all holistic similarities.
        calibration: μ and β.
        config: Mode and aggregation.
    """
    names = concepts(shape)
    units = dict(zip(names, np.eye(len(names)), strict=True))
    found = _edited_rows(shape, units, config) if config.mode == "lcse" else _truth_rows(shape, units, config)
    if found is None or len(found) > MAX_BOUNDS:
        return None
    share, slack = holistic_share(shape, config), 0.0
    if config.mode == "lcse":
        weights, slack = np.array(found), math.log(max(1, len(names) - 1)) / calibration.beta
    else:
        weights = (1.0 - share) * np.array(found)
        if plain := leaf_weights(shape, config):
            weights = (weights + np.sum([weight * units[name] for name, weight in plain.items()], axis=0)) / 2
    return weights, slack + calibration.mu * (1.0 - share - weights.sum(axis=1))


def _truth_rows(shape: Query, units: dict[str, _Table], config: ScoringConfig) -> list[_Table] | None:
    """Weights of the concepts' logits, the largest of whose sums is at least the logit of the truth."""

    def group(node: Group, parts: list[list[_Table] | None]) -> list[_Table] | None:
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or (config.aggregator == "probabilistic" and isinstance(node, Or)):
            return None  # the truth of such an OR exceeds its children's
        if isinstance(node, And) and and_is_below_mean(config):
            if math.prod(len(part) for part in known) <= MAX_BOUNDS:
                return _distinct([np.mean(rows, axis=0) for rows in itertools.product(*known)])
        united = _distinct([row for part in known for row in part])  # no mean exceeds its largest child
        return united if len(united) <= MAX_BOUNDS else None

    return fold(shape, lambda text, negated: [-units[text] if negated else units[text]], group)


def _edited_rows(shape: Query, units: dict[str, _Table], config: ScoringConfig) -> list[_Table] | None:
    """The same for the logit of the truth less that of the mean probability, up to log(m - 1) for m concepts.

    Of two concepts, the logit of their mean probability is at least the smaller of zero and their mean logit; so is
    that of m concepts, by log(m - 1) less. For each side of an OR two of its own are taken.
    """
    if len(units) == 1:
        return [row - unit for row in _truth_rows(shape, units, config) or () for unit in units.values()] or None
    rows: list[_Table] = []
    for side in shape.children if isinstance(shape, Or) and config.aggregator != "probabilistic" else (shape,):
        said = _truth_rows(side, units, config)
        if said is None:
            return None
        first, second = list(dict.fromkeys((*concepts(side), *units)))[:2]
        heard = (units[first] + units[second]) / 2
        rows += [row - soft for row in said for soft in (heard, np.zeros_like(heard))]
    return _distinct(rows)


def _distinct(rows: Sequence[_Table]) -> list[_Table]:
    return list({row.tobytes(): row for row in rows}.values())


# ----------------------------------------------------------------------------------------- search vectors


@lru_cache(maxsize=256)
def _slopes(shape: Query, calibration: Calibration, config: ScoringConfig) -> _Table:
    """(b, m) derivatives of the score by the similarity of each concept, where the best images of a query are."""
    names = concepts(shape)
    steps = STEP * np.concatenate([np.eye(len(names)), -np.eye(len(names))])
    slopes = []
    for point in _points(shape):
        columns = dict(zip(names, (calibration.mu + (point + steps) / calibration.beta).T, strict=True))
        scores, _ = score_tree(shape, np.zeros(len(steps)), columns, calibration=calibration, config=config)
        above, below = np.split(scores, 2)
        slopes.append((above - below) * (calibration.beta / (2.0 * STEP)))
    return np.array(slopes)


def _points(shape: Query) -> _Table:
    """(b, m) logits of the concepts at which slopes are taken; of a query with very many, only the first few.

    No evidence either way; everything as wanted; each way of satisfying the query alone; and everything as wanted with
    one part in doubt.
    """
    names = concepts(shape)
    most = max(2, min(2 * MAX_VECTORS, MOST_NUMBERS // len(names)))
    wanted = {leaf.text: -EVIDENCE if negated else EVIDENCE for leaf, negated in leaves(shape)}
    together = [wanted[name] for name in names]
    alone = [[way.get(name, -wanted[name]) for name in names] for way in itertools.islice(_ways(shape), MAX_VECTORS)]
    doubtful = together - DOUBT * np.sign(together) * np.eye(most, len(names))[: len(names)]
    return np.array([[0.0] * len(names), together, *alone, *doubtful][:most])


def _ways(shape: Query) -> Iterator[dict[str, float]]:
    """Each way of satisfying the query, as the logits of the concepts it needs."""

    def group(node: Group, parts: list[Iterator[dict[str, float]]]) -> Iterator[dict[str, float]]:
        if isinstance(node, Or):
            return itertools.chain.from_iterable(parts)
        together = itertools.product(*(list(itertools.islice(part, MAX_VECTORS)) for part in parts))
        return ({text: logit for way in ways for text, logit in way.items()} for ways in together)

    return fold(shape, lambda text, negated: iter([{text: -EVIDENCE if negated else EVIDENCE}]), group)


def _unlike(rows: _Table) -> _Table:
    """The rows that point somewhere, in different directions: at most `MAX_VECTORS`, and at least one."""
    lengths = np.linalg.norm(rows, axis=1)
    cosines = rows @ rows.T / np.maximum(np.outer(lengths, lengths), np.finfo(np.float64).tiny)
    kept: list[int] = []
    for place in np.flatnonzero(lengths > ROUNDING * lengths.max()).tolist():
        if len(kept) < MAX_VECTORS and (cosines[place, kept] < ALIKE).all():
            kept.append(place)
    return rows[kept or [0]]
