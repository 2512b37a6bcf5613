"""Plan: which vectors to search with when a collection is too large to score whole. Pure arithmetic.

A vector index ranks by a linear function <v, q>. Three kinds of q serve a logical query:

- *candidate vectors* point where its score grows: its gradients at the points from which its best images are seen
  (see `vantage`). The text vector itself would fetch just what a negation excludes.
- *bounds* <v, q> + c, the largest of which is never below the score. Once the k-th best score found is above what
  every bound allows an unseen image, the top k is proved complete.
- when the score *is* linear (no logic, or one negated concept) a single search is already exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from lcse_plugins.calibrate import Calibration
from lcse_plugins.config import ScoringConfig
from lcse_plugins.edit import edits_nothing, holistic_share, leaf_weights
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.query import And, Concept, Not, Or, Plain, Query, concepts
from lcse_plugins.vantage import candidate_vectors

__all__ = ["MAX_BOUNDS", "Bound", "Plan", "make_plan"]

MAX_BOUNDS = 32
"""Bounds kept for one query; beyond it a coarser, still valid bound is used, and beyond that none."""

ROUNDING = 1e-5
"""What float32 may add to a cosine; a proof must hold by more than this."""


@dataclass(frozen=True, eq=False)
class Bound:
    """A linear function <v, vector> + offset of an image vector v."""

    vector: FloatArray
    offset: float


@dataclass(frozen=True, eq=False)
class Plan:
    """How to find the best images of a query in a vector index.

    Attributes:
        linear: the score itself as a linear function, when it is one; a search with its vector is exact.
        find_bounds: computes `bounds`, which only a proof needs.
        find_candidates: computes `candidates`, which only a search in a vector index needs.
    """

    linear: Bound | None
    find_bounds: Callable[[], tuple[Bound, ...] | None]
    find_candidates: Callable[[], FloatArray]

    @cached_property
    def bounds(self) -> tuple[Bound, ...] | None:
        """Linear functions whose maximum is at least the score; None when none are known."""
        return self.find_bounds()

    @cached_property
    def candidates(self) -> FloatArray:
        """(b, d) vectors to search with, most useful first."""
        return self.find_candidates()

    def proves(self, kth_score: float, last_similarities: Sequence[float]) -> bool:
        """Whether no image beyond the ones seen can score above `kth_score`.

        Args:
            kth_score: The k-th best exact score found so far.
            last_similarities: For each bound, the smallest <v, bound.vector> of a search in descending order: every
                image that search did not return has at most this.
        """
        if self.bounds is None:
            return False
        ceiling = max(last + bound.offset for last, bound in zip(last_similarities, self.bounds, strict=True))
        return kth_score > ceiling + ROUNDING


def make_plan(
    tree: Query,
    holistic: FloatArray,
    concept_vectors: FloatArray,
    *,
    calibration: Calibration,
    config: ScoringConfig,
) -> Plan:
    """The plan of a canonical tree.

    Args:
        tree: Canonical query tree.
        holistic: (d,) unit vector of the whole text.
        concept_vectors: (m, d) vectors of `concepts(tree)`, in that order.
        calibration: μ and β.
        config: Mode and aggregation.
    """
    if edits_nothing(tree, config):
        return _linear_plan(Bound(np.asarray(holistic, dtype=np.float32), 0.0))
    frame = _Frame(tree, holistic, concept_vectors, calibration, config)

    def find_bounds() -> tuple[Bound, ...] | None:
        rows = _ceilings(tree, frame)
        return None if rows is None else tuple(frame.bound(row) for row in rows)

    if isinstance(tree, Concept | Not) and (bounds := find_bounds()) is not None:
        return _linear_plan(bounds[0])
    candidates = partial(candidate_vectors, tree, holistic, concept_vectors, calibration=calibration, config=config)
    return Plan(None, find_bounds, candidates)


def _linear_plan(score: Bound) -> Plan:
    return Plan(score, lambda: (score,), lambda: score.vector[None, :])


class _Frame:
    """The query's vectors, and the change from coefficients on logits x = β (s - μ) to vectors."""

    def __init__(
        self,
        tree: Query,
        holistic: FloatArray,
        concept_vectors: FloatArray,
        calibration: Calibration,
        config: ScoringConfig,
    ) -> None:
        self.names = concepts(tree)
        self.position = {name: i for i, name in enumerate(self.names)}
        self.vectors = np.asarray(concept_vectors, dtype=np.float64)
        self.config = config
        self.mu = calibration.mu
        self.subtracts_soft = config.mode == "lcse"
        share = holistic_share(tree, config)
        self.base = np.asarray(holistic, dtype=np.float64) * share
        self.logic_share = 1.0 if self.subtracts_soft else 1.0 - share
        self.shift = calibration.mu * (1.0 - share)

    def unit(self, name: str, sign: float) -> np.ndarray:
        """(m,) coefficients of one leaf."""
        row = np.zeros(len(self.names))
        row[self.position[name]] = sign
        return row

    def bound(self, row: np.ndarray) -> Bound:
        """The linear function with the given coefficients on the logits, divided by β."""
        weights = self.logic_share * row
        vector = self.base + weights @ self.vectors
        return Bound(vector.astype(np.float32), float(self.shift - self.mu * weights.sum()))


def _ceilings(tree: Query, frame: _Frame) -> list[np.ndarray] | None:
    """Coefficient rows whose maximum is at least β (score - holistic part); None when no such rows are known."""
    rows = _truth_ceilings(tree, frame)
    if rows is None:
        return None
    weights = leaf_weights(tree, frame.config)
    if weights:
        plain = np.sum([frame.unit(name, weight) for name, weight in weights.items()], axis=0)
        return [(row + plain) / 2 for row in rows]
    if not frame.subtracts_soft:
        return rows
    # The logit of a mean probability is at least the smallest logit: -soft ≤ max_i -x_i.
    lowered = [row - frame.unit(name, 1.0) for row in rows for name in frame.names]
    return lowered if len(lowered) <= MAX_BOUNDS else None


def _truth_ceilings(tree: Query, frame: _Frame) -> list[np.ndarray] | None:
    match tree:
        case Concept(text):
            return [frame.unit(text, 1.0)]
        case Not(Concept(text)):
            return [frame.unit(text, -1.0)]
        case And(children) | Or(children) | Plain(children):
            parts = [_truth_ceilings(child, frame) for child in children]
        case Not():
            raise AssertionError("negation stands at the leaves of a canonical tree")
    if any(part is None for part in parts):
        return None
    known = [part for part in parts if part is not None]
    product_of_or = frame.config.aggregator == "probabilistic" and isinstance(tree, Or)
    if product_of_or:
        return None
    if isinstance(tree, And) and _below_mean(frame.config):
        if math.prod(len(part) for part in known) <= MAX_BOUNDS:
            return _distinct([np.mean(rows, axis=0) for rows in itertools.product(*known)])
    # No mean exceeds its largest child.
    united = _distinct([row for part in known for row in part])
    return united if len(united) <= MAX_BOUNDS else None


def _below_mean(config: ScoringConfig) -> bool:
    """Whether the logit of an AND is at most the mean logit of its children."""
    return config.aggregator != "power" or config.gamma_and <= -1.0


def _distinct(rows: Sequence[np.ndarray]) -> list[np.ndarray]:
    kept: dict[bytes, np.ndarray] = {}
    for row in rows:
        kept.setdefault(np.asarray(row).tobytes(), row)
    return list(kept.values())
