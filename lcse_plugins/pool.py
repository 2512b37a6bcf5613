"""A pool of image vectors in memory or memory-mapped, and the exact top of it under a query.

Scoring is one pass over the rows for the holistic vector and all concepts together, in blocks, so that memory stays
bounded whatever the size of the pool. A pool may keep an eight-bit copy of its rows: scores from it have a known
largest error, and the few rows that it leaves in doubt are scored again in full precision.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, InvalidOption
from lcse_plugins.first_pass import FirstPass, Leaders
from lcse_plugins.quantised import FloatRows, QuantisedRows
from lcse_plugins.results import Candidate

__all__ = ["VectorPool", "top_indices", "unit_rows"]

BLOCK = 16_384
"""Rows scored at a time."""

LARGE = 20_000
"""Rows from which on a first pass pays without an eight-bit copy."""

UNIT_TOLERANCE = 1e-4
"""Rows this close to length one are taken as they are."""

_Scored: TypeAlias = "tuple[slice, FloatArray]"


class VectorPool:
    """Image vectors to rank, with their identities.

    Args:
        vectors: (n, d) rows, float32 or float16 (others are converted); a numpy memory map is not loaded.
        ids: One identity per row; by default its position.
        candidates: The candidates the rows were taken from, to be handed back; instead of `ids`.
        assume_unit: Trust that rows are finite and of length one instead of checking and normalising a copy.
        quantised: Keep an eight-bit copy for a first pass: a quarter more memory, a fraction of the time, same result.
        cached_columns: Remember the similarities of this many concepts; each costs n float32 numbers.

    Raises:
        InvalidCandidate: the pool is empty, its rows differ in length, or one is zero, NaN or infinite.
        InvalidOption: `cached_columns` is negative.
    """

    def __init__(
        self,
        vectors: ArrayLike,
        *,
        ids: Sequence[Hashable] | None = None,
        candidates: Sequence[Candidate] | None = None,
        assume_unit: bool = False,
        quantised: bool = False,
        cached_columns: int = 0,
    ) -> None:
        rows = vectors if isinstance(vectors, np.ndarray) else _table(vectors)
        if cached_columns < 0:
            raise InvalidOption(f"cached_columns is at least 0, not {cached_columns}")
        if rows.ndim != 2 or not rows.shape[1]:
            raise InvalidCandidate(f"image vectors form a table (n, d), not shape {rows.shape}")
        for name, column in (("ids", ids), ("candidates", candidates)):
            if column is not None and len(column) != len(rows):
                raise InvalidCandidate(f"{len(column)} {name} for {len(rows)} vectors")
        self.vectors: NDArray[Any] = rows if assume_unit else unit_rows(rows)
        self._quantised = quantised
        self._cached_columns = cached_columns
        self._ids = ids
        self._candidates = candidates

        if quantised:
            self._first_pass  # noqa: B018  (the copy is made now, not at the first query)

    @cached_property
    def _first_pass(self) -> FirstPass:
        rows = QuantisedRows(self.vectors) if self._quantised else FloatRows(self.vectors)
        return FirstPass(rows, cached_columns=self._cached_columns)

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> VectorPool:
        """A pool of candidates.

        Raises:
            InvalidCandidate: there are none, or a vector cannot be used.
        """
        if not candidates:
            raise InvalidCandidate("there are no image vectors to rank; index some images first")
        lengths = sorted({np.size(candidate.vector) for candidate in candidates})
        if len(lengths) > 1:
            raise InvalidCandidate(f"candidates have vectors of different lengths: {lengths}; use one encoder for all")
        return cls(np.stack([np.ravel(candidate.vector) for candidate in candidates]), candidates=candidates)

    def candidate(self, position: int) -> Candidate:
        """The candidate at a position of the pool."""
        if self._candidates is not None:
            return self._candidates[position]
        return Candidate(
            id=position if self._ids is None else self._ids[position],
            vector=np.asarray(self.vectors[position], dtype=np.float32),
        )

    def part(self, positions: Sequence[int]) -> VectorPool:
        """A pool of the candidates at these positions alone.

        Raises:
            InvalidCandidate: there are none.
        """
        return VectorPool.of([self.candidate(position) for position in positions])

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(self.vectors.shape[1])

    def top(
        self, encoded: EncodedQuery, *, limit: int | None = None, min_truth: float | None = None
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Positions and scores of the best rows, best first; equal scores keep the order of the pool.

        Args:
            encoded: The query.
            limit: How many; None for all.
            min_truth: Leave out rows whose truth is below.
        """
        if limit is None or limit >= len(self):
            scores, truths = self._score_all(encoded)
            kept = np.arange(len(self)) if min_truth is None else np.flatnonzero(truths >= min_truth)
            best = kept[top_indices(scores[kept], limit)]
            return best, scores[best]
        leaders = None
        if min_truth is None and (self._quantised or (len(self) >= LARGE and encoded.plan.linear is None)):
            leaders = self._first_pass.leaders(encoded, limit, lambda rows: self._score_rows(encoded, rows))
        if leaders is None:
            leaders = Leaders(limit)
            for part, block in self._exact_blocks(encoded, min_truth):
                near = np.flatnonzero(block > -np.inf)
                leaders.add(near + part.start, block[near])
        return leaders.ranked()

    def similarities(self, encoded: EncodedQuery, positions: slice | NDArray[np.intp]) -> FloatArray:
        """(k, 1 + m) products of the rows at these positions with the query's vectors."""
        return np.asarray(np.asarray(self.vectors[positions], dtype=np.float32) @ encoded.matrix.T)

    def _score_all(self, encoded: EncodedQuery) -> tuple[FloatArray, FloatArray]:
        """(n,) scores and (n,) truths of all rows."""
        scores = np.empty(len(self), dtype=np.float32)
        truths = np.empty(len(self), dtype=np.float32)
        matrix = np.ascontiguousarray(encoded.matrix.T)
        for part, block in self._blocks():
            scores[part], truths[part] = encoded.score_similarities(block @ matrix)
        if encoded.edits_nothing and self.vectors.dtype == np.float32:
            scores = self.vectors @ encoded.holistic_vector
        return scores, truths

    def _exact_blocks(self, encoded: EncodedQuery, min_truth: float | None) -> Iterator[_Scored]:
        """Positions and scores, block by block."""
        linear = encoded.plan.linear
        if linear is not None and min_truth is None and self.vectors.dtype == np.float32:
            scores = self.vectors @ linear.vector
            yield slice(0, len(self)), scores + np.float32(linear.offset) if linear.offset else scores
            return
        matrix = np.ascontiguousarray(encoded.matrix.T)
        for part, block in self._blocks():
            scores, truths = encoded.score_similarities(block @ matrix)
            yield part, scores if min_truth is None else np.where(truths >= min_truth, scores, -np.inf)

    def _score_rows(self, encoded: EncodedQuery, positions: NDArray[np.intp]) -> FloatArray:
        rows = np.asarray(self.vectors[positions], dtype=np.float32)
        linear = encoded.plan.linear
        # Not by BLAS: for a few rows its threads cost more than they save, and go on spinning beside the search's own.
        if linear is not None:
            return np.asarray(np.einsum("ij,j->i", rows, linear.vector) + np.float32(linear.offset))
        return encoded.scores(np.einsum("ij,kj->ik", rows, encoded.matrix))

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        for start in range(0, len(self), BLOCK):
            part = slice(start, min(start + BLOCK, len(self)))
            yield part, np.asarray(self.vectors[part], dtype=np.float32)


