"""The options of a query, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypedDict

from qdrant_client import models

from lcse_plugins.errors import InvalidOption
from lcse_plugins.search import check_limits

__all__ = ["Options", "QueryOptions", "WithPayload", "WithVectors"]

WithPayload: TypeAlias = bool | list[str] | models.PayloadSelectorInclude | models.PayloadSelectorExclude
WithVectors: TypeAlias = bool | list[str]


class QueryOptions(TypedDict, total=False):
    """The keyword arguments of `LogicSearch.query`, for `query_batch`."""

    limit: int
    query_filter: models.Filter | None
    candidates: int
    exact: bool
    min_truth: float | None
    offset: int
    with_payload: WithPayload
    with_vectors: WithVectors
    search_params: models.SearchParams | None
    timeout: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What `LogicSearch.query` was asked for.

    Raises:
        InvalidOption: a number is out of its range.
    """

    limit: int = 10
    query_filter: models.Filter | None = None
    candidates: int = 1000
    exact: bool = False
    min_truth: float | None = None
    offset: int = 0
    with_payload: WithPayload = True
    with_vectors: WithVectors = False
    search_params: models.SearchParams | None = None
    timeout: int | None = None

    def __post_init__(self) -> None:
        check_limits(self.limit, self.min_truth)
        if self.offset < 0:
            raise InvalidOption(f"offset is at least 0, not {self.offset}")
        if self.candidates < 1:
            raise InvalidOption(f"candidates is at least 1, not {self.candidates}")
        if self.timeout is not None and self.timeout <= 0:
            raise InvalidOption(f"timeout is a positive number of seconds, not {self.timeout}")

    def depth(self, searches: int) -> int:
        """How deep each of several candidate searches goes; never less deep than what is to be returned."""
        return max(self.end, -(-self.candidates // searches))

    @property
    def end(self) -> int:
        """Place after the last one to be returned."""
        return self.offset + self.limit
