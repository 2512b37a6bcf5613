"""Logic search that a database runs itself: `qdrant_lcse.LogicSearch`, or anything with the same `query`."""

from __future__ import annotations

import asyncio
from inspect import iscoroutinefunction
from typing import Any, Protocol, runtime_checkable

from langchain_core.documents import Document

from langchain_lcse.documents import ranked_documents
from langchain_lcse.sources.protocol import WORDS, SearchTerms, Wanted
from lcse_plugins.errors import InvalidOption
from lcse_plugins.hosting.keywords import keywords
from lcse_plugins.off_loop import compute
from lcse_plugins.results import Ranking

__all__ = ["DatabaseSource", "LogicQueries"]


class RankedHits(Protocol):
    """What such a query gives back."""

    @property
    def ranking(self) -> Ranking:
        """The ranked points; their candidates carry the payloads."""
        ...


@runtime_checkable
class LogicQueries(Protocol):
    """A collection that answers logical queries; `query` may be a coroutine function.

    One that computes in this process instead of waiting may say so by an attribute `in_process`.
    """

    @property
    def query(self) -> Any:
        """`query(text, *, limit, query_filter, candidates, exact, min_truth, …)` → hits with a `ranking`."""
        ...


_OWN_WORDS = {"limit": "k", "candidates": "fetch_k", "query_filter": "filter"}


class DatabaseSource:
    """A `LogicSearch` or `AsyncLogicSearch` as a source of documents.

    Payloads as langchain-qdrant writes them (`page_content`, `metadata`) become the documents they were; any other
    payload becomes the metadata.
    """

    def __init__(self, queries: LogicQueries) -> None:
        named, open_ended = keywords(queries.query)
        self.terms = SearchTerms(words={**WORDS, **_OWN_WORDS}, options=None if open_ended else frozenset(named))
        self._query = queries.query
        self._native = iscoroutinefunction(queries.query)
        self._thread = compute if getattr(queries, "in_process", False) else asyncio.to_thread

    def search(self, query: str, wanted: Wanted) -> list[Document]:
        """The best documents of the collection."""
        if self._native:
            raise InvalidOption("an asynchronous search answers `ainvoke` only; pass a LogicSearch to use `invoke`")
        hits: RankedHits = self._query(query, **_arguments(wanted))
        return ranked_documents(hits.ranking)

    async def asearch(self, query: str, wanted: Wanted) -> list[Document]:
        """As `search`; awaited when the query is a coroutine function, else in a thread."""
        if not self._native:
            return await self._thread(self.search, query, wanted)
        hits: RankedHits = await self._query(query, **_arguments(wanted))
        return ranked_documents(hits.ranking)


def _arguments(wanted: Wanted) -> dict[str, Any]:
    return {
        **wanted.search_kwargs,
        "limit": wanted.k,
        "candidates": wanted.fetch_k,
        "exact": wanted.exact,
        "min_truth": wanted.min_truth,
        "query_filter": wanted.filter,
    }
