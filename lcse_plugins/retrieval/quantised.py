"""Rows of vectors, and their products with a few others in one pass.

`QuantisedRows` keeps an eight-bit copy: a quarter of the bytes to read, with the distance of each row from its copy.
`FloatRows` reads the rows as they are, without error. Products are SimSIMD's: one pass over a row for all its products.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import FloatArray

__all__ = ["FloatRows", "QuantisedRows"]

LEVELS = 127
BLOCK = 16_384


class QuantisedRows:
    """(n, d) rows in eight bits, each with its own scale.

    Args:
        vectors: (n, d) rows; read in blocks.

    Attributes:
        codes: (n, d) int8.
        scales: (n,) what one step of a row's codes is worth.
        errors: (n,) distance between a row and its copy.
    """

    def __init__(self, vectors: NDArray[Any]) -> None:
        n, d = vectors.shape
        self.codes = np.empty((n, d), dtype=np.int8)
        self.scales: FloatArray = np.empty(n, dtype=np.float32)
        self.errors: FloatArray = np.empty(n, dtype=np.float32)
        for start in range(0, n, BLOCK):
            rows = np.asarray(vectors[start : start + BLOCK], dtype=np.float32)
            part = slice(start, start + len(rows))
            scales = np.maximum(np.abs(rows).max(axis=1) / LEVELS, np.finfo(np.float32).tiny)
            codes = np.rint(rows / scales[:, None])
            self.codes[part], self.scales[part] = codes, scales
            self.errors[part] = np.linalg.norm(rows - codes * scales[:, None], axis=1)

    def __len__(self) -> int:
        return len(self.codes)

    def like(self, vectors: FloatArray) -> QuantisedRows:
        """Other vectors, kept in the same way."""
        return QuantisedRows(vectors)

    def take(self, positions: list[int]) -> QuantisedRows:
        """Some of the rows."""
        chosen = object.__new__(QuantisedRows)
        chosen.codes, chosen.scales, chosen.errors = (
            self.codes[positions],
            self.scales[positions],
            self.errors[positions],
        )
        return chosen

    def products(self, vectors: QuantisedRows, part: slice | NDArray[np.intp]) -> FloatArray:
        """(m, rows) products of the copies of some rows with the copies of `vectors`."""
        import simsimd

        raw = simsimd.cdist(self.codes[part], vectors.codes, metric="dot", out_dtype="float32")
        scaled = np.asarray(raw).T * self.scales[part]
        scaled *= vectors.scales[:, None]
        return np.asarray(scaled, dtype=np.float32)


class FloatRows:
    """(n, d) rows as they are, float32 or float16.

    Args:
        vectors: (n, d) rows; a memory map is read in parts.
    """

    def __init__(self, vectors: NDArray[Any]) -> None:
        self.vectors = vectors
        self.errors: FloatArray = np.zeros(len(vectors), dtype=np.float32)

    def __len__(self) -> int:
        return len(self.vectors)

    def like(self, vectors: FloatArray) -> FloatRows:
        """Other vectors, kept in the same way."""
        return FloatRows(np.ascontiguousarray(vectors, dtype=np.float32))

    def take(self, positions: list[int]) -> FloatRows:
        """Some of the rows."""
        return FloatRows(self.vectors[positions])

    def products(self, vectors: FloatRows, part: slice | NDArray[np.intp]) -> FloatArray:
        """(m, rows) products of some rows with `vectors`."""
        import simsimd

        rows = np.ascontiguousarray(self.vectors[part], dtype=np.float32)
        raw = simsimd.cdist(rows, vectors.vectors, metric="dot", out_dtype="float32")
        products: FloatArray = np.asarray(raw, dtype=np.float32).T
        return products
