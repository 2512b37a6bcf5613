"""What a query says to Qdrant, without input or output.

A query is a `Steps` generator: it yields `Searches` and `Fetch`, is sent the answers, and returns its `Hits`.
`lockstep` turns the messages of several queries into `Call`s, which `LogicSearch` and `AsyncLogicSearch` carry out.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

from qdrant_client import models

from qdrant_lcse.hits import Hits

__all__ = ["Call", "Fetch", "PointId", "Round", "Searches", "StaleSchema", "Steps"]

PointId: TypeAlias = int | str | UUID


@dataclass(frozen=True)
class Call:
    """A client's method to call, and what with."""

    method: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Searches:
    """Queries to run; the answer is one list of points for each."""

    requests: list[models.QueryRequest]


@dataclass(frozen=True)
class Fetch:
    """Points to read by id; the answer maps id → record."""

    ids: list[PointId]


Steps: TypeAlias = Generator[Searches | Fetch, Any, Hits]
"""A query from beginning to end."""

Round: TypeAlias = Generator[Searches | Fetch, Any, tuple[list[models.ScoredPoint], list[float | None]]]
"""Part of a query: its best points so far, and the last similarity of each candidate search, None if it found all."""


class StaleSchema(Exception):
    """Points do not have the similarities that their vectors should have: the collection has been made anew."""
