"""LogicSearch: Boolean image search over a Qdrant collection.

    >>> search = LogicSearch(QdrantClient("http://localhost:6333"), "photos", scorer)
    >>> hits = search.query("an umbrella and no person", limit=5)
    >>> print(hits.explain())

`AsyncLogicSearch` is the same over an `AsyncQdrantClient`. Both only carry out the calls that `steps` asks for.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args

from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal
from qdrant_client.local.qdrant_local import QdrantLocal

from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.errors import CollectionError, InvalidOption, LcseError
from lcse_plugins.query import Query
from lcse_plugins.scorer import LogicScorer
from qdrant_lcse.executions import formula_steps, linear_steps
from qdrant_lcse.faults import translated
from qdrant_lcse.formula import ScoreFormula, compile_formula
from qdrant_lcse.hits import Hits
from qdrant_lcse.options import Options, QueryOptions, WithPayload, WithVectors
from qdrant_lcse.schema import VectorSchema
from qdrant_lcse.steps import Call, Manner, Steps, client_steps, learn_schema, together

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from qdrant_lcse.embedded import EmbeddedClient

__all__ = ["AsyncLogicSearch", "ExecutionChoice", "LogicSearch"]

ExecutionChoice = Literal["auto", "client", "nested", "two-trip"]
ClientT = TypeVar("ClientT", bound="QdrantClient | EmbeddedClient | AsyncQdrantClient")
T = TypeVar("T")

LARGEST_NESTED = 4000
"""Up to how many points looked at `auto` nests: nesting repeats every candidate search for each similarity."""

BEAM, LEAST_BEAM, WIDE_BEAM = 512, 128, 1024
"""HNSW's beam for candidates, to be shared among the searches of a query; the least of one search; and that of one when
the query affirms nothing, because graphs are built for near vectors."""

_OVER_ALL = models.SearchParams(exact=True)


class _Search(Generic[ClientT]):
    """What the blocking and the asynchronous face share: everything but the waiting."""

    _awaits = False
    """Whether the client's methods are awaited."""

    def __init__(
        self,
        client: ClientT,
        collection_name: str,
        scorer: LogicScorer,
        *,
        vector_name: str | None = None,
        execution: ExecutionChoice = "auto",
    ) -> None:
        if execution not in get_args(ExecutionChoice):
            raise InvalidOption(
                f"unknown execution {execution!r}; choose one of {', '.join(get_args(ExecutionChoice))}"
            )
        if iscoroutinefunction(client.get_collection) != self._awaits:
            kind = type(client).__name__
            face = "LogicSearch" if self._awaits else "AsyncLogicSearch"
            raise InvalidOption(f"{type(self).__name__} does not work with this client, {kind}; use {face}")
        if not isinstance(scorer, LogicScorer):
            raise InvalidOption(f"scorer is a LogicScorer, such as LogicScorer(encoder), not {type(scorer).__name__}")
        self.client = client
        self.collection_name = collection_name
        self.scorer = scorer
        self.vector_name = vector_name
        self.execution = execution
        self._local = isinstance(getattr(client, "_client", client), QdrantLocal | AsyncQdrantLocal)
        self._schema: VectorSchema | None = None

    def _conversation(self, queries: Sequence[EncodedQuery], options: Options) -> Generator[Call, Any, list[Hits]]:
        schema = self._schema
        if schema is None:
            schema = yield from learn_schema(self.collection_name, self.vector_name)
            schema.check_dimension(self.scorer.encoder.dimension)
            self._schema = schema
        conversations = [self._steps(encoded, schema, options) for encoded in queries]
        return (yield from together(conversations, collection=self.collection_name, options=options))

    def _steps(self, encoded: EncodedQuery, schema: VectorSchema, options: Options) -> Steps:
        searches = len(encoded.plan.candidates)
        manner = self._manner(encoded, schema, options, searches)
        if encoded.plan.linear is not None and not options.min_truth:
            return linear_steps(encoded, schema, options, manner)
        formula = self._formula(encoded, schema, options)
        if formula is None:
            return client_steps(encoded, schema, options, manner)
        beam = max(manner.depth, (manner.params and manner.params.hnsw_ef) or 0)
        small = len(formula.vectors) * searches * beam <= LARGEST_NESTED
        execution: Literal["nested", "two-trip"] = "nested" if small else "two-trip"
        if self.execution == "nested" or self.execution == "two-trip":
            execution = self.execution
        return formula_steps(encoded, schema, options, manner, formula=formula, execution=execution)

    def _manner(self, encoded: EncodedQuery, schema: VectorSchema, options: Options, searches: int) -> Manner:
        depth = options.depth(searches)
        if self._local:  # local mode scans all points, and warns of parameters that it does not need
            if schema.points is not None and schema.points < options.candidates:
                depth = max(options.end, options.candidates)
            return Manner(params=None, rescoring=None, proves=True, depth=depth)
        params = options.search_params
        if options.exact:
            params = (params or models.SearchParams()).model_copy(update={"exact": True})
        elif params is None:
            beam = WIDE_BEAM if encoded.affirms_nothing else max(LEAST_BEAM, BEAM // searches)
            params = models.SearchParams(hnsw_ef=None if encoded.edits_nothing else beam)
        return Manner(params=params, rescoring=_OVER_ALL, proves=bool(params.exact), depth=depth)

    def _formula(self, encoded: EncodedQuery, schema: VectorSchema, options: Options) -> ScoreFormula | None:
        """The score for the database to compute; None when it is to be computed here."""
        if self.execution == "client" or (self.execution == "auto" and self._local):
            return None
        try:
            return compile_formula(encoded, cosine=schema.cosine, min_truth=options.min_truth)
        except InvalidOption:
            if self.execution == "auto":
                return None
            raise

    @property
    def in_process(self) -> bool:
        """Whether the database runs in this process, so that a query computes here instead of waiting."""
        return self._local

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except LcseError:
            raise
        except Exception as error:
            fault = translated(error, collection=self.collection_name)
            if fault is None:
                raise
            if isinstance(fault, CollectionError):
                self._schema = None  # the collection may have been made anew: look again next time
            raise fault from error


class LogicSearch(_Search["QdrantClient | EmbeddedClient"]):
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
            candidates: How many points to fetch and score, shared among the searches of a query; more find more. In
                local mode a collection of fewer points is scored whole.
            exact: Search deeper until the result is proved complete, or all points have been scored.
            min_truth: Leave out points for which the query holds less than this, in [0, 1].
            offset: Skip this many of the best.
            with_payload: Which payload to return.
            with_vectors: Which vectors to return.
            search_params: How candidates are searched; by default with a beam of 512 shared among the searches, of
                1,024 when the query affirms nothing, and as the collection is set up when it states no logic.
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
        return self._run(self._conversation([self.scorer.encode(query) for query in queries], checked))

    def _run(self, calls: Generator[Call, Any, T]) -> T:
        answer: Any = None
        while True:
            try:
                call = calls.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            with self._faults():
                answer = getattr(self.client, call.method)(**call.arguments)


class AsyncLogicSearch(_Search[AsyncQdrantClient]):
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
        encoded = [await self.scorer.aencode(query) for query in queries]
        return await self._run(self._conversation(encoded, checked))

    async def _run(self, calls: Generator[Call, Any, T]) -> T:
        answer: Any = None
        while True:
            try:
                call = calls.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            with self._faults():
                answer = await getattr(self.client, call.method)(**call.arguments)
