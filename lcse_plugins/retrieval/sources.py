"""Search a vector index that can only answer "nearest to q": fetch candidates, score them exactly, say what is proved.

The steps are written once, without input or output: `search_steps` yields requests and is sent the answers. A host
drives it with its own client, in a loop or with `await`:

    steps = search_steps(encoded, limit=10)
    step = advance(steps)
    while isinstance(step, SearchRequest):
        step = advance(steps, [fetch(vector, step.depth) for vector in step.vectors])
    return step
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.retrieval.pool import VectorPool, as_numbers, rank_pool
from lcse_plugins.scoring.arguments import check_count, check_limits
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = [
    "Answers",
    "SearchRequest",
    "VectorSource",
    "advance",
    "rank_pool",
    "search_source",
    "search_steps",
]

DEPTH_GROWTH = 4
"""How much deeper each further round searches."""


@runtime_checkable
class VectorSource(Protocol):
    """A collection that answers nearest-vector searches.

    `exhaustive` says whether `nearest` misses nothing (a flat scan) or may (a graph index): only the former can prove a
    result complete.
    """

    @property
    def exhaustive(self) -> bool:
        """Whether `nearest` looks at every image."""
        ...

    def nearest(self, vector: FloatArray, depth: int) -> Sequence[Candidate]:
        """At most `depth` candidates with the largest inner product with `vector`, with their image vectors."""
        ...


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """Searches to run, each by a (d,) vector and `depth` deep."""

    vectors: Sequence[FloatArray]
    depth: int


Answers: TypeAlias = Sequence[Sequence[Candidate | None]]
"""For each search its candidates in order; None stands for one that was found but has no vector to score."""


def search_steps(
    encoded: EncodedQuery,
    *,
    limit: int = 10,
    depth: int = 1000,
    exact: bool = False,
    exhaustive: bool = True,
    min_truth: float | None = None,
) -> Generator[SearchRequest, Answers | None, Ranking]:
    """Find the best images of a query by nearest-vector searches.

    Args:
        encoded: The query.
        limit: How many images to return.
        depth: How many candidates to fetch for each search vector.
        exact: Go on, deeper each round, until the result is proved or the collection is exhausted.
        exhaustive: Whether the searches miss nothing; where they may, nothing can be proved.
        min_truth: Leave out images whose truth is below.

    Yields:
        Searches to run; send back one list of candidates for each.

    Returns:
        The ranking; its `exact` is true only when that was proved.
    """
    check_limits(limit, min_truth)
    check_count("depth", depth)
    plan, depth = encoded.plan, max(depth, limit)
    bounds = (plan.bounds or ()) if exact and plan.linear is None else ()
    vectors = [*plan.search_vectors, *(bound.vector for bound in bounds)]
    seen: dict[Hashable, Candidate] = {}
    while True:
        answers = (yield SearchRequest(vectors, depth)) or ()
        found = [[candidate for candidate in answer if candidate is not None] for answer in answers]
        for candidate in (candidate for answer in found for candidate in answer):
            seen.setdefault(candidate.id, candidate)
        exhausted = any(len(answer) < depth for answer in answers)
        ranking = _rank_candidates(encoded, list(seen.values()), limit=limit, min_truth=min_truth)
        complete = exhausted or (plan.linear is not None and len(ranking) == limit)
        if not complete and bounds and len(ranking) == limit:
            last = [
                min((float(bound.vector @ as_numbers(candidate.vector)) for candidate in answer), default=np.inf)
                for bound, answer in zip(bounds, found[len(vectors) - len(bounds) :], strict=True)
            ]
            complete = plan.proves(ranking[-1].score, last)
        ranking.exact = complete and exhaustive
        if complete or not exact:
            return ranking
        depth *= DEPTH_GROWTH


def advance(
    steps: Generator[SearchRequest, Answers | None, Ranking], answers: Answers | None = None
) -> SearchRequest | Ranking:
    """The next searches to run, or the ranking when all is done; the first time without answers."""
    try:
        return steps.send(answers)
    except StopIteration as end:
        ranking: Ranking = end.value
        return ranking


def _rank_candidates(
    encoded: EncodedQuery, candidates: Sequence[Candidate], *, limit: int, min_truth: float | None
) -> Ranking:
    if not candidates:
        return Ranking([], parse=encoded.parse, mode=encoded.config.mode, exact=True)
    return rank_pool(encoded, VectorPool.of(_in_order(candidates)), limit=limit, min_truth=min_truth)


def _in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """By id: which of equal images comes first must not depend on how deep a search found them."""
    try:
        return sorted(candidates, key=lambda candidate: (type(candidate.id).__name__, candidate.id))
    except TypeError:  # ids without an order
        return sorted(candidates, key=lambda candidate: (type(candidate.id).__name__, repr(candidate.id)))


def search_source(
    encoded: EncodedQuery,
    source: VectorSource,
    *,
    limit: int = 10,
    depth: int = 1000,
    exact: bool = False,
    min_truth: float | None = None,
) -> Ranking:
    """Drive `search_steps` with a source."""
    steps = search_steps(
        encoded, limit=limit, depth=depth, exact=exact, exhaustive=source.exhaustive, min_truth=min_truth
    )
    step = advance(steps)
    while isinstance(step, SearchRequest):
        step = advance(steps, [source.nearest(vector, step.depth) for vector in step.vectors])
    return step
