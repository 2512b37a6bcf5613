"""A pool of image vectors in memory or memory-mapped, and the exact top of it under a query.

Rows are multiplied in blocks, so that memory stays bounded whatever the size of the pool. Where only the top is wanted,
the products with the vectors of the query's bounds, mostly one or two, tell the most that each row can score. The rows
that promise most are scored exactly; they set the floor that others have to reach, and few can.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.retrieval.plan import ROUNDING, Bound
from lcse_plugins.retrieval.tables import as_numbers, row_lengths, unit_rows
from lcse_plugins.scoring.arguments import check_limits
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranked, Ranking

__all__ = ["Found", "VectorPool", "rank_pool", "top_indices"]

BLOCK = 16_384
"""Rows scored at a time."""

CACHED_ROWS = 4_096
"""Rows that the processor still has at hand for the next vector they are multiplied with."""

LARGE = 1_024
"""Rows from which on bounds pay."""

MOST_BOUNDS = 6
"""Bounds whose products cost less than scoring all rows."""

FIRST_LOOK = 256
"""Rows scored to find the floor that others have to reach; doubled while more are in question."""

Positions: TypeAlias = NDArray[np.intp]


class Found(NamedTuple):
    """Rows of a pool, best first.

    Attributes:
        positions: (k,) where they stand.
        scores: (k,) what they were ranked by.
        truths: (k,) how far the query holds for each.
        similarities: (k, 1 + m) products with the query's vectors.
    """

    positions: Positions
    scores: FloatArray
    truths: FloatArray
    similarities: FloatArray

    def take(self, chosen: NDArray[Any]) -> Found:
        """Some of the rows, in the order chosen."""
        return Found(self.positions[chosen], self.scores[chosen], self.truths[chosen], self.similarities[chosen])


class VectorPool:
    """Image vectors to rank, with their identities.

    Args:
        vectors: (n, d) rows of numbers. A numpy memory map is read block by block and never loaded as a whole.
        ids: One identity per row; by default its position.
        candidates: The candidates the rows were taken from, to be handed back; instead of `ids`.
        assume_unit: Trust that rows are finite and of length one instead of checking and normalising them.

    Raises:
        InvalidCandidate: the pool is empty, its rows differ in length, or one is zero, NaN or infinite.
    """

    def __init__(
        self,
        vectors: ArrayLike,
        *,
        ids: Sequence[Hashable] | None = None,
        candidates: Sequence[Candidate] | None = None,
        assume_unit: bool = False,
    ) -> None:
        rows = as_numbers(vectors)
        if rows.ndim != 2 or not rows.shape[1]:
            raise InvalidCandidate(f"image vectors form a table (n, d), not shape {rows.shape}")
        for name, column in (("ids", ids), ("candidates", candidates)):
            if column is not None and len(column) != len(rows):
                raise InvalidCandidate(f"{len(column)} {name} for {len(rows)} vectors")
        lengths = None
        if isinstance(rows, np.memmap) and not assume_unit:
            lengths = row_lengths(rows)
        elif not assume_unit:
            rows = unit_rows(rows)
        self.vectors: NDArray[Any] = rows
        self._lengths = None if lengths is None else lengths.astype(np.float32)
        self._ids = ids
        self._candidates = candidates

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> VectorPool:
        """A pool of candidates.

        Raises:
            InvalidCandidate: there are no candidates, or a vector cannot be used.
        """
        if not candidates:
            raise InvalidCandidate("there are no image vectors to rank; index some images first")
        rows = [as_numbers(candidate.vector).ravel() for candidate in candidates]
        lengths = sorted({len(row) for row in rows})
        if len(lengths) > 1:
            raise InvalidCandidate(f"candidates have vectors of different lengths: {lengths}; use one encoder for all")
        return cls(np.stack(rows), candidates=candidates)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(self.vectors.shape[1])

    def candidate(self, position: int) -> Candidate:
        """The candidate at a position of the pool."""
        if self._candidates is not None:
            return self._candidates[position]
        vector = np.asarray(self.vectors[position], dtype=np.float32)
        if self._lengths is not None:
            vector = vector / self._lengths[position]
        return Candidate(id=position if self._ids is None else self._ids[position], vector=vector)

    def part(self, positions: Sequence[int]) -> VectorPool:
        """A pool of the candidates at these positions alone.

        Raises:
            InvalidCandidate: no position was given.
        """
        return VectorPool.of([self.candidate(position) for position in positions])

    def top(
        self, encoded: EncodedQuery, *, limit: int | None = None, min_truth: float | None = None
    ) -> tuple[Positions, FloatArray]:
        """Positions and scores of the best rows; see `best`."""
        found = self.best(encoded, limit=limit, min_truth=min_truth)
        return found.positions, found.scores

    def best(self, encoded: EncodedQuery, *, limit: int | None = None, min_truth: float | None = None) -> Found:
        """The best rows, best first; equal scores keep the order of the pool.

        Without logic in the query scores are `vectors @ text`, bit for bit.

        Args:
            encoded: The query.
            limit: How many; None for all.
            min_truth: Leave out rows whose truth is below.

        Raises:
            InvalidOption: `limit` or `min_truth` is out of range.
        """
        check_limits(limit, min_truth)
        top = _TopK(len(self) if limit is None else min(limit, len(self)), min_truth)
        everything = [slice(start, start + BLOCK) for start in range(0, max(1, len(self)), BLOCK)]
        if encoded.edits_nothing:
            plain = self._products(encoded.holistic_vector[None, :])[:, 0]
            for rows in everything if min_truth is not None else [top_indices(plain, top.limit)]:
                top.add(self._scored(encoded, rows, plain))
        elif min_truth is None and len(self) >= max(LARGE, 4 * top.limit) and self._is_bounded(encoded):
            self._search_under(encoded.plan.bounds or (), encoded, top)
        else:
            for rows in everything:
                top.add(self._scored(encoded, rows))
        return top.ranked()

    def similarities(self, encoded: EncodedQuery, positions: slice | Positions) -> FloatArray:
        """(k, 1 + m) similarities of the rows at these positions to the query's vectors."""
        return self._products(encoded.matrix, positions)

    def _is_bounded(self, encoded: EncodedQuery) -> bool:
        """Whether bounds tell what no score exceeds, for less than scoring all rows costs."""
        return 0 < len(encoded.plan.bounds or ()) <= MOST_BOUNDS

    def _search_under(self, bounds: Sequence[Bound], encoded: EncodedQuery, top: _TopK) -> None:
        """Add the rows that can be among the best, by what no score exceeds."""
        highest = self._products(np.stack([bound.vector for bound in bounds]))
        highest = (highest + np.array([bound.offset + ROUNDING for bound in bounds], dtype=np.float32)).max(axis=1)
        size = max(FIRST_LOOK, 2 * top.limit)
        first = np.argpartition(highest, -min(size, len(highest)))[-size:]
        top.add(self._scored(encoded, first))
        highest[first] = -np.inf
        near = np.flatnonzero(highest >= top.floor)
        near = near[np.argsort(-highest[near])]
        while len(near) and highest[near[0]] >= top.floor:
            top.add(self._scored(encoded, near[:size]))
            near, size = near[size:], min(2 * size, BLOCK)

    def _scored(self, encoded: EncodedQuery, rows: slice | Positions, plain: FloatArray | None = None) -> Found:
        """Rows with their exact scores; with the `plain` similarities of all rows, if they are known already."""
        similarities = self.similarities(encoded, rows)
        if plain is not None:
            similarities[:, 0] = plain[rows]
        positions = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        return Found(positions, *encoded.score_similarities(similarities), similarities)

    def _products(self, matrix: FloatArray, positions: slice | Positions = slice(None)) -> FloatArray:
        """(n, k) products of rows with (k, d) vectors."""
        rows = self.vectors[positions]
        products: FloatArray = np.empty((len(matrix), len(rows)), dtype=np.float32).T
        if len(matrix) == 1 and rows.dtype == np.float32:
            products[:, 0] = rows @ matrix[0]
        else:
            for start in range(0, len(rows), CACHED_ROWS):
                block = np.asarray(rows[start : start + CACHED_ROWS], dtype=np.float32)
                for place, vector in enumerate(matrix):  # one by one: BLAS is slow at tables with few columns
                    products[start : start + CACHED_ROWS, place] = block @ vector
        if self._lengths is not None:
            products /= self._lengths[positions][:, None]
        return products


