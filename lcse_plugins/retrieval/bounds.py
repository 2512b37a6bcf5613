"""Bounds: linear functions of an image's similarities, the largest of which is never below its score.

    score ≤ max_b share · s_holistic + Σ weight_bi · s_i + offset_b

In logits an AND is at most the mean of its children and an OR at most the largest of them; so the truth of a query is
at most the largest of a few weighted sums. The products of an image with a few vectors then tell the most that it can
score. Few images can reach the best ones: an exact search costs little more than one by plain similarity, and a search
in a vector index can prove that it missed nothing.

Bounds depend on the form of a query, not on its words, and queries have few forms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.query import And, Group, Or, Query, concepts, fold
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import holistic_share, leaf_weights
from lcse_plugins.scoring.logic import and_is_below_mean

__all__ = ["LinearBounds", "bounds_of"]

MAX_BOUNDS = 32
"""Functions kept for one query; beyond it coarser, still valid ones are used, and beyond that none."""

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


@lru_cache(maxsize=256)
def bounds_of(shape: Query, calibration: Calibration, config: ScoringConfig) -> LinearBounds | None:
    """The bounds of all queries of one shape; None when none are known.

    Args:
        shape: Canonical tree, its concepts numbered (see `shape_of`), whose scores are not all holistic similarities.
        calibration: μ and β.
        config: Mode and aggregation.
    """
    names = concepts(shape)
    units = dict(zip(names, np.eye(len(names)), strict=True))
    found = _edited_rows(shape, units, config) if config.mode == "lcse" else _truth_rows(shape, units, config)
    if found is None or len(found) > MAX_BOUNDS:
        return None
    share, slack = holistic_share(shape, config), 0.0
    if config.mode == "lcse":
        weights, slack = np.array(found), math.log(max(1, len(names) - 1)) / calibration.beta
    else:
        weights = (1.0 - share) * np.array(found)
        if plain := leaf_weights(shape, config):
            weights = (weights + np.sum([weight * units[name] for name, weight in plain.items()], axis=0)) / 2
    return LinearBounds(weights, slack + calibration.mu * (1.0 - share - weights.sum(axis=1)))


def _truth_rows(shape: Query, units: dict[str, _Table], config: ScoringConfig) -> list[_Table] | None:
    """Weights of the concepts' logits, the largest of whose sums is at least the logit of the truth."""

    def group(node: Group, parts: list[list[_Table] | None]) -> list[_Table] | None:
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or (config.aggregator == "probabilistic" and isinstance(node, Or)):
            return None  # the truth of such an OR exceeds its children's
        if isinstance(node, And) and and_is_below_mean(config):
            if math.prod(len(part) for part in known) <= MAX_BOUNDS:
                return _distinct([np.mean(rows, axis=0) for rows in itertools.product(*known)])
        united = _distinct([row for part in known for row in part])  # no mean exceeds its largest child
        return united if len(united) <= MAX_BOUNDS else None

    return fold(shape, lambda text, negated: [-units[text] if negated else units[text]], group)


def _edited_rows(shape: Query, units: dict[str, _Table], config: ScoringConfig) -> list[_Table] | None:
    """The same for the logit of the truth less that of the mean probability, up to log(m - 1) for m concepts.

    Of two concepts, the logit of their mean probability is at least the smaller of zero and their mean logit; so is
    that of m concepts, by log(m - 1) less. For each side of an OR two of its own are taken.
    """
    if len(units) == 1:
        return [row - unit for row in _truth_rows(shape, units, config) or () for unit in units.values()] or None
    rows: list[_Table] = []
    for side in shape.children if isinstance(shape, Or) and config.aggregator != "probabilistic" else (shape,):
        said = _truth_rows(side, units, config)
        if said is None:
            return None
        first, second = list(dict.fromkeys((*concepts(side), *units)))[:2]
        heard = (units[first] + units[second]) / 2
        rows += [row - soft for row in said for soft in (heard, np.zeros_like(heard))]
    return _distinct(rows)


def _distinct(rows: Sequence[_Table]) -> list[_Table]:
    return list({row.tobytes(): row for row in rows}.values())
