"""A ceiling: one linear function of an image's similarities that its score never exceeds.

    score ≤ share · s_holistic + Σ weight_i · s_i + offset

The product of an image with one vector then tells the most that it can score. Few images can reach the best ones, so
that few have to be looked at closely: what an exact search costs is little more than what plain similarity does.

A ceiling depends on the form of a query, not on its words. The weights are a choice, made by how steeply the ceiling
falls from images that satisfy the query to those that show nothing of it. The offset is not: it is the most by which
scores rise above the weighted similarities, over all similarities in [-1, 1]. It is found by halving the cube of them
again and again, and dropping the parts where the largest rise cannot lie: a score moves no further than `score_reach`
says.

Concepts that are wanted together, as in "a and b and no c", count as one in this search. Let them have equal weights
w ≥ 0, and let x be the logit of their conjunction. The truth depends on them through x alone; the soft truth, a mean of
probabilities, is no smaller than if each of them were at x; and x is at most the mean of their logits. So no rise is
above that at which they all are at x.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.calibrate import Calibration
from lcse_plugins.config import ScoringConfig
from lcse_plugins.edit import holistic_share, score_reach
from lcse_plugins.logic import and_is_below_mean
from lcse_plugins.query import And, Concept, Or, Query, concepts, leaves
from lcse_plugins.vantage import logic_at, vantage_points

__all__ = ["EDGE", "Ceiling", "ceiling_of"]

STEPS = {1: 0.1, 2: 0.1, 3: 0.2, 4: 0.25}
"""Dimensions of the cube → how finely weights are tried; of a cube of more dimensions no ceiling is looked for."""

EDGE = 1.01
"""No similarity is larger: those of unit vectors, with what rounding may add."""

CLOSE = 0.1
"""How near to the least possible an offset shall be, as a logit."""

CELLS = 16_384
"""Parts of the cube looked at in one round, at most; with more to look at, the offset stays where it is."""

SAMPLE = 512
"""Points in the cube, and as many near μ, at which weights are compared."""

TOGETHER, APART = 0.5, 0.2
"""What the similarities of images to the whole text and to one of its concepts are taken to have in common, and those
to two of its concepts."""

EVIDENCE = 2.0
"""Logit at which images that satisfy the query are taken to resemble its text."""

WIDEST_OR = 3
"""Concepts of a query that is an OR, at most: no one plane lies close above a maximum of many things."""

_Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ceiling:
    """Weights of the concepts' similarities, in the order of the query, and what is added to their sum."""

    weights: _Table
    offset: float


@lru_cache(maxsize=256)
def ceiling_of(shape: Query, calibration: Calibration, config: ScoringConfig) -> Ceiling | None:
    """The ceiling of all queries of one shape; None when there is none worth having.

    Args:
        shape: Canonical tree with logic in it, its concepts numbered (see `shape_of`).
        calibration: μ and β.
        config: Mode and aggregation.
    """
    reach, number = score_reach(shape, config), len(concepts(shape))
    if reach is None or number < 2:
        return None
    if isinstance(shape, Or) and (config.mode != "lcse" or number > WIDEST_OR):
        return None
    rises = _Rises(shape, calibration, config)
    if rises.dimensions not in STEPS:
        return None
    weights = rises.steepest_weights()
    slope = reach[1] + float(np.abs(weights) @ rises.sizes)
    return Ceiling(weights[rises.axes], _largest(rises, weights, slope, CLOSE / calibration.beta))


def _axes(shape: Query, config: ScoringConfig) -> list[int]:
    """(m,) for each concept its axis of the cube: one for those wanted together, one for each of the others."""
    names, together = concepts(shape), set[str]()
    if isinstance(shape, And) and and_is_below_mean(config):
        wanted = {child.text for child in shape.children if isinstance(child, Concept)}
        occurrences = [leaf.text for leaf, _ in leaves(shape)]
        together = {name for name in wanted if occurrences.count(name) == 1}
    others = [name for name in names if name not in together]
    first = 1 if together else 0
    return [0 if name in together else first + others.index(name) for name in names]


