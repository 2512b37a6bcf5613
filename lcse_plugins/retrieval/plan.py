"""Plan: which vectors to search with when a collection is too large to score whole. Pure arithmetic.

A vector index ranks by a linear function <v, q>. Four kinds of q serve a logical query:

- *candidate vectors* point where its score grows (see `candidates`). The text vector itself would fetch just what a
  negation excludes.
- several of them at once: for a conjunction, databases that can rank by the *least* of several products find its best
  images in one search.
- *bounds* <v, q> + c, the largest of which is never below the score (see `bounds`). Once the k-th best score found is
  above what every bound allows an unseen image, the top k is proved complete.
- when the score *is* linear (no logic, or one negated concept) a single search is already exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.query import Concept, Not, Query, leaves, shape_of
from lcse_plugins.retrieval.bounds import bounds_of
from lcse_plugins.retrieval.candidates import conjunction_slopes, search_slopes, unlike
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import edits_nothing, holistic_share

__all__ = ["ROUNDING", "Bound", "Plan"]

ROUNDING = 1e-5
"""What float32 may add to a cosine or a score; a proof must hold by more than this."""


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
        found = bounds_of(self._shape, self.calibration, self.config)
        if found is None:
            return None
        vectors = self._vectors(found.weights).astype(np.float32)
        return tuple(Bound(vector, offset) for vector, offset in zip(vectors, found.offsets.tolist(), strict=True))

    @cached_property
    def search_vectors(self) -> FloatArray:
        """(b, d) the candidate vectors, which a search in a vector index is made with, most useful first."""
        if self.linear is not None:
            return self.linear.vector[None, :]
        slopes = search_slopes(self._shape, self.calibration, self.config)
        return np.asarray(unlike(self._vectors(slopes)), dtype=np.float32)

    @cached_property
    def searches(self) -> tuple[FloatArray, ...]:
        """The candidate searches for a database that ranks by the least of several products; (b, d) vectors of each.

        A conjunction takes one search for what is wanted and one for what is not, by unit vectors. Where just one
        thing is wanted, a single search stands beside the best two of `search_vectors`.
        """
        joint = () if self.linear is not None else conjunction_slopes(self._shape, self.calibration, self.config)
        found = [self._vectors(slopes) for slopes in joint]
        lengths = [np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in found]
        if not found or not all(length.all() for length in lengths):
            return tuple(self.search_vectors[:, None, :])
        unit = (np.asarray(one / length, dtype=np.float32) for one, length in zip(found, lengths, strict=True))
        wanted = sum(not negated for _, negated in leaves(self.tree))
        return (*unit, *self.search_vectors[:2, None, :]) if wanted == 1 else tuple(unit)

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

    @cached_property
    def _shape(self) -> Query:
        return shape_of(self.tree)

    def _vectors(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """(b, d) vectors whose products with an image are weighted similarities, and the text's share of the score."""
        share = holistic_share(self.tree, self.config)
        return share * self.holistic.astype(np.float64) + weights @ self.concept_vectors.astype(np.float64)
