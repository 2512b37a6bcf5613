"""An eight-bit copy of image vectors: a quarter of the bytes to read, with a bound on what the rounding may change.

Reading memory is what a search over many vectors costs. A first pass over the copy gives every similarity with a known
largest error; only rows that could still be among the best are then read in full precision, so the result is exact.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import FloatArray

__all__ = ["QuantisedRows"]

LEVELS = 127
BLOCK = 16_384


class QuantisedRows:
    """(n, d) rows in eight bits, each with its own scale.

    Args:
        vectors: (n, d) unit rows; read in blocks.

    Attributes:
        error: the largest distance between a row and its copy.
    """

    def __init__(self, vectors: NDArray[Any]) -> None:
        n, d = vectors.shape
        self.codes = np.empty((n, d), dtype=np.int8)
        self.scales = np.empty(n, dtype=np.float32)
        self.error = 0.0
        for start in range(0, n, BLOCK):
            block = np.asarray(vectors[start : start + BLOCK], dtype=np.float32)
            part = slice(start, start + len(block))
            self.codes[part], self.scales[part], error = _quantise(block)
            self.error = max(self.error, error)
        self._threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def __len__(self) -> int:
        return len(self.codes)

    def products(self, vectors: QuantisedRows, part: slice) -> FloatArray:
        """(m, rows) approximate products of the rows in `part` with other quantised vectors."""
        import simsimd

        codes = self.codes[part]
        raw = simsimd.cdist(codes, vectors.codes, metric="dot", out_dtype="float32", threads=self._threads)
        scaled = np.asarray(raw).T * self.scales[part]
        scaled *= vectors.scales[:, None]
        return np.asarray(scaled, dtype=np.float32)

    def product_error(self, vectors: FloatArray, copies: QuantisedRows) -> FloatArray:
        """(m,) largest error of a product of any row with each of `vectors`, whose copies are `copies`.

        With v = v' + e and t = t' + f the product <v, t> differs from <v', t'> by <e, t> + <v', f>.
        """
        exact = np.asarray(vectors, dtype=np.float64)
        rounded = copies.codes.astype(np.float64) * copies.scales[:, None]
        missed = np.linalg.norm(exact - rounded, axis=1)
        return np.asarray(self.error * np.linalg.norm(exact, axis=1) + (1.0 + self.error) * missed, dtype=np.float32)


def _quantise(rows: FloatArray) -> tuple[NDArray[np.int8], FloatArray, float]:
    """Codes, scales, and the largest distance between a row and its copy."""
    scales = np.maximum(np.abs(rows).max(axis=1) / LEVELS, np.finfo(np.float32).tiny)
    codes = np.rint(rows / scales[:, None]).astype(np.int8)
    gaps = np.linalg.norm(rows - codes * scales[:, None], axis=1)
    return codes, scales, float(gaps.max())
