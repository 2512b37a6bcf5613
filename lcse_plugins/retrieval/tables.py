"""Tables of image vectors: made of whatever holds numbers, checked, and of length one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.errors import InvalidCandidate

__all__ = ["as_numbers", "row_lengths", "unit_rows"]

BLOCK = 16_384
"""Rows measured at a time, so that a memory map is never loaded as a whole."""

UNIT_TOLERANCE = 1e-4
"""Rows this close to length one are taken as they are; those of half precision ten times as far."""


def as_numbers(values: Any) -> NDArray[Any]:
    """Any array, tensor or list of them as a numpy array; a memory map stays one.

    A tensor is taken off its graph and its device, and widened to float32, since numpy has no bfloat16.

    Raises:
        InvalidCandidate: it holds other things than numbers, or rows of different lengths.
    """
    if isinstance(values, np.memmap):
        return values
    try:
        if isinstance(values, list | tuple):
            values = [_off_graph(value) for value in values]
        numbers = np.asarray(_off_graph(values))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidCandidate(f"image vectors form a table (n, d) of numbers: {error}") from error
    if not np.issubdtype(numbers.dtype, np.floating) and not np.issubdtype(numbers.dtype, np.integer):
        raise InvalidCandidate(f"image vectors must be numbers, not {numbers.dtype}")
    return numbers


def _off_graph(values: Any) -> Any:
    return values.detach().cpu().float() if hasattr(values, "detach") else values


def row_lengths(vectors: NDArray[Any]) -> NDArray[np.float64] | None:
    """(n,) lengths of (n, d) rows; None where all are of length one.

    Raises:
        InvalidCandidate: there are no rows, or one is zero, NaN or infinite.
    """
    if not len(vectors):
        raise InvalidCandidate("there are no image vectors to rank; index some images first")
    lengths = np.empty(len(vectors), dtype=np.float64)
    for start in range(0, len(vectors), BLOCK):
        block = np.asarray(vectors[start : start + BLOCK], dtype=np.float64)
        lengths[start : start + BLOCK] = np.sqrt(np.einsum("ij,ij->i", block, block))
    for name, wrong in (("NaN or infinite", ~np.isfinite(lengths)), ("zero", lengths == 0)):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise InvalidCandidate(
                f"{int(wrong.sum())} of {len(vectors)} image vectors are {name}, the first at position {first}; "
                "encode those images again or leave them out"
            )
    tolerance = UNIT_TOLERANCE if vectors.dtype != np.float16 else 10 * UNIT_TOLERANCE
    return None if np.all(np.abs(lengths - 1.0) <= tolerance) else lengths


def unit_rows(vectors: NDArray[Any]) -> NDArray[Any]:
    """(n, d) float32 or float16 rows of length one: the array itself when they are, else a normalised copy.

    Raises:
        InvalidCandidate: there are no rows, or one is zero, NaN or infinite.
    """
    lengths = row_lengths(vectors)
    kind = vectors.dtype if vectors.dtype == np.float16 else np.dtype(np.float32)
    if lengths is None:
        return vectors.astype(kind, copy=False)
    return np.asarray(vectors / lengths[:, None], dtype=kind)
