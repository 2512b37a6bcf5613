"""A pool of image vectors in memory or memory-mapped, and the exact top of it under a query.

Scoring is one pass over the rows, in blocks, so that memory stays bounded whatever the size of the pool: for the
holistic vector and all concepts together, or, where only the top is wanted, for the one or few vectors that tell which
rows may be in it (see `first_pass`). A pool may keep an eight-bit copy of its rows: scores from it have a known largest
error, and the few rows that it leaves in doubt are scored again in full precision.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, InvalidOption
from lcse_plugins.retrieval.first_pass import ROUNDING, FirstPass, rounding_reach
from lcse_plugins.retrieval.leaders import Leaders
from lcse_plugins.retrieval.quantised import FloatRows, QuantisedRows
from lcse_plugins.retrieval.tables import as_numbers, unit_rows
from lcse_plugins.scoring.arguments import check_limits
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate

__all__ = ["VectorPool", "top_indices"]

BLOCK = 16_384
"""Rows scored at a time."""

LARGE = 2_048
"""Rows from which on a first pass pays."""


class VectorPool:
    """Image vectors to rank, with their identities.

    Args:
        vectors: (n, d) rows, float32 or float16 (others are converted); a numpy memory map is not loaded.
        ids: One identity per row; by default its position.
        candidates: The candidates the rows were taken from, to be handed back; instead of `ids`.
        assume_unit: Trust that rows are finite and of length one instead of checking and normalising a copy.
        quantised: Keep an eight-bit copy for a first pass: a quarter more memory, a fraction of the time, same result.
        cached_columns: Remember the similarities of this many concepts, for queries that need those of all rows, as
            "not a or not b" does; each costs n float32 numbers.

    Raises:
        InvalidCandidate: the pool is empty, its rows differ in length, or one is zero, NaN or infinite.
        InvalidOption: `cached_columns` is negative.
    """

    _block = BLOCK

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
        rows = as_numbers(vectors)
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
            InvalidCandidate: there are no candidates, or a vector cannot be used.
        """
        if not candidates:
            raise InvalidCandidate("there are no image vectors to rank; index some images first")
        rows = [as_numbers(candidate.vector).ravel() for candidate in candidates]
        lengths = sorted({len(row) for row in rows})
        if len(lengths) > 1:
            raise InvalidCandidate(f"candidates have vectors of different lengths: {lengths}; use one encoder for all")
        return cls(np.stack(rows), candidates=candidates)

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
            InvalidCandidate: no position was given.
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

        Every limit gives the head of one ranking, in which rows that are the same share one score. Without logic in
        the query that score is `vectors @ text`, bit for bit: of the first of several equal rows, since BLAS may give
        the others another last bit. Eight-bit and float16 pools give it up to the last bits.

        Args:
            encoded: The query.
            limit: How many; None for all.
            min_truth: Leave out rows whose truth is below.

        Raises:
            InvalidOption: `limit` or `min_truth` is out of range.
        """
        check_limits(limit, min_truth)
        wanted = len(self) if limit is None else min(limit, len(self))
        if encoded.edits_nothing and self.vectors.dtype == np.float32 and not self._quantised:
            return self._plain_top(encoded, wanted, min_truth)
        if min_truth is None and wanted < len(self):
            leaders = self._fast_leaders(encoded, wanted)
            if leaders is not None:
                return leaders.ranked()
        scores, truths = self._score_all(encoded)
        kept = np.arange(len(self)) if min_truth is None else np.flatnonzero(truths >= min_truth)
        best = kept[top_indices(scores[kept], wanted)]
        return best, scores[best]

    def similarities(self, encoded: EncodedQuery, positions: slice | NDArray[np.intp]) -> FloatArray:
        """(k, 1 + m) products of the rows at these positions with the query's vectors."""
        # Not by BLAS: the last bit of what it makes of a row depends on where in the table the row stands. For a few
        # rows its threads also cost more than they save, and go on spinning beside the search's own.
        rows = np.asarray(self.vectors[positions], dtype=np.float32)
        return np.asarray(np.einsum("ij,kj->ik", rows, encoded.matrix))

    def _fast_leaders(self, encoded: EncodedQuery, limit: int) -> Leaders | None:
        """The best rows, found by rough scores; None where it is not known how rough those are."""
        if self._quantised or (len(self) >= LARGE and encoded.plan.linear is None):
            return self._first_pass.leaders(encoded, limit, lambda rows: self._score_rows(encoded, rows))
        if rounding_reach(encoded) is None:
            return None
        leaders, near = Leaders(limit), _near_the_top(self._rough_scores(encoded), limit)
        for start in range(0, len(near), self._block):
            rows = near[start : start + self._block]
            leaders.add(rows, self._score_rows(encoded, rows))
        return leaders

    def _rough_scores(self, encoded: EncodedQuery) -> FloatArray:
        """(n,) scores up to rounding, and up to what is the same for all."""
        linear = encoded.plan.linear
        if linear is not None and self.vectors.dtype == np.float32:
            return np.asarray(self.vectors @ linear.vector)
        matrix = np.ascontiguousarray(encoded.matrix.T)
        return np.concatenate(
            [encoded.scores(np.asarray(self.vectors[part], np.float32) @ matrix) for part in self._parts()]
        )

    def _score_all(self, encoded: EncodedQuery) -> tuple[FloatArray, FloatArray]:
        """(n,) scores and (n,) truths of all rows."""
        scores, truths = np.empty((2, len(self)), dtype=np.float32)
        for part in self._parts():
            scores[part], truths[part] = encoded.score_similarities(self.similarities(encoded, part))
        return scores, truths

    def _parts(self) -> Iterator[slice]:
        return (slice(start, start + self._block) for start in range(0, len(self), self._block))

    def _score_rows(self, encoded: EncodedQuery, positions: NDArray[np.intp]) -> FloatArray:
        return encoded.scores(self.similarities(encoded, positions))

    def _plain_top(
        self, encoded: EncodedQuery, limit: int, min_truth: float | None
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """The top by `vectors @ text`, where rows that are the same share the score of the first of them."""
        products = self.vectors @ encoded.holistic_vector
        kept = np.arange(len(self))
        if min_truth is not None:
            kept = np.flatnonzero(self._score_all(encoded)[1] >= min_truth)
        near = kept[_near_the_top(products[kept], limit)]
        scores = products[near][_first_alike(self.vectors, near)]
        best = top_indices(scores, limit)
        return near[best], scores[best]


def _near_the_top(scores: FloatArray, limit: int) -> NDArray[np.intp]:
    """Positions of the `limit` largest scores, and of those that rounding alone may keep from being among them."""
    if limit >= len(scores):
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, -limit)[-limit] - 2 * ROUNDING)


def _first_alike(vectors: NDArray[Any], positions: NDArray[np.intp]) -> NDArray[np.intp]:
    """(k,) for each of k positions, the place among them of the first whose row is the same, byte for byte."""
    places = np.arange(len(positions))
    _, kinds, counts = np.unique(vectors[positions, 0], return_inverse=True, return_counts=True)
    seen: dict[bytes, int] = {}
    for place in np.flatnonzero(counts[kinds] > 1).tolist():
        places[place] = seen.setdefault(vectors[positions[place]].tobytes(), place)
    return places


def top_indices(scores: NDArray[Any], limit: int) -> NDArray[np.intp]:
    """Positions of the largest scores, in descending order; equal scores keep their order."""
    if limit >= len(scores):
        return np.argsort(-scores, kind="stable")
    threshold = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    above = np.flatnonzero(scores > threshold)
    equal = np.flatnonzero(scores == threshold)[: limit - len(above)]
    chosen = np.sort(np.concatenate([above, equal]))
    return np.asarray(chosen[np.argsort(-scores[chosen], kind="stable")])
