"""Rank pictures that another search found, those without a usable vector set apart."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, TypeVar

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, LcseError
from lcse_plugins.hosts.text_vectors import COMPARED_RESULTS, StoredResult, TextVectorCheck
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.sources import rank_pool
from lcse_plugins.scoring.arguments import check_limits
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = ["OnMissing", "kept_last", "rank_found"]

logger = logging.getLogger(__name__)

OnMissing: TypeAlias = Literal["keep_last", "drop", "raise"]
"""What becomes of what cannot be ranked: it follows the rest in its old order, is left out, or is an error."""

T = TypeVar("T")


def rank_found(
    encoded: EncodedQuery,
    found: Sequence[T],
    vectors: Sequence[FloatArray | LcseError],
    *,
    stored: Callable[[T, FloatArray], StoredResult],
    check: TextVectorCheck,
    limit: int | None,
    min_truth: float | None,
) -> tuple[Ranking, list[tuple[T, LcseError]]]:
    """The best of what was found, as payloads of the results; and what cannot be ranked, in its order, with the fault.

    Among the best, one whose vector is that of its text counts as one without a vector.

    Args:
        encoded: The query.
        found: What was found, of whatever kind.
        vectors: The (d,) image vector of each, or why it has none.
        stored: What is stored of one of them, for the check.
        check: Finds vectors of texts.
        limit: How many to rank; None for all.
        min_truth: Leave out those for which the query holds less than this.

    Raises:
        InvalidCandidate: all vectors compared are those of texts, or they do not fit the query.
        InvalidOption: `limit` or `min_truth` is out of range.
    """
    check_limits(limit, min_truth)
    depth = None if limit is None else max(limit, COMPARED_RESULTS)  # the vector on top says little of the others
    usable = list(vectors)
    while True:
        candidates = [
            Candidate(place, vector, payload=found[place])
            for place, vector in enumerate(usable)
            if not isinstance(vector, LcseError)
        ]
        ranking = _ranking(encoded, candidates, depth, min_truth)
        best = [result.candidate for result in ranking[:COMPARED_RESULTS]]
        compared = [stored(candidate.payload, candidate.vector) for candidate in best]
        wrong = {
            best[i].id: InvalidCandidate(check.describe_fault(compared[i])) for i in check.find_text_vectors(compared)
        }
        if not wrong:
            pairs = zip(found, usable, strict=True)
            return ranking[:limit], [(one, fault) for one, fault in pairs if isinstance(fault, LcseError)]
        usable = [wrong.get(place, vector) for place, vector in enumerate(usable)]


def kept_last(
    missing: Sequence[tuple[T, LcseError]],
    *,
    found_count: int,
    is_picture: Callable[[T], bool],
    on_missing: OnMissing,
    min_truth: float | None,
) -> list[tuple[T, LcseError]]:
    """What of the unranked follows the ranked; with a `min_truth` no picture does, for none is known to reach it.

    The log tells of pictures that could not be ranked, and when nothing at all could be.

    Args:
        missing: What `rank_found` could not rank, with the faults.
        found_count: How many there were to rank.
        is_picture: Whether one of them should have been ranked; texts among pictures need not be.
        on_missing: What is to become of them.
        min_truth: The truth that is asked for.

    Raises:
        LcseError: the first fault, if `on_missing` is "raise".
    """
    if missing and on_missing == "raise":
        raise missing[0][1]
    texts = [(one, fault) for one, fault in missing if not is_picture(one)]
    pictures = [(one, fault) for one, fault in missing if is_picture(one)]
    told = missing if len(missing) == found_count else pictures
    if told:
        logger.warning("%d of %d results could not be ranked; the first: %s", len(told), found_count, told[0][1])
    if on_missing == "drop":
        return []
    return list(missing) if min_truth is None else texts


def _ranking(
    encoded: EncodedQuery, candidates: Sequence[Candidate], limit: int | None, min_truth: float | None
) -> Ranking:
    """The ranking of candidates, which proves nothing of the collection they come from."""
    ranking = Ranking([], parse=encoded.parse, mode=encoded.config.mode, exact=False)
    if candidates:
        ranking.extend(rank_pool(encoded, VectorPool.of(candidates), limit=limit, min_truth=min_truth))
    return ranking