def rank_pool(
    encoded: EncodedQuery, pool: VectorPool, *, limit: int | None = None, min_truth: float | None = None
) -> Ranking:
    """The exact ranking of a pool."""
    if pool.dimension != encoded.matrix.shape[1]:
        raise InvalidCandidate(
            f"image vectors have {pool.dimension} dimensions, the query's have {encoded.matrix.shape[1]}; "
            "encode both with the same encoder"
        )
    found = pool.best(encoded, limit=limit, min_truth=min_truth)
    columns = (
        found.positions.tolist(),
        found.scores.tolist(),
        found.truths.tolist(),
        found.similarities[:, 0].tolist(),
        encoded.evidence(found.similarities),
        encoded.satisfied(found.similarities, found.truths, min_truth=min_truth).tolist(),
    )
    results = [Ranked(pool.candidate(position), *values) for position, *values in zip(*columns, strict=True)]
    return Ranking(results, parse=encoded.parse, mode=encoded.config.mode, exact=True)


class _TopK:
    """The best rows so far: those whose score is not below the `limit`-th best."""

    def __init__(self, limit: int, min_truth: float | None) -> None:
        self.limit = limit
        self.floor = np.float32(-np.inf)
        self._min_truth = min_truth
        self._kept: list[Found] = []

    def add(self, found: Found) -> None:
        """Take in rows."""
        near = found.scores >= self.floor
        if self._min_truth is not None:
            near &= found.truths >= self._min_truth
        self._kept.append(found.take(near))
        if sum(len(part.scores) for part in self._kept) >= 2 * self.limit:
            self._compact()

    def ranked(self) -> Found:
        """The rows, best first; equal scores in the order of their positions."""
        self._compact()
        (found,) = self._kept
        return found.take(np.lexsort((found.positions, -found.scores))[: self.limit])

    def _compact(self) -> None:
        found = Found(*(np.concatenate(columns) for columns in zip(*self._kept, strict=True)))
        if len(found.scores) > self.limit:
            self.floor = np.partition(found.scores, -self.limit)[-self.limit]
            found = found.take(found.scores >= self.floor)
        self._kept = [found]


def top_indices(scores: NDArray[Any], limit: int) -> Positions:
    """Positions of the largest scores, in descending order; equal scores keep their order."""
    if limit >= len(scores):
        return np.argsort(-scores, kind="stable")
    threshold = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    above = np.flatnonzero(scores > threshold)
    equal = np.flatnonzero(scores == threshold)[: limit - len(above)]
    chosen = np.sort(np.concatenate([above, equal]))
    return np.asarray(chosen[np.argsort(-scores[chosen], kind="stable")])
