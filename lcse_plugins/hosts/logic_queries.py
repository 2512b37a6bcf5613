"""A database that answers logical queries itself, such as `qdrant_lcse.LogicSearch`, as a host asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, Protocol, cast, runtime_checkable

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import InvalidOption
from lcse_plugins.hosts.keywords import keywords
from lcse_plugins.off_loop import compute
from lcse_plugins.scoring.results import Ranking

__all__ = ["DatabaseQueries", "LogicQueries", "RankedHits"]


class RankedHits(Protocol):
    """What such a query gives back."""

    @property
    def ranking(self) -> Ranking:
        """The ranked points; their candidates carry vectors and payloads."""
        ...


@runtime_checkable
class LogicQueries(Protocol):
    """A collection that answers logical queries; `query` may be a coroutine function.

    One that computes in this process instead of waiting may say so by an attribute `in_process`. If it has a `scorer`,
    whose encoder made the vectors, hosts can tell vectors of texts from those of pictures.
    """

    @property
    def query(self) -> Callable[..., RankedHits | Awaitable[RankedHits]]:
        """`query(text, *, limit, query_filter, candidates, exact, min_truth, …)` → hits with a `ranking`."""
        ...


class DatabaseQueries:
    """Asks such a collection, blocking or awaiting.

    Args:
        search: The collection.
        blocking: What the host calls a search that blocks, for messages.
        awaited: What it calls one that is awaited.

    Raises:
        InvalidOption: it has no `query`.
    """

    def __init__(self, search: LogicQueries, *, blocking: str, awaited: str) -> None:
        if not isinstance(search, LogicQueries):
            raise InvalidOption(f"a search has a method `query`, which {type(search).__name__} has not")
        self._query = search.query
        self._native = iscoroutinefunction(search.query)
        self._thread = compute if getattr(search, "in_process", False) else asyncio.to_thread
        self._blocking, self._awaited = blocking, awaited
        self.named, self._open_ended = keywords(search.query)
        self.encoder: Encoder | None = getattr(getattr(search, "scorer", None), "encoder", None)

    @property
    def options(self) -> frozenset[str] | None:
        """Names of the arguments that a query may be given; None for any."""
        return None if self._open_ended else frozenset(self.named)

    def ask(self, text: str, arguments: dict[str, Any]) -> Ranking:
        """The ranking of a query.

        Raises:
            InvalidOption: the collection can only be awaited.
        """
        if self._native:
            raise InvalidOption(
                f"an asynchronous search answers `{self._awaited}` only; pass a LogicSearch to use `{self._blocking}`"
            )
        return cast(RankedHits, self._query(text, **arguments)).ranking

    async def aask(self, text: str, arguments: dict[str, Any]) -> Ranking:
        """The ranking of a query; awaited when the query is a coroutine function, else found in a thread."""
        if not self._native:
            return await self._thread(self.ask, text, arguments)
        hits = await cast(Awaitable[RankedHits], self._query(text, **arguments))
        return await self._thread(lambda: hits.ranking)
