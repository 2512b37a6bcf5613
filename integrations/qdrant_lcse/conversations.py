"""What a search asks of Qdrant, and how: all that `LogicSearch` and `AsyncLogicSearch` share, but the waiting."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, get_args

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
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema
from qdrant_lcse.steps import Call, Manner, StaleSchema, Steps, client_steps, learn_schema, together

if TYPE_CHECKING:
    from qdrant_lcse.embedded import EmbeddedClient

__all__ = ["BlockingClient", "Conversations", "ExecutionChoice", "listed"]

ExecutionChoice = Literal["auto", "client", "nested", "two-trip"]
BlockingClient: TypeAlias = "QdrantClient | EmbeddedClient"
ClientT = TypeVar("ClientT", bound="QdrantClient | EmbeddedClient | AsyncQdrantClient")

LARGEST_NESTED = 4000
"""Up to how many points looked at `auto` nests: nesting repeats every candidate search for each similarity."""

BEAM, LEAST_BEAM, WIDE_BEAM = 512, 128, 1024
"""HNSW's beam for candidates, to be shared among the searches of a query; the least of one search; and that of one when
the query affirms nothing, because graphs are built for near vectors."""

_OVER_ALL = models.SearchParams(exact=True)


class Conversations(Generic[ClientT]):
    """A client, a collection and a scorer, and what is said about a query."""

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
        self._doubts = True

    def _conversation(self, queries: Sequence[EncodedQuery], options: Options) -> Generator[Call, Any, list[Hits]]:
        known = self._schema
        if known is not None:
            try:
                return (yield from self._asked(queries, known, options, doubts=self._doubts))
            except StaleSchema:
                self._schema = None
        schema = yield from learn_schema(self.collection_name, self.vector_name)
        schema.check_dimension(self.scorer.encoder.dimension)
        self._doubts = schema != known  # what is found the same again has other reasons to differ
        self._schema = schema if schema.settled else None
        return (yield from self._asked(queries, schema, options, doubts=False))

    def _asked(
        self, queries: Sequence[EncodedQuery], schema: VectorSchema, options: Options, *, doubts: bool
    ) -> Generator[Call, Any, list[Hits]]:
        conversations = [self._steps(encoded, schema, options, doubts) for encoded in queries]
        return (yield from together(conversations, collection=self.collection_name, options=options))

    def _steps(self, encoded: EncodedQuery, schema: VectorSchema, options: Options, doubts: bool) -> Steps:
        searches = len(encoded.plan.candidates)
        manner = replace(self._manner(encoded, schema, options, searches), doubts=doubts)
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
                depth = max(depth, options.candidates)
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
        except Exception as error:
            fault = error if isinstance(error, LcseError) else translated(error, collection=self.collection_name)
            if isinstance(fault, CollectionError):
                self._schema = None  # the collection may have been made anew: look again next time
            if fault is None or fault is error:
                raise
            raise fault from error


def listed(queries: Iterable[str | Query]) -> list[str | Query]:
    """The queries of a batch.

    Raises:
        InvalidOption: it is one query.
    """
    if isinstance(queries, str | bytes) or not isinstance(queries, Iterable):
        raise InvalidOption("queries is a list of queries, not one; wrap it as [query], or use query()")
    return list(queries)
