"""LogicSearch: Boolean image search over a Qdrant collection.

    >>> search = LogicSearch(QdrantClient("http://localhost:6333"), "photos", scorer)
    >>> hits = search.query("an umbrella and no person", limit=5)
    >>> print(hits.explain())

`AsyncLogicSearch` is the same over an `AsyncQdrantClient`. Both only carry out the calls that `search_base` asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from qdrant_client import AsyncQdrantClient, models

from lcse_plugins.query import Query
from qdrant_lcse.hits import Hits
from qdrant_lcse.messages import Call
from qdrant_lcse.options import Options, QueryOptions, WithPayload, WithVectors
from qdrant_lcse.search_base import BlockingClient, ExecutionChoice, LogicSearchBase, check_batch

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["AsyncLogicSearch", "ExecutionChoice", "LogicSearch"]

T = TypeVar("T")


class LogicSearch(LogicSearchBase[BlockingClient]):
    """Finds the images of a collection for which a query holds. Safe to share between threads.

    Args:
        client: A client of a server or a cluster, or in local mode.
        collection_name: A collection of image vectors with Cosine or Dot distance.
        scorer: Parser, encoder, calibration and configuration; the encoder is the one that made the vectors.
        vector_name: The vectors to search when the collection names them.
        execution: Where scores are computed: `client`, in the database in one round trip (`nested`) or two
            (`two-trip`); `auto` chooses by what it talks to. All give the same answer.
    """

    def query(
        self,
        query: str | Query,
        *,
        limit: int = 10,
        query_filter: models.Filter | None = None,
        candidates: int = 1000,
        exact: bool = False,
        min_truth: float | None = None,
        offset: int = 0,
        with_payload: WithPayload = True,
        with_vectors: WithVectors = False,
        search_params: models.SearchParams | None = None,
        timeout: int | None = None,
    ) -> Hits:
        """The best points of the collection, best first.

        Args:
            query: Text for the scorer's parser, or a tree.
            limit: How many points to return.
            query_filter: Only points that pass it.
            candidates: How many points to fetch and score, shared among the searches of a query; more find more, and
                let pages go deeper. In local mode a collection of fewer points is scored whole.
            exact: Search deeper until the result is proved complete, or all points have been scored.
            min_truth: Leave out points for which the query holds less than this, in [0, 1].
            offset: Skip this many of the best. All pages are cut from the same candidates, and those beyond them are
                empty, unless the query is `exact` or one plain search.
            with_payload: Which payload to return.
            with_vectors: Which vectors to return.
            search_params: How candidates are searched; by default with a beam of 512 shared among the searches, of
                2,048 when the query affirms nothing (a collection of up to 40,000 points is then scanned), and as the
                collection is set up when it states no logic.
            timeout: Seconds the server may take.

        Raises:
            QueryError: the query cannot be read.
            InvalidOption: an option is out of its range.
            CollectionError: the collection is missing or cannot be scored.
            SearchUnavailable: Qdrant did not answer.
        """
        return self.query_batch(
            [query],
            limit=limit,
            query_filter=query_filter,
            candidates=candidates,
            exact=exact,
            min_truth=min_truth,
            offset=offset,
            with_payload=with_payload,
            with_vectors=with_vectors,
            search_params=search_params,
            timeout=timeout,
        )[0]

    def query_batch(self, queries: Sequence[str | Query], **options: Unpack[QueryOptions]) -> list[Hits]:
        """The hits of several queries with the same options, asked for together."""
        checked = Options.read(options)
        return self._run(self._query_calls([self.scorer.encode(query) for query in check_batch(queries)], checked))

    def _run(self, calls: Generator[Call, Any, T]) -> T:
        proceed: Callable[[], Call] = calls.__next__
        while True:
            try:
                call = proceed()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                answer = getattr(self.client, call.method)(**call.arguments)
                proceed = partial(calls.send, answer)
            except Exception as error:
                proceed = partial(calls.throw, self._fault(error))


class AsyncLogicSearch(LogicSearchBase[AsyncQdrantClient]):
    """`LogicSearch` over an `AsyncQdrantClient`; texts are encoded off the event loop."""

    _awaits = True

    async def query(
        self,
        query: str | Query,
        *,
        limit: int = 10,
        query_filter: models.Filter | None = None,
        candidates: int = 1000,
        exact: bool = False,
        min_truth: float | None = None,
        offset: int = 0,
        with_payload: WithPayload = True,
        with_vectors: WithVectors = False,
        search_params: models.SearchParams | None = None,
        timeout: int | None = None,
    ) -> Hits:
        """As `LogicSearch.query`."""
        found = await self.query_batch(
            [query],
            limit=limit,
            query_filter=query_filter,
            candidates=candidates,
            exact=exact,
            min_truth=min_truth,
            offset=offset,
            with_payload=with_payload,
            with_vectors=with_vectors,
            search_params=search_params,
            timeout=timeout,
        )
        return found[0]

    async def query_batch(self, queries: Sequence[str | Query], **options: Unpack[QueryOptions]) -> list[Hits]:
        """As `LogicSearch.query_batch`."""
        checked = Options.read(options)
        encoded = [await self.scorer.aencode(query) for query in check_batch(queries)]
        return await self._run(self._query_calls(encoded, checked))

    async def _run(self, calls: Generator[Call, Any, T]) -> T:
        proceed: Callable[[], Call] = calls.__next__
        while True:
            try:
                call = proceed()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                answer = await getattr(self.client, call.method)(**call.arguments)
                proceed = partial(calls.send, answer)
            except Exception as error:
                proceed = partial(calls.throw, self._fault(error))
