"""The numbers by which rankings are judged."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lcse_plugins.calibrating.operator_tests import mid_ranks
from lcse_plugins.errors import InvalidOption

__all__ = ["area_under_curve", "best_first", "finite", "spearman", "standing_before"]


def finite(scores: ArrayLike) -> NDArray[np.float64]:
    """(n,) the scores as they are; InvalidOption where some are NaN or infinite, which cannot be compared."""
    values = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(values).all():
        raise InvalidOption("scores hold NaN or infinite values, which cannot be ranked; check the encoder")
    return values


def best_first(scores: ArrayLike) -> NDArray[np.intp]:
    """(n,) positions by falling score; equal scores keep their order."""
    return np.argsort(-finite(scores), kind="stable")


def standing_before(scores: ArrayLike, item: int) -> int:
    """How many items come before this one, best first; equal scores keep their order."""
    values = finite(scores)
    return int(np.sum(values > values[item])) + int(np.sum(values[:item] == values[item]))


def area_under_curve(scores: ArrayLike, relevant: ArrayLike) -> float:
    """The chance that a relevant item scores above an irrelevant one, ties counting half; both kinds must be there."""
    truth = np.asarray(relevant, dtype=bool)
    yes, no = int(truth.sum()), int((~truth).sum())
    return float((mid_ranks(finite(scores))[truth].sum() - yes * (yes + 1) / 2) / (yes * no))


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Rank correlation; 1 when both are constant alike, 0 when only one is."""
    a, b = mid_ranks(finite(first)), mid_ranks(finite(second))
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm else float(np.array_equal(a, b))
