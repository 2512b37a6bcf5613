"""What `LogicSearch` and `AsyncLogicSearch` share: all but the waiting. Here an execution is chosen for each query."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, get_args

from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal
from qdrant_client.local.qdrant_local import QdrantLocal

from lcse_plugins.errors import CollectionError, InvalidOption
from lcse_plugins.query import Query
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.encoded import EncodedQuery
from qdrant_lcse.executions.by_formula import formula_steps
from qdrant_lcse.executions.client import client_steps
from qdrant_lcse.executions.linear import linear_steps
from qdrant_lcse.executions.strategy import SearchStrategy
from qdrant_lcse.faults import translate_fault
from qdrant_lcse.formula import ScoreFormula, compile_formula
from qdrant_lcse.hits import Hits
from qdrant_lcse.lockstep import run_in_lockstep
from qdrant_lcse.messages import Call, StaleSchema, Steps
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema, learn_schema

if TYPE_CHECKING:
    from qdrant_lcse.embedded import EmbeddedClient

__all__ = ["BlockingClient", "ExecutionChoice", "LogicSearchBase", "check_batch"]

ExecutionChoice = Literal["auto", "client", "nested", "two-trip"]
BlockingClient: TypeAlias = "QdrantClient | EmbeddedClient"
ClientT = TypeVar("ClientT", bound="QdrantClient | EmbeddedClient | AsyncQdrantClient")

LARGEST_NESTED = 4000
"""`auto` nests if no more points than this are looked at: each candidate search is repeated for each similarity, which
only pays where a round trip takes time."""

BEAM, LEAST_BEAM, WIDE_BEAM = 512, 128, 2048
"""HNSW's beam for candidates, to be shared among the searches of a query; the least of one search; and that of one when
the query affirms nothing, because graphs are built for near vectors."""

SCANNED = 40_000
"""Points of a collection up to which such a query is searched without the graph: a scan takes about as long as a wide
beam, and misses nothing."""

SMALL = 5_000
"""Points of a collection in local mode that an exact query reads whole."""

_OVER_ALL = models.SearchParams(exact=True)


class LogicSearchBase(Generic[ClientT]):
    """A client, a collection and a scorer, and the calls that answer queries."""

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
        self._verifies = True  # whether answers are compared with the schema

    def _query_calls(self, queries: Sequence[EncodedQuery], options: Options) -> Generator[Call, Any, list[Hits]]:
        """The calls that answer queries; errors of a call are thrown in.

        The schema is learnt once, and anew when answers do not fit it or Qdrant refuses a request: the collection may
        have been made anew. Then the queries are asked once more.
        """
        known, refusal = self._schema, None
        if known is not None:
            try:
                return (yield from self._calls(queries, known, options, verify=self._verifies))
            except StaleSchema:
                self._schema = None
            except CollectionError as error:
                self._schema, refusal = None, error
        schema = yield from learn_schema(self.collection_name, self.vector_name)
        schema.check_dimension(self.scorer.encoder.dimension)
        self._schema = schema if schema.settled else None
        if refusal is not None and schema == known:
            raise refusal
        self._verifies = schema != known  # what is found the same again has other reasons to differ
        return (yield from self._calls(queries, schema, options, verify=False))

    def _calls(
        self, queries: Sequence[EncodedQuery], schema: VectorSchema, options: Options, *, verify: bool
    ) -> Generator[Call, Any, list[Hits]]:
        steps = [self._choose_execution(encoded, schema, options, verify) for encoded in queries]
        return (yield from run_in_lockstep(steps, collection=self.collection_name, options=options))

    def _choose_execution(self, encoded: EncodedQuery, schema: VectorSchema, options: Options, verify: bool) -> Steps:
        strategy = replace(self._strategy(encoded, schema, options), verify_schema=verify)
        if encoded.plan.linear is not None and not options.min_truth:
            return linear_steps(encoded, schema, options, strategy)
        formula = self._formula(encoded, schema, options)
        if formula is None:
            return client_steps(encoded, schema, options, strategy)
        beam = (strategy.params and strategy.params.hnsw_ef) or 0
        looked_at = max(strategy.depth, (schema.points or 0) if strategy.exhaustive else beam)
        small = len(formula.vectors) * len(strategy.searches) * looked_at <= LARGEST_NESTED
        saves_a_trip = small and not self.in_process
        execution: Literal["nested", "two-trip"] = "nested" if saves_a_trip else "two-trip"
        if self.execution == "nested" or self.execution == "two-trip":
            execution = self.execution
        return formula_steps(encoded, schema, options, strategy, formula=formula, execution=execution)

    def _strategy(self, encoded: EncodedQuery, schema: VectorSchema, options: Options) -> SearchStrategy:
        searches = encoded.plan.searches
        depth = options.depth(len(searches))
        if self._local:  # local mode scans all points, and warns of parameters that it does not need
            # It also changes the last bits of the vectors with each search: equals must come from one.
            whole = max(options.candidates, SMALL) if options.exact else options.candidates
            if schema.points is not None and schema.points < whole:
                depth = max(depth, whole)
            return SearchStrategy(searches=searches, params=None, rescoring=None, exhaustive=True, depth=depth)
        params = options.search_params
        if options.exact:
            params = (params or models.SearchParams()).model_copy(update={"exact": True})
        elif params is None and encoded.affirms_nothing and not encoded.edits_nothing:
            scan = schema.points is not None and schema.points <= SCANNED
            params = models.SearchParams(exact=True) if scan else models.SearchParams(hnsw_ef=WIDE_BEAM)
        elif params is None:
            beam = None if encoded.edits_nothing else max(LEAST_BEAM, BEAM // len(searches))
            params = models.SearchParams(hnsw_ef=beam)
        return SearchStrategy(
            searches=searches, params=params, rescoring=_OVER_ALL, exhaustive=bool(params.exact), depth=depth
        )

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
        return self._local or getattr(self.client, "in_process", False)

    def _fault(self, error: Exception) -> Exception:
        """What to raise in place of an error of the client."""
        return translate_fault(error, collection=self.collection_name)


def check_batch(queries: Iterable[str | Query]) -> list[str | Query]:
    """The queries of a batch, as a list.

    Raises:
        InvalidOption: it is one query.
    """
    if isinstance(queries, str | bytes) or not isinstance(queries, Iterable):
        raise InvalidOption("queries is a list of queries, not one; wrap it as [query], or use query()")
    return list(queries)
