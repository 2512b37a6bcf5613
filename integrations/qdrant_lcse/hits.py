"""What a search gives back: Qdrant's own points, scored by the logic, and the reason for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from qdrant_client import models

from lcse_plugins.hosts.payloads import read_payload
from lcse_plugins.images.keys import place_in
from lcse_plugins.parsing.result import Parse
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = ["Execution", "Hits"]

Execution = Literal["client", "formula", "linear"]
"""Where scores choose the points: in the client, in the database by a formula, or by one plain vector search."""


@dataclass(frozen=True, eq=False)
class Hits:
    """The best points of a query, best first.

    Attributes:
        points: Qdrant's points; their score is the edited similarity.
        ranking: the same points with their evidence, place by place; its candidates carry the points' payloads.
        execution: where the points were chosen.
        notes: what kept the search from finding all of the best, such as a limit of strict mode; mostly empty.
    """

    points: list[models.ScoredPoint]
    ranking: Ranking
    execution: Execution
    notes: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether it is proved that no other point of the collection could stand here."""
        return self.ranking.exact

    @property
    def parse(self) -> Parse:
        """How the query was read."""
        return self.ranking.parse

    def explain(self) -> str:
        """One line per point, its picture's name or its id and what was seen; then where the answer ends."""
        lines = [f"{_name(ranked.candidate)}: {ranked.reason}" for ranked in self.ranking]
        return "\n".join([*lines, self.ranking.summary, *self.notes])

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[models.ScoredPoint]:
        return iter(self.points)


def _name(candidate: Candidate) -> str:
    stored = read_payload(candidate.payload)
    place = place_in({**stored.metadata, **stored.image}) or place_in({"file": stored.text})
    return str(candidate.id) if place is None else PurePath(place).name
