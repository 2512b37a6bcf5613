"""Candidate vectors: what to search a vector index with, so that the best images of a query are among the nearest.

A score with logic in it is not linear, so no single vector finds its best images. But around an image that satisfies
the query it is nearly so: its slope there, a vector, ranks such images much as the score does. The points at which
slopes are taken lie where the best images are: no evidence either way; everything as wanted; each way of satisfying the
query alone; and everything as wanted with one part in doubt. Vectors that would find much the same images are left out:
one deeper search finds more than two alike.

For a conjunction some databases can do better: they rank by the *least* product with several vectors. Each part has its
vector, the slope of the score where that part is in doubt, and it is the failing part that counts. A product has no
constant term, so only parts that are alike can be compared by it: what is wanted is searched for together, and what is
unwanted apart from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice, product

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.query import And, Group, Or, Query, concepts, fold, leaves
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import score_tree
from lcse_plugins.scoring.logic import and_is_below_mean

__all__ = ["MAX_VECTORS", "conjunction_slopes", "search_slopes", "unlike"]

MAX_VECTORS = 12
"""Candidate vectors of one query: each is a search of its own."""

EVIDENCE, DOUBT = 2.0, 1.0
"""Logit at which a part is taken as satisfied, and what a part in doubt lacks of it, as images commonly differ by."""

ALIKE = 0.95
"""Cosine from which two vectors find much the same images."""

MOST_NUMBERS = 4096
"""Points of one query times its concepts, at most: time and memory grow with that times the concepts."""

STEP = 1e-3
"""Difference in logits from which slopes are taken."""

SEEN, SEEN_IN_DOUBT = 3.0, 0.0
ABSENT, ABSENT_IN_DOUBT = -9.0, -7.0
"""Logits of a conjunction's parts among its best images, and of the one in doubt. Of what is unwanted most images show
nothing at all, so that the best ones lack it altogether."""

BELOW_ZERO, LEAST_BELOW = 1.5, 2.5
"""How many times as far below zero as that of a similarity of zero the logit of what is absent can be expected; with a
small μ or β that is less, but not less than the second number."""

_Table = NDArray[np.float64]


@lru_cache(maxsize=256)
def search_slopes(shape: Query, calibration: Calibration, config: ScoringConfig) -> _Table:
    """(b, m) slopes of the score by the concepts' similarities, where the best images of a query are.

    They depend on the shape of a query (see `shape_of`), not on its words, and queries have few shapes.
    """
    return _slopes_at(shape, _points(shape), calibration, config)


@lru_cache(maxsize=256)
def conjunction_slopes(shape: Query, calibration: Calibration, config: ScoringConfig) -> tuple[_Table, ...]:
    """For each search by the least product (b, m) slopes, one part of a conjunction after the other in doubt.

    Empty where no such search is known: for other queries, and for one thing wanted and one not.
    """
    unwanted = np.array([negated for _, negated in leaves(shape)])
    joins = isinstance(shape, And) and len(shape.children) == len(unwanted) == len(concepts(shape)) <= MAX_VECTORS
    if not joins or sorted(unwanted) == [False, True] or not and_is_below_mean(config):
        return ()
    below = min(1.0, max(LEAST_BELOW, BELOW_ZERO * calibration.beta * calibration.mu) / -ABSENT)
    certain = np.where(unwanted, below * ABSENT, SEEN)
    doubtful = np.where(unwanted, below * ABSENT_IN_DOUBT, SEEN_IN_DOUBT)
    several_wanted = np.count_nonzero(~unwanted) > 1
    kinds = [~unwanted, unwanted] if several_wanted and unwanted.any() else [np.ones_like(unwanted)]
    others = ~np.eye(len(unwanted), dtype=bool)
    points = [np.where(kind & others[kind], certain, doubtful) for kind in kinds]
    return tuple(_slopes_at(shape, logits, calibration, config) for logits in points)


def unlike(rows: _Table) -> _Table:
    """The rows that point in different directions, at most `MAX_VECTORS`; none that points nowhere, if any does."""
    kept: list[int] = []
    lengths = np.linalg.norm(rows, axis=1)
    cosines = rows @ rows.T / np.maximum(np.outer(lengths, lengths), np.finfo(np.float64).tiny)
    for place in range(len(rows)):
        new = len(kept) < MAX_VECTORS and max(cosines[place, kept], default=0) < ALIKE
        if new and lengths[place] > 1e-6:  # slopes of an exclusive or cancel out
            kept.append(place)
    return rows[kept or [0]]


def _points(shape: Query) -> _Table:
    """(b, m) logits of the concepts at which slopes are taken; of a query with very many, only the first few."""
    names = concepts(shape)
    most = max(2, min(2 * MAX_VECTORS, MOST_NUMBERS // len(names)))
    wanted = {leaf.text: -EVIDENCE if negated else EVIDENCE for leaf, negated in leaves(shape)}
    together = [wanted[name] for name in names]
    alone = [[way.get(name, -wanted[name]) for name in names] for way in islice(_ways(shape), MAX_VECTORS)]
    doubtful = together - DOUBT * np.sign(together) * np.eye(most, len(names))[: len(names)]
    return np.array([[0.0] * len(names), together, *alone, *doubtful][:most])


def _ways(shape: Query) -> Iterator[dict[str, float]]:
    """Each way of satisfying the query, as the logits of the concepts it needs."""

    def group(node: Group, parts: list[Iterator[dict[str, float]]]) -> Iterator[dict[str, float]]:
        if isinstance(node, Or):
            return chain.from_iterable(parts)
        together = product(*(list(islice(part, MAX_VECTORS)) for part in parts))
        return ({text: logit for way in ways for text, logit in way.items()} for ways in together)

    return fold(shape, lambda text, negated: iter([{text: -EVIDENCE if negated else EVIDENCE}]), group)


def _slopes_at(shape: Query, points: _Table, calibration: Calibration, config: ScoringConfig) -> _Table:
    """(b, m) derivatives of the score by the similarity of each concept, at (b, m) logits; read-only."""
    names = concepts(shape)
    steps = STEP * np.concatenate([np.eye(len(names)), -np.eye(len(names))])
    slopes = []
    for point in points:
        columns = dict(zip(names, (calibration.mu + (point + steps) / calibration.beta).T, strict=True))
        scores, _ = score_tree(shape, np.zeros(len(steps)), columns, calibration=calibration, config=config)
        above, below = np.split(scores, 2)
        slopes.append((above - below) * (calibration.beta / (2.0 * STEP)))
    found = np.array(slopes)
    found.flags.writeable = False
    return found
