"""A ceiling: one linear function of an image's similarities that its score in mode `lcse` never exceeds.

    score ≤ s_holistic + Σ weight_i · s_i + offset

A ceiling depends on the form of a query, not on its words. The weights are a choice, made by how steeply the ceiling
falls from images that satisfy the query to those that show nothing of it. The offset is not: it is the most by which
scores rise above the weighted similarities, over all similarities in [-1, 1]. It is found by halving the cube of them
again and again, and dropping the parts where the largest rise cannot lie: a score moves no further than `score_reach`
says.

Concepts that are wanted together, as in "a and b and no c", count as one in this search. Let them have equal weights
w ≥ 0, and let x be the logit of their conjunction. The truth depends on them through x alone; the soft truth, a mean of
probabilities, is no smaller than if each of them were at x; and x is at most the mean of their logits. So no rise is
above that at which they all are at x.

Part of a query, one side of an OR, has a ceiling too. What is named elsewhere in the query has a share in the soft
truth alone, and the score is highest where it is absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.query import And, Concept, Not, Query, concepts, leaves
from lcse_plugins.retrieval.candidates import logic_at, vantage_points
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import edits_nothing, holistic_share, score_reach
from lcse_plugins.scoring.logic import and_is_below_mean

__all__ = ["EDGE", "Ceiling", "ceiling_of", "score_of_the_best", "steepness"]

STEPS = {1: 0.1, 2: 0.1, 3: 0.2, 4: 0.25}
"""Kinds of concepts, which may differ in weight → how finely weights are tried; with more no ceiling is looked for."""

MOST_DIMENSIONS = 6
"""Of a cube of more dimensions neither."""

EDGE = 1.01
"""No similarity is larger: those of unit vectors, with what rounding may add."""

CLOSE = 0.1
"""How near to the least possible an offset shall be, as a logit."""

NUMBERS = 524_288
"""Parts of the cube looked at in one round, times concepts, at most; with more to look at, the offset stays there."""

SAMPLE = 512
"""Points in the cube, and as many near μ, at which weights are compared."""

TOGETHER, APART = 0.5, 0.2
"""What the similarities of images to the whole text and to one of its concepts are taken to have in common, and those
to two of its concepts."""

EVIDENCE = 2.0
"""Logit at which images that satisfy the query are taken to resemble its text."""

_Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ceiling:
    """Weights of the concepts' similarities, in the order of the query, and what is added to their sum."""

    weights: _Table
    offset: float


@lru_cache(maxsize=256)
def ceiling_of(shape: Query, calibration: Calibration, config: ScoringConfig, *, absent: int = 0) -> Ceiling | None:
    """The ceiling of all queries of one shape; None when none is looked for.

    Args:
        shape: Canonical tree, its concepts numbered (see `shape_of`); there is none without logic in it.
        calibration: μ and β.
        config: Mode and aggregation.
        absent: How many further concepts are named elsewhere, if this is one side of an OR.
    """
    reach = score_reach(shape, config)
    if config.mode != "lcse" or edits_nothing(shape, config) or reach is None or len(concepts(shape)) < 2:
        return None
    rises = _Rises(shape, calibration, config, absent)
    if rises.dimensions > MOST_DIMENSIONS or len(set(rises.kinds)) not in STEPS:
        return None
    weights = rises.steepest_weights()
    slope = reach[1] + float(np.abs(weights) @ rises.sizes)
    return Ceiling(weights[rises.axes], _largest(rises, weights, slope, CLOSE / calibration.beta))


def steepness(weights: _Table, offsets: _Table, *, share: float, best: float) -> _Table:
    """(k,) of k linear functions: how far they fall from the best images to images that resemble nothing of the query.

    In standard deviations of the function over images, whose similarities are taken to be as correlated as those of
    texts and their parts commonly are.

    Args:
        weights: (k, m) weights of the concepts' similarities.
        offsets: (k,) what is added.
        share: The weight of the holistic similarity.
        best: The score of the best images.
    """
    size = 1 + weights.shape[1]
    common = np.full((size, size), APART)
    common[0, :] = common[:, 0] = TOGETHER
    np.fill_diagonal(common, 1.0)
    rows = np.concatenate([np.full((len(weights), 1), share), weights], axis=1)
    spread = np.sqrt(np.einsum("ki,ij,kj->k", rows, common, rows))
    return np.asarray((best - offsets) / np.maximum(spread, 1e-6))


def score_of_the_best(shape: Query, calibration: Calibration, config: ScoringConfig, *, absent: int = 0) -> float:
    """About what images score that satisfy a query of this shape; `absent` as in `ceiling_of`."""
    points = calibration.mu + vantage_points(shape) / calibration.beta
    alike = calibration.mu + EVIDENCE / calibration.beta
    logic = logic_at(shape, _with_absent(points, absent), calibration=calibration, config=config)
    return holistic_share(shape, config) * alike + float(logic.max())


def _with_absent(similarities: _Table, absent: int) -> _Table:
    return np.concatenate([similarities, np.full((len(similarities), absent), -EDGE)], axis=1)


