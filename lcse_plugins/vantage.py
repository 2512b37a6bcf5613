"""Vantage points: from where a query's best images are seen, and which way its score grows there.

A score with logic in it is not linear, so no single vector finds its best images in a vector index. But around an image
that satisfies the query it is nearly so: its gradient there, a vector, ranks such images much as the score does. The
points are chosen where the best images are: no evidence either way; everything as wanted; each way of satisfying the
query alone; and everything as wanted with one part in doubt. Vectors that would find much the same images are left out:
one deeper search finds more than two alike.

Where nothing is affirmed the best images are ordinary ones, which lack what most do: a sample of the collection shows
where they are, and one vector finds them. What a query affirms is rare, and no sample holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.calibrate import Calibration
from lcse_plugins.config import ScoringConfig
from lcse_plugins.edit import holistic_share, score_tree
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.query import Concept, Not, Or, Query, concepts, leaves

__all__ = ["BEST", "MAX_VECTORS", "candidate_vectors", "sampled_vector"]

MAX_VECTORS = 12
"""Candidate vectors of one query: each is a search of its own."""

EVIDENCE = 2.0
"""Logit at which a part is taken as satisfied; far enough from 0 that the parts differ, near enough that all matter."""

DOUBT = 1.0
"""What a part in doubt lacks of that logit; as much as its images commonly differ by."""

ALIKE = 0.95
"""Cosine from which two vectors find much the same images."""

BEST = 16
"""How many of a sample's best images the gradient is averaged over: few, to be near the best of the collection."""

STEP = 1e-3
"""Difference in logits from which slopes are taken."""


def candidate_vectors(
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
    numbers = {name: str(number) for number, name in enumerate(concepts(tree))}
    slopes = _slopes(_renamed(tree, numbers), calibration, config)
    rows = holistic_share(tree, config) * holistic.astype(np.float64) + slopes @ concept_vectors.astype(np.float64)
    return np.asarray(_unlike(rows), dtype=np.float32)


def sampled_vector(
    tree: Query,
    holistic: FloatArray,
    concept_vectors: FloatArray,
    sample: FloatArray,
    *,
    calibration: Calibration,
    config: ScoringConfig,
) -> FloatArray:
    """(1, d) vector to search with for the best images of a canonical tree that affirms nothing.

    Args:
        tree: Canonical query tree.
        holistic: (d,) unit vector of the whole text.
        concept_vectors: (m, d) vectors of `concepts(tree)`, in that order.
        sample: (n, d) unit vectors of some images of the collection, n at least 1.
        calibration: μ and β.
        config: Mode and aggregation.
    """
    # A product for each concept: of a small matrix with another, some libraries leave threads waiting for more.
    columns = {name: sample @ vector for name, vector in zip(concepts(tree), concept_vectors, strict=True)}
    scores, _ = score_tree(tree, sample @ holistic, columns, calibration=calibration, config=config)
    best = np.argsort(-scores)[:BEST]
    similarities = np.stack([column[best] for column in columns.values()], axis=1).astype(np.float64)
    slopes = _derivatives(tree, calibration.beta * (similarities - calibration.mu), calibration, config).mean(axis=0)
    vector = holistic_share(tree, config) * holistic.astype(np.float64) + slopes @ concept_vectors.astype(np.float64)
    return np.asarray(vector[None, :], dtype=np.float32)


def _renamed(tree: Query, names: Mapping[str, str]) -> Query:
    """The tree with other concepts in the same places."""
    match tree:
        case Concept(text):
            return Concept(names[text])
        case Not(child):
            return Not(_renamed(child, names))
        case _:
            return type(tree)(tuple(_renamed(child, names) for child in tree.children))


def _vantage_points(tree: Query) -> NDArray[np.float64]:
    """(b, m) logits of the concepts."""
    names = concepts(tree)
    wanted = {leaf.text: -EVIDENCE if negated else EVIDENCE for leaf, negated in leaves(tree)}
    together = [wanted[name] for name in names]
    alone = [[way.get(name, -wanted[name]) for name in names] for way in islice(_ways(tree), MAX_VECTORS)]
    doubtful = together - DOUBT * np.sign(together) * np.eye(len(names))
    return np.array([[0.0] * len(names), together, *alone, *doubtful][: 2 * MAX_VECTORS])


def _ways(tree: Query) -> Iterator[dict[str, float]]:
    """Each way of satisfying the tree, as the logits of the concepts it needs."""
    match tree:
        case Concept(text):
            yield {text: EVIDENCE}
        case Not(Concept(text)):
            yield {text: -EVIDENCE}
        case Or(children):
            for child in children:
                yield from _ways(child)
        case Not():
            raise AssertionError("negation stands at the leaves of a canonical tree")
        case _:
            yield from _joined(tree.children)


def _joined(children: Sequence[Query]) -> Iterator[dict[str, float]]:
    if not children:
        yield {}
        return
    for first in _ways(children[0]):
        for rest in _joined(children[1:]):
            yield {**first, **rest}


@lru_cache(maxsize=256)
def _slopes(shape: Query, calibration: Calibration, config: ScoringConfig) -> NDArray[np.float64]:
    """(b, m) derivatives at each vantage point.

    They depend on the shape of a query alone, not on its concepts, and queries have few shapes.
    """
    slopes = _derivatives(shape, _vantage_points(shape), calibration, config)
    slopes.flags.writeable = False
    return slopes


def _derivatives(
    tree: Query, points: NDArray[np.float64], calibration: Calibration, config: ScoringConfig
) -> NDArray[np.float64]:
    """(b, m) derivatives of the score by the similarity of each concept, at b points given as logits."""
    names = concepts(tree)
    steps = STEP * np.eye(len(names))
    logits = np.concatenate([points[:, None, :] + steps, points[:, None, :] - steps], axis=1).reshape(-1, len(names))
    similarities = {name: calibration.mu + logits[:, i] / calibration.beta for i, name in enumerate(names)}
    scores, _ = score_tree(tree, np.zeros(len(logits)), similarities, calibration=calibration, config=config)
    above, below = np.moveaxis(scores.reshape(len(points), 2, len(names)), 1, 0)
    return np.asarray((above - below) * (calibration.beta / (2.0 * STEP)))


def _unlike(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows that point in different directions; the first one always."""
    kept: list[int] = []
    lengths = np.linalg.norm(rows, axis=1)
    cosines = rows @ rows.T / np.maximum(np.outer(lengths, lengths), np.finfo(np.float64).tiny)
    for place in range(len(rows)):
        if not kept or (lengths[place] > 0 and len(kept) < MAX_VECTORS and cosines[place, kept].max() < ALIKE):
            kept.append(place)
    return rows[kept]
