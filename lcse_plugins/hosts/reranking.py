"""Rank pictures that another search found; what cannot be ranked follows, is left out, or is an error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, LcseError
from lcse_plugins.hosts.text_vectors import COMPARED_RESULTS, StoredResult, TextVectorCheck
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.sources import rank_pool
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = ["OnMissing", "Reranked", "Unranked", "rerank", "usable_vector"]

logger = logging.getLogger(__name__)

OnMissing: TypeAlias = Literal["keep_last", "drop", "raise"]
"""What becomes of what cannot be ranked: it follows the rest in its old order, is left out, or is an error."""

STEP = 1e-4
"""Distance between the scores of unranked results, and of the first of them from the last ranked one."""

T = TypeVar("T")


@dataclass(frozen=True)
class Unranked(Generic[T]):
    """What was found and why it could not be ranked; its score is below all before it, None if nothing was ranked."""

    found: T
    fault: LcseError
    score: float | None


@dataclass(frozen=True)
class Reranked(Generic[T]):
    """The outcome: a ranking whose candidates' payloads are what was found, and what follows it."""

    ranking: Ranking
    unranked: list[Unranked[T]]


def rerank(
    encoded: EncodedQuery,
    found: Sequence[T],
    vectors: Sequence[FloatArray | LcseError],
    *,
    is_picture: Callable[[T], bool],
    limit: int | None,
    min_truth: float | None,
    on_missing: OnMissing = "keep_last",
    keep_texts: int = 0,
    check: TextVectorCheck | None = None,
    stored: Callable[[T, FloatArray], StoredResult] | None = None,
) -> Reranked[T]:
    """Rank what was found. The log tells of pictures that could not be ranked; with a `min_truth` they never follow.

    Args:
        encoded: The query.
        found: What was found, of whatever kind.
        vectors: The (d,) image vector of each, or why it has none.
        is_picture: Whether one of them should have been ranked; texts among pictures need not be.
        limit: How many to return; None for all.
        min_truth: Leave out those that satisfy the query less than this.
        on_missing: What becomes of those without a vector; "raise" raises the first fault.
        keep_texts: How many places of `limit` are kept for texts, whatever `on_missing` says, if there are as many.
        check: Finds vectors of texts among the best; they count as missing. InvalidCandidate if all compared are such.
        stored: What is stored of one of them, for the check.
    """
    texts = [i for i, one in enumerate(found) if isinstance(vectors[i], LcseError) and not is_picture(one)]
    reserved = texts[:keep_texts]
    room = None if limit is None else max(limit - len(reserved), 1)
    ranking, faults = _rank(encoded, found, vectors, room, min_truth, check, stored)
    pictures = {i: fault for i, fault in faults.items() if i not in texts}
    if on_missing == "raise" and (wrong := pictures if keep_texts else faults):
        raise next(iter(wrong.values()))
    if told := faults if len(faults) == len(found) else pictures:
        first = next(iter(told.values()))
        logger.warning("%d of %d results could not be ranked; the first: %s", len(told), len(found), first)
    following = reserved
    if on_missing == "keep_last":
        others = [i for i in faults if i not in reserved and (min_truth is None or i in texts)]
        spare = None if limit is None else limit - len(ranking) - len(reserved)
        following = sorted([*reserved, *others[:spare]])
    scores = [ranking[-1].score - STEP * place if ranking else None for place, _ in enumerate(following, start=1)]
    unranked = [Unranked(found[i], faults[i], score) for i, score in zip(following, scores, strict=True)]
    return Reranked(ranking, unranked)


@np.errstate(over="ignore", invalid="ignore")  # a vector too large for float32 is just not usable
def usable_vector(stored: ArrayLike | None, dimension: int | None = None) -> FloatArray | None:
    """(d,) A stored vector; None if there is none that can be scored: it is zero, not finite, or of another length."""
    if stored is None:
        return None
    row = np.ravel(np.asarray(stored, dtype=np.float32))
    wide = row.astype(np.float64)
    return row if dimension in (None, len(row)) and 0 < wide @ wide < np.inf else None


def _rank(
    encoded: EncodedQuery,
    found: Sequence[T],
    vectors: Sequence[FloatArray | LcseError],
    limit: int | None,
    min_truth: float | None,
    check: TextVectorCheck | None,
    stored: Callable[[T, FloatArray], StoredResult] | None,
) -> tuple[Ranking, dict[int, LcseError]]:
    """The ranking, and by their places the faults of what has no vector, or a vector of its text."""
    faults = {i: vector for i, vector in enumerate(vectors) if isinstance(vector, LcseError)}
    depth = max(limit, COMPARED_RESULTS) if limit is not None and check else limit  # the best alone says little
    while True:
        candidates = [
            Candidate(i, vector, payload=found[i])
            for i, vector in enumerate(vectors)
            if i not in faults and not isinstance(vector, LcseError)
        ]
        ranking = Ranking([], parse=encoded.parse, mode=encoded.config.mode, exact=False)
        if candidates:  # what is found proves nothing about the collection it comes from
            ranking.extend(rank_pool(encoded, VectorPool.of(candidates), limit=depth, min_truth=min_truth))
        if check is None or stored is None:
            return ranking[:limit], faults
        best = [result.candidate for result in ranking[:COMPARED_RESULTS]]
        compared = [stored(candidate.payload, candidate.vector) for candidate in best]
        wrong = check.find_text_vectors(compared)
        if not wrong:
            return ranking[:limit], dict(sorted(faults.items()))
        faults.update({int(str(best[i].id)): InvalidCandidate(check.describe_fault(compared[i])) for i in wrong})
