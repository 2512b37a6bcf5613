"""Plan: which vectors to search with when a collection is too large to score whole. Pure arithmetic.

A vector index ranks by a linear function <v, q>. Three kinds of q serve a logical query:

- *candidate vectors* point where its score grows: its gradients at the points from which its best images are seen
  (see `vantage`). The text vector itself would fetch just what a negation excludes.
- *bounds* <v, q> + c, the largest of which is never below the score. Once the k-th best score found is above what
  every bound allows an unseen image, the top k is proved complete. For most queries there is one that is close (see
  `ceiling`); for others, such as an OR of several parts, there are several that are less so.
- when the score *is* linear (no logic, or one negated concept) a single search is already exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lcse_plugins.calibrate import Calibration
from lcse_plugins.ceiling import EDGE, ceiling_of
from lcse_plugins.config import ScoringConfig
from lcse_plugins.edit import edits_nothing, holistic_share, leaf_weights
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.logic import and_is_below_mean
from lcse_plugins.query import And, Concept, Group, Not, Or, Query, concepts, fold, shape_of
from lcse_plugins.vantage import search_vectors

__all__ = ["MAX_BOUNDS", "Bound", "Plan"]

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
    def ceiling(self) -> Bound | None:
        """One linear function that is nowhere below the score, and close above it for most queries; None without."""
        if edits_nothing(self.tree, self.config) or np.linalg.norm(self.concept_vectors, axis=1).max() > EDGE:
            return None
        found = ceiling_of(shape_of(self.tree), self.calibration, self.config)
        if found is None:
            return None
        vector = holistic_share(self.tree, self.config) * self.holistic + found.weights @ self.concept_vectors
        return Bound(vector.astype(np.float32), found.offset)

    @cached_property
    def bounds(self) -> tuple[Bound, ...] | None:
        """Linear functions whose maximum is at least the score; None when none are known."""
        if edits_nothing(self.tree, self.config):
            return (Bound(np.asarray(self.holistic, dtype=np.float32), 0.0),)
        if self.ceiling is not None:
            return (self.ceiling,)
        frame = _Frame(self)
        rows = _ceilings(self.tree, frame)
        return None if rows is None else tuple(frame.bound(row) for row in rows)

    @cached_property
    def search_vectors(self) -> FloatArray:
        """(b, d) the candidate vectors, which a search in a vector index is made with, most useful first."""
        if self.linear is not None:
            return self.linear.vector[None, :]
        return search_vectors(
            self.tree, self.holistic, self.concept_vectors, calibration=self.calibration, config=self.config
        )

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


class _Frame:
    """The query's vectors, and the change from coefficients on logits x = β (s - μ) to vectors."""

    def __init__(self, plan: Plan) -> None:
        self.names = concepts(plan.tree)
        self.position = {name: i for i, name in enumerate(self.names)}
        self.vectors = np.asarray(plan.concept_vectors, dtype=np.float64)
        self.config = plan.config
        self.mu = plan.calibration.mu
        self.subtracts_soft = plan.config.mode == "lcse"
        share = holistic_share(plan.tree, plan.config)
        self.base = np.asarray(plan.holistic, dtype=np.float64) * share
        self.logic_share = 1.0 if self.subtracts_soft else 1.0 - share
        self.shift = self.mu * (1.0 - share)

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
    def group(node: Group, parts: list[list[np.ndarray] | None]) -> list[np.ndarray] | None:
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or (frame.config.aggregator == "probabilistic" and isinstance(node, Or)):
            return None
        if isinstance(node, And) and and_is_below_mean(frame.config):
            if math.prod(len(part) for part in known) <= MAX_BOUNDS:
                return _distinct([np.mean(rows, axis=0) for rows in itertools.product(*known)])
        # No mean exceeds its largest child.
        united = _distinct([row for part in known for row in part])
        return united if len(united) <= MAX_BOUNDS else None

    return fold(tree, lambda text, negated: [frame.unit(text, -1.0 if negated else 1.0)], group)


def _distinct(rows: Sequence[np.ndarray]) -> list[np.ndarray]:
    kept: dict[bytes, np.ndarray] = {}
    for row in rows:
        kept.setdefault(np.asarray(row).tobytes(), row)
    return list(kept.values())
