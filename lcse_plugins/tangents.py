"""Tangents: a conjunction ranked by the least of a few products.

A score that is high only where several things hold at once falls off wherever one of them fails, each in its own
direction: no single vector ranks as it does. But each part has a vector: the slope of the score where that part is in
doubt and all others are certain. The smallest of an image's products with these ranks images much as the score does,
because it is the failing part that counts. Vector databases can search that way; for those that cannot, `vantage`
finds vectors that are searched for one by one.

A product has no constant term, so that the parts have to be alike: all wanted, or none. Where they are not, the least
product still finds what single vectors do not, of three parts and more.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.calibrate import Calibration
from lcse_plugins.config import ScoringConfig
from lcse_plugins.edit import holistic_share
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.logic import and_is_below_mean
from lcse_plugins.query import And, Query, concepts, leaves, shape_of
from lcse_plugins.vantage import MAX_VECTORS, slopes_at

__all__ = ["conjunction_vectors"]

SEEN, SEEN_IN_DOUBT = 3.0, 0.0
"""Logits of what is wanted where it is certain, and where it is in doubt."""

ABSENT, ABSENT_IN_DOUBT = -4.5, -2.0
"""The same of what is not wanted: most images do not show it, so that the best ones lack it altogether."""

BELOW_ZERO, LEAST_BELOW = 1.5, 2.5
"""How many times as far below zero as that of a similarity of zero the logit of what is absent can be expected; with a
small μ or β that is less, but not less than the second number."""

LEAST_MIXED = 3
"""Parts from which on a conjunction of wanted and unwanted ones is searched for this way: two have single vectors."""


def conjunction_vectors(
    tree: Query,
    holistic: FloatArray,
    concept_vectors: FloatArray,
    *,
    calibration: Calibration,
    config: ScoringConfig,
) -> FloatArray | None:
    """(m, d) unit vectors, the smallest product with which ranks images much as their scores; None if none are known.

    Args:
        tree: Canonical query tree with logic in it.
        holistic: (d,) unit vector of the whole text.
        concept_vectors: (m, d) vectors of `concepts(tree)`, in that order.
        calibration: μ and β.
        config: Mode and aggregation.
    """
    if not _is_plain_conjunction(tree) or not and_is_below_mean(config):
        return None
    slopes = _slopes_in_doubt(shape_of(tree), calibration, config)
    rows = holistic_share(tree, config) * holistic.astype(np.float64) + slopes @ concept_vectors.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / lengths, dtype=np.float32) if lengths.all() else None


def _is_plain_conjunction(tree: Query) -> bool:
    """Whether the tree joins single concepts, each named once, that can be searched for together."""
    signs = [negated for _, negated in leaves(tree)]
    if not isinstance(tree, And) or not len(tree.children) == len(signs) == len(concepts(tree)) <= MAX_VECTORS:
        return False
    return len(set(signs)) == 1 or len(signs) >= LEAST_MIXED


@lru_cache(maxsize=256)
def _slopes_in_doubt(shape: Query, calibration: Calibration, config: ScoringConfig) -> NDArray[np.float64]:
    """(m, m) slopes of the score by each concept's similarity, with one concept after the other in doubt."""
    signs = [negated for _, negated in leaves(shape)]
    below = min(1.0, max(LEAST_BELOW, BELOW_ZERO * calibration.beta * calibration.mu) / -ABSENT)
    certain = [below * ABSENT if negated else SEEN for negated in signs]
    doubtful = [below * ABSENT_IN_DOUBT if negated else SEEN_IN_DOUBT for negated in signs]
    points = np.where(np.eye(len(signs), dtype=bool), doubtful, certain)
    return slopes_at(shape, points, calibration=calibration, config=config)