def _table(vectors: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(vectors)
    except (TypeError, ValueError) as error:
        raise InvalidCandidate(f"image vectors form a table (n, d) of numbers: {error}") from error


def top_indices(scores: NDArray[Any], limit: int | None) -> NDArray[np.intp]:
    """Positions of the largest scores, in descending order; equal scores keep their order."""
    if limit is None or limit >= len(scores):
        return np.argsort(-scores, kind="stable")
    if limit <= 0:
        raise InvalidOption(f"limit must be positive, not {limit}")
    threshold = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    above = np.flatnonzero(scores > threshold)
    equal = np.flatnonzero(scores == threshold)[: limit - len(above)]
    chosen = np.sort(np.concatenate([above, equal]))
    return np.asarray(chosen[np.argsort(-scores[chosen], kind="stable")])


def unit_rows(vectors: NDArray[Any]) -> NDArray[Any]:
    """(n, d) rows of length one: the array itself when they are, else a normalised copy.

    Raises:
        InvalidCandidate: there are no rows, or one is zero, NaN or infinite.
    """
    if not len(vectors):
        raise InvalidCandidate("there are no image vectors to rank; index some images first")
    if vectors.dtype not in (np.float32, np.float16):
        if not np.issubdtype(vectors.dtype, np.floating) and not np.issubdtype(vectors.dtype, np.integer):
            raise InvalidCandidate(f"image vectors must be numbers, not {vectors.dtype}")
        with np.errstate(over="ignore"):
            vectors = vectors.astype(np.float32)
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
    tolerance = UNIT_TOLERANCE if vectors.dtype == np.float32 else 10 * UNIT_TOLERANCE
    if np.all(np.abs(lengths - 1.0) <= tolerance):
        return vectors
    return np.asarray(vectors / lengths[:, None], dtype=vectors.dtype)
