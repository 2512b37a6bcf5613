"""LogicSearch: Boolean image search over a Qdrant collection.

    >>> search = LogicSearch(QdrantClient("http://localhost:6333"), "photos", "starter")
    >>> hits = search.query("an umbrella and no person", limit=5)
    >>> print(hits.explain())

`AsyncLogicSearch` is the same over an `AsyncQdrantClient`. Both make the calls of the same steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from inspect import iscoroutinefunction
from itertools import chain, islice
from typing import TYPE_CHECKING, Generic, TypeVar, get_args

from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal
from qdrant_client.local.qdrant_local import QdrantLocal

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import CollectionError, InvalidOption, SearchUnavailable
from lcse_plugins.query import Query
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.arguments import check_choice, check_limits
from lcse_plugins.scoring.config import Mode
from lcse_plugins.scoring.encoded import EncodedQuery
from qdrant_lcse.calls import Call, Steps, arun, run
from qdrant_lcse.hits import Hits
from qdrant_lcse.options import Options, QueryOptions, with_options
from qdrant_lcse.schema import SAMPLE, VectorSchema, read_schema
from qdrant_lcse.task import ExecutionChoice, QueryTask

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["AsyncLogicSearch", "LogicSearch"]

ClientT = TypeVar("ClientT", bound="QdrantClient | AsyncQdrantClient")

SCHEMA_SECONDS = 60.0
"""How long what was learnt of a collection is believed."""


class _LogicSearchBase(Generic[ClientT]):
    """A client, a collection and a scorer, and all of a search but the waiting.

    Args:
        client: A client of a server or a cluster, or in local mode.
        collection_name: A collection of image vectors with Cosine or Dot distance.
        scorer: A `LogicScorer`, or an encoder or its name; the encoder is the one that made the vectors.
        mode: How to score; by default as the scorer does.
        limit: How many points a query returns unless it says otherwise.
        min_truth: Leave out points for which the query holds less than this, unless it says otherwise.
        vector_name: The vectors to search when the collection names them.
        execution: Where scores are computed: in the database by a `formula`, in the `client`, or `auto`.
    """

    _awaits = False

    def __init__(
        self,
        client: ClientT,
        collection_name: str,
        scorer: LogicScorer | Encoder | str,
        *,
        mode: Mode | None = None,
        limit: int = 10,
        min_truth: float | None = None,
        vector_name: str | None = None,
        execution: ExecutionChoice = "auto",
    ) -> None:
        check_choice("execution", execution, get_args(ExecutionChoice))
        if iscoroutinefunction(getattr(client, "get_collection", None)) != self._awaits:
            face = "LogicSearch" if self._awaits else "AsyncLogicSearch"
            raise InvalidOption(f"{type(self).__name__} does not work with {type(client).__name__}; use {face}")
        check_limits(limit, min_truth)
        self.client = client
        self.collection_name = collection_name
        self.scorer = LogicScorer.of(scorer, mode=mode)
        self.limit, self.min_truth, self.vector_name = limit, min_truth, vector_name
        self.execution: ExecutionChoice = execution
        self.in_process = isinstance(getattr(client, "_client", client), QdrantLocal | AsyncQdrantLocal)
        self._schemas: dict[str | None, tuple[float, VectorSchema]] = {}

    def _options(self, options: QueryOptions) -> Options:
        return Options.read(options, limit=self.limit, min_truth=self.min_truth, using=self.vector_name)

    def _steps(self, queries: Sequence[EncodedQuery], options: Options) -> Steps[list[Hits]]:
        """The calls that answer queries; what a collection stores is asked for once in a while."""
        started = time.monotonic()
        learnt, schema = self._schemas.get(options.using, (-math.inf, None))
        if schema is not None and started - learnt < SCHEMA_SECONDS:
            try:
                return (yield from self._search(queries, schema, options, started))
            except CollectionError:  # it may have been made anew
                self._schemas.pop(options.using, None)
        schema = yield from self._learn(options)
        return (yield from self._search(queries, schema, options, started))

    def _search(
        self, queries: Sequence[EncodedQuery], schema: VectorSchema, options: Options, started: float
    ) -> Steps[list[Hits]]:
        tasks = [
            QueryTask(encoded, schema, options, execution=self.execution, local=self.in_process) for encoded in queries
        ]
        while waiting := [task for task in tasks if task.hits is None]:
            asked = [task.requests() for task in waiting]
            arguments = {"requests": list(chain(*asked)), "consistency": options.consistency}
            timeout = _seconds_left(options.timeout, started)
            answers = iter((yield Call("query_batch_points", {**arguments, "timeout": timeout})))
            for task, requests in zip(waiting, asked, strict=True):
                task.read(list(islice(answers, len(requests))))
        return [task.hits for task in tasks if task.hits is not None]

    def _learn(self, options: Options) -> Steps[VectorSchema]:
        """Look at the collection, and believe it for a while; of an empty one little is known."""
        info = yield Call("get_collection", {})
        schema = read_schema(
            info, collection=self.collection_name, using=options.using, dimension=self.scorer.encoder.dimension
        )
        sample: list[models.Record] = []
        if not schema.cosine:
            wanted = {"limit": SAMPLE, "with_payload": False, "with_vectors": schema.with_vectors}
            sample, _ = yield Call("scroll", {**wanted, "shard_key_selector": options.shard_key_selector})
            schema.check_lengths(sample)
        if schema.cosine or sample:
            self._schemas[schema.using] = time.monotonic(), schema
        return schema


class LogicSearch(_LogicSearchBase[QdrantClient]):
    """Finds the images of a collection that satisfy a query. Safe to share between threads."""

    __doc__ += _LogicSearchBase.__doc__.partition("\n")[2]  # type: ignore[union-attr]

    @with_options
    def query(self, query: str | Query, **options: Unpack[QueryOptions]) -> Hits:
        """The best points of the collection, best first; `QueryOptions` tells what each argument means.

        Raises:
            QueryError: the query cannot be read.
            InvalidOption: an option is out of its range.
            CollectionError: the collection is missing or cannot be scored, or Qdrant refused the request.
            SearchUnavailable: Qdrant did not answer, or not in time.
        """
        return self.query_batch([query], **options)[0]

    @with_options
    def query_batch(self, queries: Sequence[str | Query], **options: Unpack[QueryOptions]) -> list[Hits]:
        """The hits of several queries with the same options, asked for together."""
        checked = self._options(options)
        encoded = [self.scorer.encode(query) for query in _check_batch(queries)]
        return run(self.client, self.collection_name, self._steps(encoded, checked))


class AsyncLogicSearch(_LogicSearchBase[AsyncQdrantClient]):
    """`LogicSearch` over an `AsyncQdrantClient`; texts are encoded off the event loop."""

    _awaits = True

    @with_options
    async def query(self, query: str | Query, **options: Unpack[QueryOptions]) -> Hits:
        """As `LogicSearch.query`."""
        return (await self.query_batch([query], **options))[0]

    @with_options
    async def query_batch(self, queries: Sequence[str | Query], **options: Unpack[QueryOptions]) -> list[Hits]:
        """As `LogicSearch.query_batch`."""
        checked = self._options(options)
        encoded = [await self.scorer.aencode(query) for query in _check_batch(queries)]
        return await arun(self.client, self.collection_name, self._steps(encoded, checked))


def _seconds_left(timeout: float | None, started: float) -> int | None:
    """Whole seconds that the next request may take, at least one; None for any number.

    Raises:
        SearchUnavailable: none are left.
    """
    if timeout is None:
        return None
    left = started + timeout - time.monotonic()
    if left <= 0:
        raise SearchUnavailable(f"the query took longer than its timeout of {timeout:g} seconds")
    return math.ceil(left)


def _check_batch(queries: Iterable[str | Query]) -> list[str | Query]:
    if isinstance(queries, str | bytes) or not isinstance(queries, Iterable):
        raise InvalidOption("queries is a list of queries, not one; wrap it as [query], or use query()")
    return list(queries)
