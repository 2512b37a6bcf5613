"""A first pass over a pool: find its exact top, reading a quarter of the bytes where there is an eight-bit copy.

The products of a row with the vectors of the query's bounds, mostly one or two, tell the most that it can score. The
rows that promise most are scored in full precision; they set the floor that others have to reach, and few can. Those
are scored roughly, and the ones that still may, in full precision.

A query of too many bounds, or of none, needs the products with all its vectors, block by block; those with concepts can
be remembered, for the next query that names them.

Products come from the eight-bit copy, with a known largest error, or from the rows themselves.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np

from lcse_plugins.encoders.lru_cache import Recent
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.retrieval.leaders import Leaders, Positions
from lcse_plugins.retrieval.plan import Bound
from lcse_plugins.retrieval.quantised import FloatRows, QuantisedRows
from lcse_plugins.scoring.edit import score_reach
from lcse_plugins.scoring.encoded import EncodedQuery

__all__ = ["FirstPass", "rounding_reach"]

BLOCK = 32_768
FIRST_BLOCK = 2_048
"""Rows of a thread's first block, which has no floor to compare with."""

FIRST_LOOK = 128
"""Rows of a block scored in full precision before the floor is looked at again; doubled each time."""

SECOND_LOOK = 1_024
"""Rows scored in full precision if the first ones leave more than that in question."""

FEW = 256
"""Rows for which a rough score saves nothing."""

MOST_BOUNDS = 4
"""Bounds whose products cost less than scoring all rows roughly."""

MOST_LEFT = 0.2
"""Share of the rows that bounds may leave in question; if they leave more, they do not pay."""

CACHED_ROWS = 2_048
"""Rows that the processor still has at hand for the next vector they are multiplied with."""

ROUNDING = 1e-5
"""What float32 arithmetic itself may change in a score."""

_ScoreRows: TypeAlias = Callable[[Positions], FloatArray]


def rounding_reach(encoded: EncodedQuery) -> tuple[float, float] | None:
    """How far a score moves with the products it is made of: as `score_reach`, or with the one of a linear score."""
    return (1.0, 0.0) if encoded.plan.linear is not None else score_reach(encoded.tree, encoded.config)


