"""A database that answers logical queries itself, such as `qdrant_lcse.LogicSearch`, as a host asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import Parameter, iscoroutinefunction, signature
from typing import Any, Protocol, runtime_checkable

from lcse_plugins.errors import InvalidOption
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.results import Ranking

__all__ = ["DatabaseQueries", "LogicQueries", "is_refusal", "keywords"]


@runtime_checkable
class LogicQueries(Protocol):
    """A collection that answers logical queries.

    If it has a `scorer`, whose encoder made the vectors, hosts can tell vectors of texts from those of pictures.
    """

    @property
    def query(self) -> Callable[..., Any]:
        """`query(text, *, limit, query_filter, candidates, exact, min_truth, …)`, which may be a coroutine function.

        It gives hits with a `ranking`, whose candidates carry vectors and payloads.
        """
        ...


class DatabaseQueries:
    """Asks such a collection; `blocking` and `awaited` are what the host calls the two ways, for messages."""

    def __init__(self, search: LogicQueries, *, blocking: str, awaited: str) -> None:
        self._query = search.query
        self._blocking, self._awaited = blocking, awaited
        named, open_ended = keywords(search.query)
        self.options = None if open_ended else frozenset(named)  # None: a query may be given any argument
        self.scorer: LogicScorer | None = getattr(search, "scorer", None)

    def ask(self, text: str, arguments: dict[str, Any]) -> Ranking:
        """The ranking of a query; InvalidOption if the collection can only be awaited."""
        if iscoroutinefunction(self._query):
            raise InvalidOption(
                f"an asynchronous search answers `{self._awaited}` only; pass a LogicSearch to use `{self._blocking}`"
            )
        ranking: Ranking = self._query(text, **arguments).ranking
        return ranking

    async def aask(self, text: str, arguments: dict[str, Any]) -> Ranking:
        """The ranking of a query; awaited when the query is a coroutine function, else found in a thread."""
        if not iscoroutinefunction(self._query):
            return await asyncio.to_thread(self.ask, text, arguments)
        ranking: Ranking = (await self._query(text, **arguments)).ranking
        return ranking


def keywords(function: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """Names of the arguments that a function takes after its first, and whether it takes any others."""
    parameters = list(signature(function).parameters.values())
    named = tuple(p.name for p in parameters[1:] if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))
    return named, any(p.kind is Parameter.VAR_KEYWORD for p in parameters)


def is_refusal(status: int) -> bool:
    """Whether an HTTP status says that the request is wrong and will be; 408, 409, 425 and 429 may pass later."""
    return 400 <= status < 500 and status not in (408, 409, 425, 429)
