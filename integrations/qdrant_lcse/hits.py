"""What a search gives back: Qdrant's own points, scored by the logic, and the reason for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any, Literal

from qdrant_client import models

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.hosts.payloads import read_payload
from lcse_plugins.images.keys import place_in
from lcse_plugins.parsing.result import Parse
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.sources import rank_pool
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = ["Execution", "Hits", "explain_points"]

Execution = Literal["client", "nested", "two-trip", "linear"]
"""Where the scores were computed; `linear` is a plain vector search, for queries whose score is one."""


@dataclass(frozen=True, eq=False)
class Hits:
    """The best points of a query, best first.

    Attributes:
        points: Qdrant's points; their score is the edited similarity.
        exact: whether it is proved that no other point of the collection could stand here.
        parse: how the query was read.
        execution: how the scores were computed.
        find_ranking: computes `ranking`, from vectors that came with the points; left out, there is no evidence.
    """

    points: list[models.ScoredPoint]
    exact: bool
    parse: Parse
    execution: Execution
    find_ranking: Callable[[], Ranking] | None = field(default=None, repr=False, kw_only=True)

    @cached_property
    def ranking(self) -> Ranking:
        """The same points with their evidence, place by place; its candidates carry the points' payloads.

        Computed when it is first looked at; no further call to the database is made.

        Raises:
            InvalidOption: the hits were made without evidence.
        """
        if self.find_ranking is None:
            raise InvalidOption("these hits were made without evidence; give Hits(...) a find_ranking= to have some")
        return self.find_ranking()

    def explain(self) -> str:
        """One line per point: its picture's name, or its id; what was seen, and what it did to the score."""
        return "\n".join(f"{_name(ranked.candidate)}: {ranked.reason}" for ranked in self.ranking)

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[models.ScoredPoint]:
        return iter(self.points)

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickles and copies: the points with their evidence, in place of what would compute it."""
        evidence = {} if self.find_ranking is None else {"ranking": self.ranking}
        return Hits, (self.points, self.exact, self.parse, self.execution), evidence


def _name(candidate: Candidate) -> str:
    stored = read_payload(candidate.payload)
    place = place_in({**stored.metadata, **stored.image}) or place_in({"file": stored.text})
    return str(candidate.id) if place is None else PurePath(place).name


def explain_points(
    encoded: EncodedQuery, points: Sequence[models.ScoredPoint], vectors: Sequence[FloatArray], *, exact: bool
) -> Ranking:
    """The evidence of points that the database has found, in its order and with its scores.

    Args:
        encoded: The query.
        points: The points, best first.
        vectors: Their image vectors.
        exact: Whether the result is proved.
    """
    ranking = Ranking([], parse=encoded.parse, mode=encoded.config.mode, exact=exact)
    if points:
        candidates = [
            Candidate(point.id, vector, payload=point.payload) for point, vector in zip(points, vectors, strict=True)
        ]
        by_id = {ranked.id: ranked for ranked in rank_pool(encoded, VectorPool.of(candidates))}
        ranking.extend(replace(by_id[point.id], score=point.score) for point in points)
    return ranking