class FirstPass:
    """The search through the rows of a pool, or through an eight-bit copy of them.

    Args:
        rows: (n, d) unit rows.
        cached_columns: How many concepts' similarities to remember; each costs n float32 numbers.
    """

    def __init__(self, rows: QuantisedRows | FloatRows, *, cached_columns: int = 0) -> None:
        self._rows = rows
        self._columns: Recent[bytes, FloatArray] = Recent(cached_columns)
        self._threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def leaders(self, encoded: EncodedQuery, limit: int, score_rows: _ScoreRows) -> Leaders | None:
        """The best `limit` rows and their exact scores; None when rounding errors are not bounded for the query.

        Args:
            encoded: The query.
            limit: How many.
            score_rows: Gives the exact scores of rows at the given positions.
        """
        if rounding_reach(encoded) is None:
            return None
        bounds = encoded.plan.bounds or ()
        found = self._under(bounds, encoded, limit, score_rows) if 0 < len(bounds) <= MOST_BOUNDS else None
        return self._by_columns(encoded, limit, score_rows) if found is None else found

    def _under(
        self, bounds: Sequence[Bound], encoded: EncodedQuery, limit: int, score_rows: _ScoreRows
    ) -> Leaders | None:
        """The leaders, by what no score exceeds; None when that leaves too many rows in question."""
        leaders, highest = Leaders(limit), self._highest(bounds)
        for look in (max(FIRST_LOOK, 4 * limit), max(SECOND_LOOK, 4 * limit)):
            first = _most_promising(highest, look)
            first = first[np.isfinite(highest[first])]  # and not looked at before
            leaders.add(first, score_rows(first))
            highest[first] = -np.inf
            near = np.flatnonzero(highest >= leaders.floor)
            if len(near) <= SECOND_LOOK:
                break
        most = highest[near]
        if len(near) > FEW and encoded.plan.linear is None:
            if len(near) > MOST_LEFT * len(highest):
                return None
            near, most = _Columns(self._rows, encoded, Recent(0)).highest_among(near, leaders.floor)
        _score_best_first(near, most, leaders, score_rows)
        return leaders

    def _highest(self, bounds: Sequence[Bound]) -> FloatArray:
        """(n,) the most that each row can score."""
        vectors = np.stack([bound.vector for bound in bounds])
        offsets = np.array([bound.offset for bound in bounds], dtype=np.float32)
        if isinstance(self._rows, FloatRows) and self._rows.vectors.dtype == np.float32:
            return _largest_product(self._rows.vectors, vectors, offsets + np.float32(ROUNDING))
        each = [_Products(self._rows, vector[None, :], (1.0, 0.0)) for vector in vectors]
        highest = np.full(len(self._rows), -np.inf, dtype=np.float32)

        def fill(span: tuple[int, int]) -> None:
            for part in _blocks(*span):
                for products, offset in zip(each, offsets, strict=True):
                    most = products.of(part)[0] + (products.margins(part) + offset)
                    np.maximum(highest[part], most, out=highest[part])

        self._in_threads(fill)
        return highest

    def _by_columns(self, encoded: EncodedQuery, limit: int, score_rows: _ScoreRows) -> Leaders:
        """The leaders, by the products with all vectors of the query."""
        leaders, columns = Leaders(limit), _Columns(self._rows, encoded, self._columns)

        def scan(span: tuple[int, int]) -> None:
            for part in _blocks(*span):
                near, most = columns.highest_scores(part, leaders.floor)
                _score_best_first(near + part.start, most, leaders, score_rows)

        self._in_threads(scan)
        self._columns.keep(columns.computed)
        return leaders

    def _in_threads(self, work: Callable[[tuple[int, int]], None]) -> None:
        """Do the work for contiguous shares of the rows, one for each thread that has enough to do."""
        shares = max(1, min(self._threads, len(self._rows) // (2 * FIRST_BLOCK)))
        spans = list(itertools.pairwise(np.linspace(0, len(self._rows), shares + 1).astype(int).tolist()))
        if shares == 1:
            return work(spans[0])
        with ThreadPoolExecutor(shares) as threads:
            list(threads.map(work, spans))


def _largest_product(rows: FloatArray, vectors: FloatArray, offsets: FloatArray) -> FloatArray:
    """(n,) the largest, over vectors, of the product of each row with it and its offset; by BLAS, which has threads."""
    if len(vectors) == 1:
        return np.asarray(rows @ vectors[0] + offsets[0])
    largest = np.full(len(rows), -np.inf, dtype=np.float32)
    for start in range(0, len(rows), CACHED_ROWS):  # one by one: BLAS is slow at tables with few columns
        part = slice(start, start + CACHED_ROWS)
        for vector, offset in zip(vectors, offsets, strict=True):
            np.maximum(largest[part], rows[part] @ vector + offset, out=largest[part])
    return largest


def _most_promising(highest: FloatArray, number: int) -> Positions:
    """Positions of about the `number` largest, found by the largest of each stretch of rows."""
    if len(highest) <= number:
        return np.arange(len(highest))
    stretch = max(1, len(highest) // (4 * number))
    tops = np.maximum.reduceat(highest, np.arange(0, len(highest), stretch))
    near = np.flatnonzero(highest >= np.partition(tops, -number)[-number])
    return near if len(near) <= 2 * number else near[np.argpartition(-highest[near], number)[:number]]


def _score_best_first(near: Positions, highest: FloatArray, leaders: Leaders, score_rows: _ScoreRows) -> None:
    """Score rows in full precision, those first that may score most, as long as they may be among the best."""
    order = np.argsort(-highest)
    start, size = 0, max(FIRST_LOOK, 4 * leaders.limit)
    while start < len(order) and highest[order[start]] >= leaders.floor:
        rows = near[order[start : start + size]]
        leaders.add(rows, score_rows(rows))
        start, size = start + size, 2 * size


class _Columns:
    """The products of rows with all vectors of a query, of which those with concepts may be remembered.

    Attributes:
        computed: concept's vector, as bytes → (n,) products of all rows with it, for those to be remembered.
    """

    def __init__(
        self, rows: QuantisedRows | FloatRows, encoded: EncodedQuery, remembered: Recent[bytes, FloatArray]
    ) -> None:
        self._encoded = encoded
        self._names = [b"", *(row.tobytes() for row in encoded.matrix[1:])]
        known = remembered.known(self._names)
        self._known = {i: known[name] for i, name in enumerate(self._names) if name in known}
        self._missing = [i for i in range(len(self._names)) if i not in self._known]
        self._products = _Products(rows, encoded.matrix, rounding_reach(encoded) or (0.0, 0.0), of=self._missing)
        kept = self._missing[1:] if remembered.size else []
        self.computed: dict[bytes, FloatArray] = {self._names[i]: np.empty(len(rows), np.float32) for i in kept}

    def highest_scores(self, part: slice, floor: np.float32) -> tuple[Positions, FloatArray]:
        """Positions in a block of rows that may reach `floor`, and the most they may score."""
        columns = self._with_known(self._products.of(part), part)
        for i in self._missing[1:] if self.computed else ():
            self.computed[self._names[i]][part] = columns[i]
        margins, near = self._products.margins(part), np.arange(columns.shape[1])
        if np.isfinite(floor):
            near = np.flatnonzero(self._encoded.score_ceiling(columns.T) + margins >= floor)
        return _reaching(near, self._encoded.scores(columns[:, near].T) + margins[near], floor)

    def highest_among(self, rows: Positions, floor: np.float32) -> tuple[Positions, FloatArray]:
        """Those of some rows that may reach `floor`, and the most they may score."""
        highest = self._encoded.scores(self._products.of(rows).T) + self._products.margins(rows)
        return _reaching(rows, highest, floor)

    def _with_known(self, computed: FloatArray, part: slice) -> FloatArray:
        """(1 + m, rows) all columns of a block, from those that were missing."""
        if not self._known:
            return computed
        columns = np.empty((len(self._known) + len(self._missing), computed.shape[1]), dtype=np.float32)
        columns[self._missing] = computed
        for i, column in self._known.items():
            columns[i] = column[part]
        return columns


class _Products:
    """Products of rows with a few vectors, and how far off a score is that is made of them.

    Args:
        rows: The rows, or their eight-bit copy.
        vectors: (k, d) vectors.
        reach: How far the score moves with the first product, and with the others.
        of: Places of the vectors whose products are not known yet; by default all.
    """

    def __init__(
        self,
        rows: QuantisedRows | FloatRows,
        vectors: FloatArray,
        reach: tuple[float, float],
        *,
        of: list[int] | None = None,
    ) -> None:
        self._rows: Any = rows
        copies: Any = rows.like(vectors)
        self._copies = copies if of is None else copies.take(of)
        lengths, missed = np.linalg.norm(vectors, axis=1), copies.errors
        # <v, t> - <v', t'> = <v - v', t> + <v', t - t'>, and a copy is at most |v - v'| longer than a unit row.
        per_error = reach[0] * (lengths[0] + missed[0]) + reach[1] * (lengths + missed)[1:].max(initial=0.0)
        constant = reach[0] * missed[0] + reach[1] * missed[1:].max(initial=0.0) + ROUNDING
        self._per_error, self._constant = np.float32(per_error), np.float32(constant)

    def of(self, rows: slice | Positions) -> FloatArray:
        """(k, rows) products of some rows with the vectors."""
        products: FloatArray = self._rows.products(self._copies, rows)
        return products

    def margins(self, rows: slice | Positions) -> FloatArray:
        """(rows,) how far the scores may be off."""
        margins: FloatArray = self._rows.errors[rows] * self._per_error + self._constant
        return margins


def _reaching(near: Positions, highest: FloatArray, floor: np.float32) -> tuple[Positions, FloatArray]:
    kept = highest >= floor
    return near[kept], highest[kept]


def _blocks(start: int, stop: int) -> Iterator[slice]:
    size = FIRST_BLOCK
    while start < stop:
        yield slice(start, min(start + size, stop))
        start, size = start + size, min(4 * size, BLOCK)
