"""An eight-bit copy of vectors: a quarter of the bytes to read, with the distance of each row from its copy."""

from __future__ import annotations

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

    def take(self, positions: list[int]) -> QuantisedRows:
        """Some of the rows."""
        chosen = object.__new__(QuantisedRows)
        chosen.codes, chosen.scales, chosen.errors = (
            self.codes[positions],
            self.scales[positions],
            self.errors[positions],
        )
        return chosen

    def products(self, vectors: QuantisedRows, part: slice) -> FloatArray:
        """(m, rows) products of the copies of the rows in `part` with the copies of `vectors`."""
        import simsimd

        raw = simsimd.cdist(self.codes[part], vectors.codes, metric="dot", out_dtype="float32")
        scaled = np.asarray(raw).T * self.scales[part]
        scaled *= vectors.scales[:, None]
        return np.asarray(scaled, dtype=np.float32)
