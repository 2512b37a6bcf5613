"""A first pass over a pool: find its exact top, reading a quarter of the bytes where there is an eight-bit copy.

Block by block, similarities come from that copy, with a known largest error, or from the rows themselves. A cheap upper
bound of the score leaves a few rows in question; those are scored roughly, and those of them that could still reach the
best so far are scored in full precision. The similarities of concepts can be remembered, for the next query that names
them.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.edit import holistic_share
from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.quantised import FloatRows, QuantisedRows
from lcse_plugins.recent import Recent

__all__ = ["FirstPass", "Leaders", "rounding_reach"]

BLOCK = 32_768
FIRST_BLOCK = 2_048
"""Rows of a thread's first block, which has no floor to compare with."""

FIRST_LOOK = 128
"""Rows of a block scored in full precision before the floor is looked at again; doubled each time."""

ROUNDING = 1e-5
"""What float32 arithmetic itself may change in a score."""

_Positions: TypeAlias = NDArray[np.intp]
_ScoreRows: TypeAlias = Callable[[_Positions], FloatArray]


class Leaders:
    """The best rows seen so far: those whose score is not below the `limit`-th best. Safe to share between threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.floor = np.float32(-np.inf)
        self._positions: _Positions = np.empty(0, dtype=np.intp)
        self._scores: FloatArray = np.empty(0, dtype=np.float32)
        self._lock = threading.Lock()

    def add(self, positions: _Positions, scores: FloatArray) -> None:
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

    def ranked(self) -> tuple[_Positions, FloatArray]:
        """Positions and scores, best first; equal scores in the order of their positions."""
        order = np.lexsort((self._positions, -self._scores))[: self.limit]
        return self._positions[order], self._scores[order]


def rounding_reach(encoded: EncodedQuery) -> tuple[float, float] | None:
    """How far a score moves when similarities do: by at most a |Δ holistic| + b max |Δ concept|; None when unknown.

    In logits a power mean with exponent ≥ -1, like the minimum and the maximum, moves no further than its arguments.
    """
    config = encoded.config
    if encoded.plan.linear is not None:
        return 1.0, 0.0
    if config.aggregator == "probabilistic":
        return None
    if config.aggregator == "power" and min(config.gamma_and, config.gamma_or) < -1.0:
        return None
    share = holistic_share(encoded.tree, config)
    return share, 2.0 if config.mode == "lcse" else 1.0 - share


class FirstPass:
    """The search through the rows of a pool, or through an eight-bit copy of them.

    Args:
        rows: (n, d) unit rows.
        cached_columns: How many concepts' similarities to remember; each costs n float32 numbers.
    """

    def __init__(self, rows: QuantisedRows | FloatRows, *, cached_columns: int = 0) -> None:
        self._rows: Any = rows
        self._columns: Recent[bytes, FloatArray] = Recent(cached_columns)
        self._threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def leaders(self, encoded: EncodedQuery, limit: int, score_rows: _ScoreRows) -> Leaders | None:
        """The best `limit` rows and their exact scores; None when rounding errors are not bounded for the query.

        Args:
            encoded: The query.
            limit: How many.
            score_rows: Gives the exact scores of rows at the given positions.
        """
        reach = rounding_reach(encoded)
        if reach is None:
            return None
        work = self._prepare(encoded, reach)
        leaders, spans = Leaders(limit), self._spans()
        if len(spans) == 1:
            self._scan(work, spans[0], leaders, score_rows)
        else:
            with ThreadPoolExecutor(len(spans)) as threads:
                list(threads.map(lambda span: self._scan(work, span, leaders, score_rows), spans))
        self._columns.keep({work.names[i]: column for i, column in work.kept.items()})
        return leaders

    def _prepare(self, encoded: EncodedQuery, reach: tuple[float, float]) -> _Work:
        linear = encoded.plan.linear
        vectors = encoded.matrix if linear is None else linear.vector[None, :]
        copies = self._rows.like(vectors)
        lengths, missed = np.linalg.norm(vectors, axis=1), copies.errors
        # <v, t> - <v', t'> = <v - v', t> + <v', t - t'>, and a copy is at most |v - v'| longer than a unit row.
        per_error = reach[0] * (lengths[0] + missed[0]) + reach[1] * (lengths + missed)[1:].max(initial=0.0)
        constant = reach[0] * missed[0] + reach[1] * missed[1:].max(initial=0.0) + ROUNDING
        names = [b"", *(row.tobytes() for row in vectors[1:])]
        remembered = self._columns.known(names)
        known = {i: remembered[name] for i, name in enumerate(names) if name in remembered}
        missing = [i for i in range(len(names)) if i not in known]
        kept = {i: np.empty(len(self._rows), np.float32) for i in missing[1:]} if self._columns.size else {}
        margin = (np.float32(per_error), np.float32(constant))
        return _Work(encoded, copies.take(missing), missing, known, kept, names, margin)

    def _scan(self, work: _Work, span: tuple[int, int], leaders: Leaders, score_rows: _ScoreRows) -> None:
        for part in _blocks(*span):
            columns = np.empty((len(work.names), part.stop - part.start), dtype=np.float32)
            columns[work.missing] = self._rows.products(work.copies, part)
            for i, column in work.known.items():
                columns[i] = column[part]
            for i, column in work.kept.items():
                column[part] = columns[i]
            margin = self._rows.errors[part] * work.margin[0] + work.margin[1]
            near, highest = work.highest_scores(columns, margin, leaders.floor)
            order = np.argsort(-highest)
            start, size = 0, max(FIRST_LOOK, 4 * leaders.limit)
            while start < len(order) and highest[order[start]] >= leaders.floor:
                rows = near[order[start : start + size]] + part.start
                leaders.add(rows, score_rows(rows))
                start, size = start + size, 2 * size

    def _spans(self) -> list[tuple[int, int]]:
        """Contiguous shares of the rows, one for each thread that has enough to do."""
        shares = max(1, min(self._threads, len(self._rows) // (2 * FIRST_BLOCK)))
        edges = np.linspace(0, len(self._rows), shares + 1).astype(int).tolist()
        return list(itertools.pairwise(edges))


@dataclass(frozen=True, eq=False)
class _Work:
    """One query's first pass: columns still to compute, columns known, columns to keep, and the error of a score.

    The error is `margin[0]` times the rounding error of the row, plus `margin[1]`.
    """

    encoded: EncodedQuery
    copies: QuantisedRows | FloatRows
    missing: list[int]
    known: dict[int, FloatArray]
    kept: dict[int, FloatArray]
    names: list[bytes]
    margin: tuple[np.float32, np.float32]

    def highest_scores(
        self, columns: FloatArray, margin: FloatArray, floor: np.float32
    ) -> tuple[_Positions, FloatArray]:
        """Positions in the block of rows that may reach `floor`, and the most they may score."""
        plan = self.encoded.plan
        if plan.linear is not None:
            highest = columns[0] + margin
            highest += np.float32(plan.linear.offset)
            near = np.flatnonzero(highest >= floor)
            return near, highest[near]
        near = np.arange(columns.shape[1])
        if np.isfinite(floor):
            near = np.flatnonzero(self.encoded.score_ceiling(columns.T) + margin >= floor)
        highest = self.encoded.scores(columns[:, near].T) + margin[near]
        reaching = highest >= floor
        return near[reaching], highest[reaching]


def _blocks(start: int, stop: int) -> Iterator[slice]:
    size = FIRST_BLOCK
    while start < stop:
        yield slice(start, min(start + size, stop))
        start, size = start + size, BLOCK
