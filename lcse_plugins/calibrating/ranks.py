"""Ranks of numbers, in which equal ones are equal."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["mid_ranks"]


def mid_ranks(numbers: ArrayLike) -> NDArray[np.float64]:
    """(…, n) ranks from 1 along the last axis, equal numbers sharing the mean of theirs."""
    values = np.asarray(numbers, dtype=np.float64)
    order = values.argsort(axis=-1)
    rising = np.take_along_axis(values, order, axis=-1)
    edges = np.ones((*values.shape[:-1], values.shape[-1] + 1), dtype=bool)  # before and after each run of equals
    edges[..., 1:-1] = rising[..., 1:] != rising[..., :-1]
    place = np.arange(values.shape[-1])
    first = np.maximum.accumulate(np.where(edges[..., :-1], place, 0), axis=-1)
    last = np.minimum.accumulate(np.where(edges[..., 1:], place, len(place))[..., ::-1], axis=-1)[..., ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2.0 + 1.0, axis=-1)
    return ranks