class _Rises:
    """By how much scores of one shape rise above weighted similarities.

    Attributes:
        axes: (m,) for each concept the axis of its similarity, and of its weight.
        sizes: (dimensions,) how many concepts share an axis.
    """

    def __init__(self, shape: Query, calibration: Calibration, config: ScoringConfig) -> None:
        self.shape, self.calibration, self.config = shape, calibration, config
        self.names, self.share = concepts(shape), holistic_share(shape, config)
        self.axes = _axes(shape, config)
        self.sizes = np.bincount(self.axes)
        self.dimensions = len(self.sizes)

    def at(self, points: _Table, weights: _Table) -> _Table:
        """(n, k) rises at (n, dimensions) points above (k, dimensions) weights."""
        return np.asarray(self.logic(points[:, self.axes])[:, None] - points @ (weights * self.sizes).T)

    def logic(self, similarities: _Table) -> _Table:
        """(n,) the part of the score that is the logic's, at (n, m) similarities of the concepts."""
        return logic_at(self.shape, similarities, calibration=self.calibration, config=self.config)

    def steepest_weights(self) -> _Table:
        """(dimensions,) the weights, of many tried, under which the ceiling falls most steeply."""
        tried, points = self._tried_weights(), self._sample()
        parts = np.array_split(tried, 1 + len(tried) // 64)
        offsets = np.concatenate([self.at(points, part).max(axis=0) for part in parts])
        return np.asarray(tried[np.argmax(self._steepness(tried[:, self.axes], offsets))])

    def _steepness(self, weights: _Table, offsets: _Table) -> _Table:
        """(k,) of k ceilings: how far they fall from the best images to images that resemble nothing of the query.

        In standard deviations of the ceiling over images, whose similarities are taken to be as correlated as those of
        texts and their parts commonly are.
        """
        m = len(self.names)
        common = np.full((1 + m, 1 + m), APART)
        common[0, :] = common[:, 0] = TOGETHER
        np.fill_diagonal(common, 1.0)
        best = self.calibration.mu + vantage_points(self.shape) / self.calibration.beta
        alike = self.calibration.mu + EVIDENCE / self.calibration.beta
        height = self.share * alike + self.logic(best).max()
        rows = np.concatenate([np.full((len(weights), 1), self.share), weights], axis=1)
        spread = np.sqrt(np.einsum("ki,ij,kj->k", rows, common, rows))
        return np.asarray((height - offsets) / np.maximum(spread, 1e-6))

    def _tried_weights(self) -> _Table:
        """(k, dimensions) weights: of wanted concepts mostly above zero, of unwanted ones below."""
        unwanted = {self.axes[self.names.index(leaf.text)] for leaf, negated in leaves(self.shape) if negated}
        unit = (1.0 if self.config.mode == "lcse" else 1.0 - self.share) / self.sizes
        tried = []
        for axis, size in enumerate(self.sizes):
            low, high = (-1.2, 0.0) if axis in unwanted else (-0.4 if size == 1 else 0.0, 1.0)
            tried.append(unit[axis] * np.arange(low, high + 0.05, STEPS[self.dimensions]))
        return np.array(list(product(*tried)))

    def _sample(self) -> _Table:
        rng, shape = np.random.default_rng(0), (SAMPLE, self.dimensions)
        anywhere, near = rng.uniform(-EDGE, EDGE, shape), rng.uniform(-0.3, 0.3, shape)
        corners = np.array(list(product((-EDGE, EDGE), repeat=self.dimensions)))
        return np.concatenate([anywhere, self.calibration.mu + near, corners])


def _largest(rises: _Rises, weights: _Table, slope: float, close: float) -> float:
    """A number that no rise above the weights exceeds, at most `close` above the largest one if that can be afforded.

    Args:
        rises: The rises.
        weights: (dimensions,) weights.
        slope: How far a rise can change while no similarity changes by more than one.
        close: How near to the largest rise is near enough.
    """
    corners = np.array(list(product((-1.0, 1.0), repeat=len(weights))))
    centres, half, seen = np.zeros((1, len(weights))), EDGE, -np.inf
    while True:
        found = rises.at(centres, weights[None, :])[:, 0]
        seen = max(seen, float(found.max()))
        open_cells = found + slope * half > seen + close
        if not open_cells.any():
            return seen + close
        if np.count_nonzero(open_cells) * len(corners) > CELLS:
            return float(found.max() + slope * half)
        half /= 2
        centres = (centres[open_cells, None, :] + half * corners).reshape(-1, len(weights))