def _axes(shape: Query, config: ScoringConfig) -> list[int]:
    """(m,) for each concept its axis of the cube: one for those wanted together, one for each of the others."""
    names, together = concepts(shape), set[str]()
    if isinstance(shape, And) and and_is_below_mean(config):
        together = {child.text for child in _once(shape) if isinstance(child, Concept)}
    others = [name for name in names if name not in together]
    first = 1 if together else 0
    return [0 if name in together else first + others.index(name) for name in names]


def _kinds(shape: Query, axes: list[int]) -> list[int]:
    """(dimensions,) for each axis its kind: the query does not tell concepts of one kind from each other."""
    names, known = concepts(shape), dict[object, int]()
    alike: dict[str, object] = {concepts(child)[0]: type(child) for child in _once(shape)}
    kinds = {axis: alike.get(name, name) for name, axis in zip(names, axes, strict=True)}
    return [known.setdefault(kinds[axis], len(known)) for axis in sorted(kinds)]


def _once(shape: Query) -> list[Concept | Not]:
    """The children that are a concept, or a negated one, which the query names nowhere else."""
    occurrences = [leaf.text for leaf, _ in leaves(shape)]
    children = () if isinstance(shape, Concept | Not) else shape.children
    simple = [child for child in children if isinstance(child, Concept | Not)]
    return [child for child in simple if occurrences.count(concepts(child)[0]) == 1]


class _Rises:
    """By how much scores of one shape rise above the holistic and the weighted similarities.

    Attributes:
        axes: (m,) for each concept the axis of its similarity, and of its weight.
        sizes: (dimensions,) how many concepts share an axis.
        kinds: (dimensions,) the kind of each axis: rises do not change when axes of one kind change places.
        dimensions: of the cube.
        concepts: how many there are, with those named elsewhere.
    """

    def __init__(self, shape: Query, calibration: Calibration, config: ScoringConfig, absent: int) -> None:
        self._shape, self._calibration, self._config, self._absent = shape, calibration, config, absent
        self.axes = _axes(shape, config)
        self.sizes = np.bincount(self.axes)
        self.kinds = _kinds(shape, self.axes)
        self.dimensions = len(self.sizes)
        self.concepts = len(self.axes) + absent

    def at(self, points: _Table, weights: _Table) -> _Table:
        """(n, k) rises at (n, dimensions) points above (k, dimensions) weights."""
        similarities = _with_absent(points[:, self.axes], self._absent)
        logic = logic_at(self._shape, similarities, calibration=self._calibration, config=self._config)
        return np.asarray(logic[:, None] - points @ (weights * self.sizes).T)

    def steepest_weights(self) -> _Table:
        """(dimensions,) the weights, of many tried, under which the ceiling falls most steeply."""
        tried, points = self._tried_weights(), self._sample()
        parts = np.array_split(tried, 1 + len(tried) // 64)
        offsets = np.concatenate([self.at(points, part).max(axis=0) for part in parts])
        best = score_of_the_best(self._shape, self._calibration, self._config, absent=self._absent)
        return np.asarray(tried[np.argmax(steepness(tried[:, self.axes], offsets, share=1.0, best=best))])

    def _tried_weights(self) -> _Table:
        """(k, dimensions) weights, one for each kind: of wanted concepts mostly above zero, of unwanted ones below."""
        names, kinds = concepts(self._shape), self.kinds
        unwanted = {self.axes[names.index(leaf.text)] for leaf, negated in leaves(self._shape) if negated}
        step, tried = STEPS[1 + max(kinds)], []
        for kind in range(1 + max(kinds)):
            axes = [axis for axis in range(self.dimensions) if kinds[axis] == kind]
            size = int(self.sizes[axes].sum())
            if axes[0] in unwanted:
                totals = np.arange(round(-1.2 * min(size, 2) / step), 1)
            else:
                totals = np.arange(round(-0.4 / step) * (len(axes) == size), round(1.0 / step) + 1)
            tried.append(step / size * totals)
        return np.array(list(product(*tried)))[:, kinds]

    def _sample(self) -> _Table:
        rng, shape = np.random.default_rng(0), (SAMPLE, self.dimensions)
        anywhere, near = rng.uniform(-EDGE, EDGE, shape), rng.uniform(-0.3, 0.3, shape)
        corners = np.array(list(product((-EDGE, EDGE), repeat=self.dimensions)))
        return np.concatenate([anywhere, self._calibration.mu + near, corners])


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
        if np.count_nonzero(open_cells) * len(corners) * rises.concepts > NUMBERS:
            return float(found.max() + slope * half)
        half /= 2
        centres = _in_order((centres[open_cells, None, :] + half * corners).reshape(-1, len(weights)), rises.kinds)


def _in_order(points: _Table, kinds: list[int]) -> _Table:
    """The points whose numbers do not grow along the axes of one kind; all others mirror one of them."""
    for kind in set(kinds):
        alike = points[:, [axis for axis, own in enumerate(kinds) if own == kind]]
        points = points[np.all(alike[:, :-1] >= alike[:, 1:], axis=1)]
    return points
