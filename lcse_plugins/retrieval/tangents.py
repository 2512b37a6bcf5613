"""Tangents: a conjunction ranked by the least of a few products.

A score that is high only where several things hold at once falls off wherever one of them fails, each in its own
direction: no single vector ranks as it does. But each part has a vector: the slope of the score where that part is in
doubt. The smallest of an image's products with these ranks images much as the score does, because it is the failing
part that counts. Vector databases can search that way; for those that cannot, `vantage` finds vectors that are searched
for one by one.

A product has no constant term, so only parts that are alike, all wanted or all unwanted, can be compared by it: what is
wanted is searched for together, and what is unwanted apart from it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.query import And, Query, concepts, leaves, shape_of
from lcse_plugins.retrieval.candidates import MAX_VECTORS, combined, slopes_at
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import holistic_share
from lcse_plugins.scoring.logic import and_is_below_mean

__all__ = ["conjunction_searches"]

SEEN, SEEN_IN_DOUBT = 3.0, 0.0
"""Logits of what is wanted where it is certain, and where it is in doubt."""

ABSENT, ABSENT_IN_DOUBT = -4.5, -2.0
"""The same of what is not wanted: most images do not show it, so that the best ones lack it altogether."""

BELOW_ZERO, LEAST_BELOW = 1.5, 2.5
"""How many times as far below zero as that of a similarity of zero the logit of what is absent can be expected; with a
small μ or β that is less, but not less than the second number."""


def conjunction_searches(
    tree: Query,
    holistic: FloatArray,
    concept_vectors: FloatArray,
    *,
    calibration: Calibration,
    config: ScoringConfig,
) -> tuple[FloatArray, ...]:
    """Searches by the least product with (b, d) unit vectors, which find the best images; empty if none are known.

    Where one thing is wanted and several are not, all are searched for together, which does not find all of the best.
    For two parts that are not alike there is no search.

    Args:
        tree: Canonical query tree with logic in it.
        holistic: (d,) unit vector of the whole text.
        concept_vectors: (m, d) vectors of `concepts(tree)`, in that order.
        calibration: μ and β.
        config: Mode and aggregation.
    """
    signs = [negated for _, negated in leaves(tree)]
    joins_concepts = isinstance(tree, And) and len(tree.children) == len(signs) == len(concepts(tree)) <= MAX_VECTORS
    if not joins_concepts or sorted(signs) == [False, True] or not and_is_below_mean(config):
        return ()
    share = holistic_share(tree, config)
    found = [
        combined(slopes, holistic, concept_vectors, share=share)
        for slopes in _slopes_in_doubt(shape_of(tree), calibration, config)
    ]
    lengths = [np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in found]
    if not all(length.all() for length in lengths):
        return ()
    return tuple(np.asarray(one / length, dtype=np.float32) for one, length in zip(found, lengths, strict=True))


@lru_cache(maxsize=256)
def _slopes_in_doubt(shape: Query, calibration: Calibration, config: ScoringConfig) -> tuple[NDArray[np.float64], ...]:
    """For each search (b, m) slopes of the score by the concepts' similarities, one part after the other in doubt."""
    unwanted = np.array([negated for _, negated in leaves(shape)])
    below = min(1.0, max(LEAST_BELOW, BELOW_ZERO * calibration.beta * calibration.mu) / -ABSENT)
    certain = np.where(unwanted, below * ABSENT, SEEN)
    doubtful = np.where(unwanted, below * ABSENT_IN_DOUBT, SEEN_IN_DOUBT)
    several_wanted = np.count_nonzero(~unwanted) > 1
    kinds = [~unwanted, unwanted] if several_wanted and unwanted.any() else [np.ones_like(unwanted)]
    others = ~np.eye(len(unwanted), dtype=bool)
    points = [np.where(kind & others[kind], certain, doubtful) for kind in kinds]
    return tuple(slopes_at(shape, logits, calibration=calibration, config=config) for logits in points)
