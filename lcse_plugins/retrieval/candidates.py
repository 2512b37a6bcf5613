"""Vantage points: from where a query's best images are seen, and which way its score grows there.

A score with logic in it is not linear, so no single vector finds its best images in a vector index. But around an image
that satisfies the query it is nearly so: its gradient there, a vector, ranks such images much as the score does. The
points are chosen where the best images are: no evidence either way; everything as wanted; each way of satisfying the
query alone; and everything as wanted with one part in doubt. Vectors that would find much the same images are left out:
one deeper search finds more than two alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice, product

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.query import Group, Or, Query, concepts, fold, leaves, shape_of
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import holistic_share, score_tree

__all__ = ["MAX_VECTORS", "combined", "logic_at", "search_vectors", "slopes_at", "vantage_points"]

MAX_VECTORS = 12
"""Candidate vectors of one query: each is a search of its own."""

EVIDENCE = 2.0
"""Logit at which a part is taken as satisfied; far enough from 0 that the parts differ, near enough that all matter."""

DOUBT = 1.0
"""What a part in doubt lacks of that logit; as much as its images commonly differ by."""

ALIKE = 0.95
"""Cosine from which two vectors find much the same images."""

MOST_NUMBERS = 4096
"""Vantage points of one query times its concepts, at most: time and memory grow with that times the concepts."""

STEP = 1e-3
"""Difference in logits from which slopes are taken."""


def search_vectors(
    tree: Query,
    holistic: FloatArray,
    concept_vectors: FloatArray,
    *,
    calibration: Calibration,
    config: ScoringConfig,
) -> FloatArray:
    """(b, d) vectors to search with for the best images of a canonical tree with logic in it, most useful first.

    Args:
        tree: Canonical query tree.
        holistic: (d,) unit vector of the whole text.
        concept_vectors: (m, d) vectors of `concepts(tree)`, in that order.
        calibration: μ and β.
        config: Mode and aggregation.
    """
    slopes = _slopes(shape_of(tree), calibration, config)
    rows = combined(slopes, holistic, concept_vectors, share=holistic_share(tree, config))
    return np.asarray(_unlike(rows), dtype=np.float32)


def combined(
    weights: NDArray[np.float64], holistic: FloatArray, concept_vectors: FloatArray, *, share: float
) -> NDArray[np.float64]:
    """(b, d) vectors, whose products with an image are a share of its holistic similarity plus weighted other ones."""
    return share * holistic.astype(np.float64) + weights @ concept_vectors.astype(np.float64)


def logic_at(
    tree: Query, similarities: NDArray[np.float64], *, calibration: Calibration, config: ScoringConfig
) -> NDArray[np.float64]:
    """(n,) what the score is beyond the holistic similarity, at (n, m) similarities of the concepts.

    Further columns are those of concepts that are named elsewhere, where the tree is one side of an OR.
    """
    elsewhere = (f"elsewhere {place}" for place in range(similarities.shape[1]))
    columns = dict(zip(chain(concepts(tree), elsewhere), similarities.T, strict=False))
    scores, _ = score_tree(tree, np.zeros(len(similarities)), columns, calibration=calibration, config=config)
    return np.asarray(scores)


def vantage_points(tree: Query) -> NDArray[np.float64]:
    """(b, m) logits of the concepts; of a query with very many, only the first few points."""
    names = concepts(tree)
    most = max(2, min(2 * MAX_VECTORS, MOST_NUMBERS // len(names)))
    wanted = {leaf.text: -EVIDENCE if negated else EVIDENCE for leaf, negated in leaves(tree)}
    together = [wanted[name] for name in names]
    alone = [[way.get(name, -wanted[name]) for name in names] for way in islice(_ways(tree), MAX_VECTORS)]
    doubtful = together - DOUBT * np.sign(together) * np.eye(most, len(names))[: len(names)]
    return np.array([[0.0] * len(names), together, *alone, *doubtful][:most])


def _ways(tree: Query) -> Iterator[dict[str, float]]:
    """Each way of satisfying the tree, as the logits of the concepts it needs."""

    def group(node: Group, parts: list[Iterator[dict[str, float]]]) -> Iterator[dict[str, float]]:
        if isinstance(node, Or):
            return chain.from_iterable(parts)
        together = product(*(list(islice(part, MAX_VECTORS)) for part in parts))
        return ({text: logit for way in ways for text, logit in way.items()} for ways in together)

    return fold(tree, lambda text, negated: iter([{text: -EVIDENCE if negated else EVIDENCE}]), group)


def slopes_at(
    shape: Query, points: NDArray[np.float64], *, calibration: Calibration, config: ScoringConfig
) -> NDArray[np.float64]:
    """(b, m) derivatives of the score by the similarity of each concept, at (b, m) logits; read-only."""
    steps = STEP * np.concatenate([np.eye(points.shape[1]), -np.eye(points.shape[1])])
    slopes = []
    for point in points:
        similarities = calibration.mu + (point + steps) / calibration.beta
        above, below = np.split(logic_at(shape, similarities, calibration=calibration, config=config), 2)
        slopes.append((above - below) * (calibration.beta / (2.0 * STEP)))
    found = np.array(slopes)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=256)
def _slopes(shape: Query, calibration: Calibration, config: ScoringConfig) -> NDArray[np.float64]:
    """(b, m) derivatives of the score by the similarity of each concept, at each vantage point.

    They depend on the shape of a query alone, not on its concepts, and queries have few shapes.
    """
    return slopes_at(shape, vantage_points(shape), calibration=calibration, config=config)


def _unlike(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows that point in different directions; the first one always."""
    kept: list[int] = []
    lengths = np.linalg.norm(rows, axis=1)
    cosines = rows @ rows.T / np.maximum(np.outer(lengths, lengths), np.finfo(np.float64).tiny)
    for place in range(len(rows)):
        if not kept or (lengths[place] > 0 and len(kept) < MAX_VECTORS and cosines[place, kept].max() < ALIKE):
            kept.append(place)
    return rows[kept]
