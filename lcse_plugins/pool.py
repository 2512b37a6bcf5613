"""A pool of image vectors in memory or memory-mapped, and the exact top of it under a query.

Scoring is one pass over the rows for the holistic vector and all concepts together, in blocks, so that memory stays
bounded whatever the size of the pool. A pool may keep an eight-bit copy of its rows: scores from it have a known
largest error, and the few rows that it leaves in doubt are scored again in full precision.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lcse_plugins.edit import uses_holistic
from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, InvalidOption
from lcse_plugins.quantised import QuantisedRows
from lcse_plugins.results import Candidate

__all__ = ["VectorPool", "rounding_reach", "top_indices", "unit_rows"]

BLOCK = 16_384
"""Rows scored at a time."""

UNIT_TOLERANCE = 1e-4
"""Rows this close to length one are taken as they are."""

ROUNDING = 1e-5
"""What float32 arithmetic itself may change in a score."""

_Scored: TypeAlias = "tuple[slice, FloatArray]"


class VectorPool:
    """Image vectors to rank, with their identities.

    Args:
        vectors: (n, d) rows, float32 or float16 (others are converted); a numpy memory map is not loaded.
        ids: One identity per row; by default its position.
        candidates: The candidates the rows were taken from, to be handed back; instead of `ids`.
        assume_unit: Trust that rows are finite and of length one instead of checking and normalising a copy.
        quantised: Keep an eight-bit copy for a first pass: a quarter more memory, a fraction of the time, same result.

    Raises:
        InvalidCandidate: the pool is empty or a row is zero, NaN or infinite.
    """

    def __init__(
        self,
        vectors: ArrayLike,
        *,
        ids: Sequence[Hashable] | None = None,
        candidates: Sequence[Candidate] | None = None,
        assume_unit: bool = False,
        quantised: bool = False,
    ) -> None:
        rows = np.asarray(vectors) if not isinstance(vectors, np.ndarray) else vectors
        if rows.ndim != 2 or not rows.shape[1]:
            raise InvalidCandidate(f"image vectors form a table (n, d), not shape {rows.shape}")
        for name, column in (("ids", ids), ("candidates", candidates)):
            if column is not None and len(column) != len(rows):
                raise InvalidCandidate(f"{len(column)} {name} for {len(rows)} vectors")
        self.vectors: NDArray[Any] = rows if assume_unit else unit_rows(rows)
        self._copy = QuantisedRows(self.vectors) if quantised else None
        self._ids = ids
        self._candidates = candidates

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
        reach = None if self._copy is None or min_truth is not None else rounding_reach(encoded)
        if self._copy is None or reach is None:
            blocks, error = self._exact_blocks(encoded, min_truth), 0.0
        else:
            blocks, error = self._approximate_blocks(encoded, self._copy, reach)
        positions, scores = _best_of(blocks, limit, slack=2 * error)
        if error:
            positions, scores = self._settle(encoded, positions, scores, limit, error)
        best = top_indices(scores, limit)
        return positions[best], scores[best]

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

    def _approximate_blocks(
        self, encoded: EncodedQuery, copy: QuantisedRows, reach: tuple[float, float]
    ) -> tuple[Iterator[_Scored], float]:
        """Positions and scores by the eight-bit copy, and the largest error of a score."""
        linear = encoded.plan.linear
        vectors = encoded.matrix if linear is None else linear.vector[None, :]
        rounded = QuantisedRows(vectors)
        errors = copy.product_error(vectors, rounded)
        error = float(errors[0]) if linear is not None else float(reach[0] * errors[0] + reach[1] * errors[1:].max())

        def blocks() -> Iterator[_Scored]:
            for start in range(0, len(self), BLOCK):
                part = slice(start, min(start + BLOCK, len(self)))
                products = copy.products(rounded, part)
                if linear is None:
                    yield part, encoded.score_similarities(products.T)[0]
                else:
                    yield part, products[0] + np.float32(linear.offset)

        return blocks(), error + ROUNDING

    def _settle(
        self, encoded: EncodedQuery, positions: NDArray[np.intp], rough: FloatArray, limit: int, error: float
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Exact scores of the rows that may be among the best, given rough ones."""
        first = np.sort(top_indices(rough, 4 * limit))
        kth = np.partition(self._score_rows(encoded, positions[first]), -limit)[-limit]
        positions = positions[rough >= kth - error]
        return positions, self._score_rows(encoded, positions)

    def _score_rows(self, encoded: EncodedQuery, positions: NDArray[np.intp]) -> FloatArray:
        rows = np.asarray(self.vectors[positions], dtype=np.float32)
        linear = encoded.plan.linear
        if linear is not None:
            return np.asarray(rows @ linear.vector + np.float32(linear.offset))
        return encoded.score_similarities(rows @ encoded.matrix.T)[0]

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        for start in range(0, len(self), BLOCK):
            part = slice(start, min(start + BLOCK, len(self)))
            yield part, np.asarray(self.vectors[part], dtype=np.float32)


def rounding_reach(encoded: EncodedQuery) -> tuple[float, float] | None:
    """How far a score moves when similarities do: by at most a |Δ holistic| + b max |Δ concept|; None when unknown.

    In logits a power mean with exponent ≥ -1, like the minimum and the maximum, moves no further than its arguments.
    """
    config = encoded.config
    if encoded.plan.linear is not None:
        return 1.0, 0.0
    if config.aggregator == "probabilistic" or (config.aggregator == "power" and config.gamma_and < -1.0):
        return None
    if config.aggregator == "power" and config.gamma_or < -1.0:
        return None
    return float(uses_holistic(encoded.tree, config)), 2.0 if config.mode == "lcse" else 1.0


def _best_of(blocks: Iterator[_Scored], limit: int, *, slack: float) -> tuple[NDArray[np.intp], FloatArray]:
    """Positions, ascending, and scores of all rows within `slack` of the `limit`-th best, reading block by block."""
    positions = np.empty(0, dtype=np.intp)
    scores = np.empty(0, dtype=np.float32)
    floor = np.float32(-np.inf)
    for part, block in blocks:
        near = np.flatnonzero(block >= floor) if np.isfinite(floor) else np.flatnonzero(block > -np.inf)
        positions = np.concatenate([positions, near + part.start])
        scores = np.concatenate([scores, block[near]])
        if len(scores) > limit:
            floor = np.partition(scores, -limit)[-limit] - np.float32(slack)
            kept = scores >= floor
            positions, scores = positions[kept], scores[kept]
    return positions, scores


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
