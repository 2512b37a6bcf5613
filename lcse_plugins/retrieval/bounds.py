"""Bounds: linear functions of an image's similarities, the largest of which is never below its score.

    score ≤ max_b share · s_holistic + Σ weight_bi · s_i + offset_b

The products of an image with a few vectors then tell the most that it can score. Few images can reach the best ones, so
that few have to be looked at closely: an exact search costs little more than one by plain similarity.

Two kinds are known. The *means*: the logit of an AND is at most the mean of its parts', that of an OR at most the
largest of them, and the soft truth's is at least that of the least likely concept; each choice is one function. They
are close, but where a soft truth is taken away they are many. The *ceiling* of a query, or of one side of an OR, is one
function (see `ceiling`). Which are used is settled by how steeply they fall from the best images to others.

Bounds depend on the form of a query, not on its words, and queries have few forms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.query import And, Group, Or, Query, concepts, fold, shape_of
from lcse_plugins.retrieval.ceiling import ceiling_of, score_of_the_best, steepness
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import holistic_share, leaf_weights
from lcse_plugins.scoring.logic import and_is_below_mean

__all__ = ["MAX_BOUNDS", "LinearBounds", "bounds_of"]

MAX_BOUNDS = 32
"""Functions kept for one query; beyond it coarser, still valid ones are used, and beyond that none."""

DOUBLING = 0.08
"""What twice as many functions must gain in steepness: each lets through images that the others would not."""

_Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearBounds:
    """A few linear functions.

    Attributes:
        weights: (b, m) weights of the concepts' similarities, in the order of the query.
        offsets: (b,) what is added.
    """

    weights: _Table
    offsets: _Table

    def __len__(self) -> int:
        return len(self.offsets)


@lru_cache(maxsize=256)
def bounds_of(
    shape: Query, calibration: Calibration, config: ScoringConfig, *, ceilings: bool = True
) -> LinearBounds | None:
    """The bounds of all queries of one shape; None when none are known.

    Args:
        shape: Canonical tree, its concepts numbered (see `shape_of`), whose scores are not all holistic similarities.
        calibration: μ and β.
        config: Mode and aggregation.
        ceilings: Whether ceilings may be used, which hold for similarities in [-1, 1] alone.
    """
    frame = _Frame(shape, calibration, config)
    sides = shape.children if isinstance(shape, Or) and config.aggregator != "probabilistic" else (shape,)
    whole = frame.ceiling(shape) if ceilings else None
    apart = None
    if len(sides) <= MAX_BOUNDS:
        apart = _united(
            [frame.better([frame.ceiling(side) if ceilings else None, frame.means(side)]) for side in sides]
        )
    return frame.better([whole, apart])


class _Frame:
    """What the bounds of one shape have in common."""

    def __init__(self, shape: Query, calibration: Calibration, config: ScoringConfig) -> None:
        self._shape, self._calibration, self._config = shape, calibration, config
        self._names = concepts(shape)
        self._place = {name: place for place, name in enumerate(self._names)}
        self._share = holistic_share(shape, config)

    def better(self, choices: Iterable[LinearBounds | None]) -> LinearBounds | None:
        """Those of several bounds that leave fewest images in question; the first of equals."""
        return max((bounds for bounds in choices if bounds is not None), key=self._worth, default=None)

    def _worth(self, bounds: LinearBounds) -> float:
        least = steepness(bounds.weights, bounds.offsets, share=self._share, best=self._best).min()
        return float(least) - DOUBLING * math.log2(len(bounds))

    @cached_property
    def _best(self) -> float:
        return score_of_the_best(self._shape, self._calibration, self._config)

    def ceiling(self, side: Query) -> LinearBounds | None:
        """The ceiling of the query or of a side of it."""
        named = concepts(side)
        found = ceiling_of(shape_of(side), self._calibration, self._config, absent=len(self._names) - len(named))
        if found is None:
            return None
        weights = np.zeros((1, len(self._names)))
        weights[0, [self._place[name] for name in named]] = found.weights
        return LinearBounds(weights, np.array([found.offset]))

    def means(self, side: Query) -> LinearBounds | None:
        """The bounds of the query, or of a side of it, by means of logits."""
        rows = self._truth_rows(side)
        lowered = len(self._names) if self._config.mode == "lcse" else 1
        if rows is None or len(rows) * lowered > MAX_BOUNDS:
            return None
        plain = leaf_weights(self._shape, self._config)
        if plain:
            others = np.sum([self._unit(name, weight) for name, weight in plain.items()], axis=0)
            rows = [(row + others) / 2 for row in rows]
        elif self._config.mode == "lcse":  # the logit of a mean probability is at least the smallest logit
            rows = [row - self._unit(name, 1.0) for row in rows for name in self._names]
        logic_share = 1.0 if self._config.mode == "lcse" else 1.0 - self._share
        weights, mu = logic_share * np.array(rows), self._calibration.mu
        return LinearBounds(weights, mu * (1.0 - self._share) - mu * weights.sum(axis=1))

    def _truth_rows(self, side: Query) -> list[_Table] | None:
        """Weights of the concepts' logits, the largest of whose sums is at least the logit of the truth."""

        def group(node: Group, parts: list[list[_Table] | None]) -> list[_Table] | None:
            known = [part for part in parts if part is not None]
            if len(known) < len(parts) or (self._config.aggregator == "probabilistic" and isinstance(node, Or)):
                return None
            if isinstance(node, And) and and_is_below_mean(self._config):
                if math.prod(len(part) for part in known) <= MAX_BOUNDS:
                    return _distinct([np.mean(rows, axis=0) for rows in itertools.product(*known)])
            # No mean exceeds its largest child.
            united = _distinct([row for part in known for row in part])
            return united if len(united) <= MAX_BOUNDS else None

        return fold(side, lambda text, negated: [self._unit(text, -1.0 if negated else 1.0)], group)

    def _unit(self, name: str, weight: float) -> _Table:
        """(m,) the weight of one concept."""
        row = np.zeros(len(self._names))
        row[self._place[name]] = weight
        return row


def _united(sides: Sequence[LinearBounds | None]) -> LinearBounds | None:
    """The bounds of all sides; None when a side has none, or there are too many."""
    known = [bounds for bounds in sides if bounds is not None]
    if len(known) < len(sides) or sum(map(len, known)) > MAX_BOUNDS:
        return None
    return LinearBounds(
        np.concatenate([bounds.weights for bounds in known]), np.concatenate([bounds.offsets for bounds in known])
    )


def _distinct(rows: Sequence[_Table]) -> list[_Table]:
    return list({row.tobytes(): row for row in rows}.values())
