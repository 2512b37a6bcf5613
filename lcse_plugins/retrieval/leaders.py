"""The best rows of a pool so far, kept while many are looked at."""

from __future__ import annotations

import threading
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import FloatArray

__all__ = ["Leaders", "Positions"]

Positions: TypeAlias = NDArray[np.intp]
"""(k,) places of rows in a pool."""


class Leaders:
    """The best rows seen so far: those whose score is not below the `limit`-th best. Safe to share between threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.floor = np.float32(-np.inf)
        self._positions: Positions = np.empty(0, dtype=np.intp)
        self._scores: FloatArray = np.empty(0, dtype=np.float32)
        self._lock = threading.Lock()

    def add(self, positions: Positions, scores: FloatArray) -> None:
        """Take in rows with their scores."""
        near = scores >= self.floor
        if not near.any():
            return
        with self._lock:
            all_positions = np.concatenate([self._positions, positions[near]])
            all_scores = np.concatenate([self._scores, scores[near]])
            if len(all_scores) >= self.limit:
                self.floor = np.partition(all_scores, -self.limit)[-self.limit]
            kept = all_scores >= self.floor
            self._positions, self._scores = all_positions[kept], all_scores[kept]

    def ranked(self) -> tuple[Positions, FloatArray]:
        """Positions and scores, best first; equal scores in the order of their positions."""
        order = np.lexsort((self._positions, -self._scores))[: self.limit]
        return self._positions[order], self._scores[order]
