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
from lcse_plugins.scoring.arguments import check_limits
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.logic import probability
from lcse_plugins.scoring.results import Candidate, Ranked, Ranking

__all__ = ["UNIT_TOLERANCE", "Found", "VectorPool", "as_numbers", "rank_pool", "top_indices", "unit_rows"]

BLOCK = 16_384
"""Rows measured or scored at a time."""

CACHED_ROWS = 4_096
"""Rows that the processor still has at hand for the next vector they are multiplied with."""

LARGE = 1_024
"""Rows from which on a bound pays."""

MOST_BOUNDS = 6
"""Bounds whose products cost less than scoring all rows."""

FIRST_LOOK = 128
"""Rows scored to find the floor that others have to reach; more each time while others are in question."""

UNIT_TOLERANCE = 1e-4
"""Rows this close to length one are taken as they are; those of half precision ten times as far."""

Positions: TypeAlias = NDArray[np.intp]


class Found(NamedTuple):
    """The best rows of a pool, best first; equal scores in the order of the pool.

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


def _joined(parts: Sequence[Found], limit: int) -> Found:
    """The best rows of several lists."""
    if len(parts) == 1:
        return parts[0]
    columns: list[NDArray[Any]] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    best = top_indices(columns[1], limit, columns[0])
    return Found(*(column[best] for column in columns))


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
        limit = len(self) if limit is None else min(limit, len(self))
        plain = self._products(encoded.holistic_vector[None, :])[:, 0] if encoded.edits_nothing else None
        if plain is not None and min_truth is None:
            return self._best_of(encoded, top_indices(plain, limit), limit, plain=plain)
        if min_truth is None and len(self) >= 4 * limit and self._is_bounded(encoded):
            return self._search_under(encoded.plan.bounds or (), encoded, limit)
        parts = [
            self._best_of(encoded, slice(start, start + BLOCK), limit, plain=plain, min_truth=min_truth)
            for start in range(0, max(1, len(self)), BLOCK)
        ]
        return _joined(parts, limit)

    def similarities(self, encoded: EncodedQuery, positions: slice | Positions) -> FloatArray:
        """(k, 1 + m) similarities of the rows at these positions to the query's vectors."""
        return self._products(encoded.matrix, positions)

    def _is_bounded(self, encoded: EncodedQuery) -> bool:
        """Whether bounds tell what no score exceeds, for less than scoring all rows costs."""
        return 0 < len(encoded.plan.bounds or ()) <= min(MOST_BOUNDS, len(self) // LARGE)

    def _search_under(self, bounds: Sequence[Bound], encoded: EncodedQuery, limit: int) -> Found:
        """The best rows, found among those that can be by what no score exceeds."""
        products = self._products(np.stack([bound.vector for bound in bounds])).T
        products += np.array([[bound.offset + ROUNDING] for bound in bounds], dtype=np.float32)
        highest = products.max(axis=0)
        size = max(FIRST_LOOK, 2 * limit)
        first = np.argpartition(highest, -size)[-size:]
        found = self._best_of(encoded, first, limit)
        highest[first] = -np.inf
        near = np.flatnonzero(highest >= _floor(found, limit))
        near = near[np.argsort(-highest[near])]
        while len(near) and highest[near[0]] >= _floor(found, limit):
            found = _joined([found, self._best_of(encoded, near[:size], limit)], limit)
            near, size = near[size:], min(4 * size, BLOCK)
        return found

    def _best_of(
        self,
        encoded: EncodedQuery,
        rows: slice | Positions,
        limit: int,
        *,
        plain: FloatArray | None = None,
        min_truth: float | None = None,
    ) -> Found:
        """The best of some rows, scored exactly; with the `plain` similarities of all rows, if they are known."""
        similarities = self.similarities(encoded, rows)
        if plain is not None:
            similarities[:, 0] = plain[rows]
        scores, truths = encoded.score_similarities(similarities)
        positions = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        if min_truth is not None:
            true = np.flatnonzero(probability(truths) >= min_truth)
            best = true[top_indices(scores[true], limit, positions[true])]
        else:
            best = top_indices(scores, limit, positions)
        return Found(positions[best], scores[best], probability(truths[best]), similarities[best])

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


def top_indices(scores: NDArray[Any], limit: int, positions: Positions | None = None) -> Positions:
    """Where the largest scores stand, best first; equal ones in the order of their positions, or as they come."""
    if limit >= len(scores):
        near: Positions = np.arange(len(scores))
    else:
        near = np.flatnonzero(scores >= np.partition(scores, -limit)[-limit])
    order = np.lexsort((near if positions is None else positions[near], -scores[near]))
    return near[order[:limit]]


def _floor(found: Found, limit: int) -> float:
    """What a row has to reach to be among the best."""
    return float(found.scores[-1]) if len(found.scores) == limit else -np.inf


# ------------------------------------------------------------------------------------- tables of vectors


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
