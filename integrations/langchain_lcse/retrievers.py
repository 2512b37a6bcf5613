"""A retriever that obeys *and*, *or* and *not*, over a vector store, vectors in memory, or a database that scores."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Hashable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, SkipValidation

from langchain_lcse.documents import (
    DocumentPictures,
    PictureOptions,
    document_key,
    document_of,
    kept_with,
    ranked_documents,
    scorer_for,
)
from langchain_lcse.stores import KNOWN_STORES, equals, known_store, own_filter, translated_errors
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, InvalidOption, LcseError
from lcse_plugins.hosts.checked_options import OptionalCount
from lcse_plugins.hosts.logic_queries import DatabaseQueries, LogicQueries, keywords
from lcse_plugins.parsing.result import Parse
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.sources import advance, rank_pool, search_source
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.arguments import check_limits
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = ["LogicRetriever"]

logger = logging.getLogger(__name__)

FETCHED, ENCODED = 1000, 100
"""Candidates of each search vector by default: where their vectors can be read, and where pictures are encoded."""

OWN_ARGUMENTS = ("k", "fetch_k", "min_truth", "exact", "filter")


class LogicRetriever(PictureOptions, BaseRetriever):
    """Finds the documents whose pictures show what the query says and do not show what it excludes.

        >>> retriever = LogicRetriever(source=store, scorer="starter", k=5)
        >>> retriever.invoke("an umbrella and no person")
        >>> retriever.invoke("a dog", k=20, min_truth=0.5, filter={"place": "beach"})

    Each document is a copy with its score in `metadata["relevance_score"]` and the reasons in `metadata["lcse"]`.
    Fewer than `k` come back when the source holds fewer, or the filter or `min_truth` leaves fewer. Only pictures are
    ranked: among documents that name pictures, those that name none are left out, and so is a document whose vector is
    that of its text. A document that the source returns twice counts once.

    Raises:
        InvalidOption: a setting, or an argument of a call, is unknown or out of its range.
        QueryError: the query cannot be read.
        InvalidCandidate: vectors do not fit the encoder or each other, or no document found has one.
        SearchUnavailable: the source did not answer.
    """

    source: SkipValidation[VectorStore | VectorPool | LogicQueries] = Field(
        description="A vector store; a VectorPool or ImageIndex; or a qdrant_lcse.LogicSearch, which scores in the "
        "database, and is made for a QdrantVectorStore by itself."
    )
    k: OptionalCount = Field(default=None, description="How many documents to return; 4 by default.")
    fetch_k: OptionalCount = Field(
        default=None,
        description="How many candidates to fetch for each search vector of a query; by default 1,000, or 100 where "
        "the store gives no vectors back and pictures must be encoded. Qdrant chooses by itself, and shares a number "
        "that is given among its searches.",
    )
    exact: bool | None = Field(
        default=None,
        description='Search deeper until the result is proved or the source exhausted, which metadata["lcse"]["exact"] '
        "says; not so by default.",
    )
    search_kwargs: dict[str, Any] = Field(
        default_factory=dict,
        description="More arguments for the source's own search, such as Qdrant's search_params. k, filter, min_truth, "
        "fetch_k and exact may stand here too; fields come before them, and arguments of a call before both.",
    )
    on_missing: Literal["drop", "raise"] = Field(
        default="drop",
        description="What becomes of a document with no image vector: left out, or an error. That none has one is "
        "always an error.",
    )

    model_config = ConfigDict(extra="forbid")

    def model_post_init(self, context: Any, /) -> None:
        """Check that the source can be searched and what it is asked for; load a scorer that was named."""
        self.search_arguments()
        if isinstance(self.source, VectorStore | VectorPool):
            self.scorer = self._scorer()

    def search_arguments(self, **call: Any) -> SearchArguments:
        """What a call with these arguments asks of the source; InvalidOption if it cannot be asked that."""
        takes = self._source().options
        fields = {name: getattr(self, name) for name in ("k", "fetch_k", "min_truth", "exact")}
        given = [*self.search_kwargs.items(), *fields.items(), *call.items()]
        options = {name: value for name, value in given if value is not None}
        own = {name: options.pop(name) for name in OWN_ARGUMENTS if name in options}
        if takes is not None and (unknown := options.keys() - takes):
            known = ", ".join(sorted({*OWN_ARGUMENTS, *takes}))
            raise InvalidOption(f"a search of this source takes no {', '.join(sorted(unknown))}; it takes {known}")
        return SearchArguments(**own, options=options)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **call: Any
    ) -> list[Document]:
        parse, score = self._steps(call)
        config: Any = {"callbacks": run_manager.get_child()}
        return score.invoke(parse.invoke(query, config), config)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **call: Any
    ) -> list[Document]:
        parse, score = self._steps(call)
        config: Any = {"callbacks": run_manager.get_child()}
        return await score.ainvoke(await parse.ainvoke(query, config), config)

    def _steps(self, call: dict[str, Any]) -> tuple[Runnable[str, Parse], Runnable[Parse, list[Document]]]:
        """Parsing and scoring, each a step that tracers see."""
        source, scorer, arguments = self._source(), self._scorer(), self.search_arguments(**call)

        def score(parse: Parse) -> list[Document]:
            steps = self._search(source, arguments)
            step: Any = advance(steps)  # type: ignore[arg-type]
            while isinstance(step, SearchArguments):
                step = advance(steps, source.search(parse, step))  # type: ignore[arg-type]
            return ranked_documents(step, evidence=self.evidence)

        async def ascore(parse: Parse) -> list[Document]:
            if not isinstance(source, DatabaseSource):
                return await asyncio.to_thread(score, parse)
            steps = self._search(source, arguments)
            step: Any = advance(steps)  # type: ignore[arg-type]
            while isinstance(step, SearchArguments):
                step = await asyncio.to_thread(advance, steps, await source.asearch(parse, step))  # type: ignore[arg-type]
            return await asyncio.to_thread(ranked_documents, step, evidence=self.evidence)

        read: Runnable[str, Parse] = RunnableLambda(scorer.read, scorer.aread, name="lcse_parse")
        return read, RunnableLambda(score, ascore, name="lcse_score")

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        params = super()._get_ls_params(**kwargs)
        params["ls_vector_store_provider"] = type(self.source).__name__
        params["ls_embedding_provider"] = "lcse"
        params["ls_embedding_model"] = self._scorer().encoder.encoder_id
        return params

    def _scorer(self) -> LogicScorer:
        own = None if isinstance(self.source, VectorStore) else getattr(self.source, "scorer", None)
        return own if isinstance(own, LogicScorer) else scorer_for(self.source, self.scorer, mode=self.mode)

    def _source(self) -> Source:
        source: Any = self.source
        if isinstance(source, VectorPool):
            return PoolSource(source, self._scorer())
        if isinstance(source, VectorStore):
            pictures = DocumentPictures(self, self._scorer(), source)
            if known_store(source) is KNOWN_STORES["QdrantVectorStore"] and self.vectors is None:
                return DatabaseSource(_logic_search(source, pictures.scorer), pictures)
            return StoreSource(pictures, strict=self.on_missing == "raise")
        if not isinstance(source, LogicQueries):
            kind = type(source).__name__
            raise InvalidOption(f"a source is a vector store, a pool, an index or a LogicSearch, not {kind}")
        if self.scorer is not None or self.mode is not None:
            raise InvalidOption("a search that runs in the database has its own scorer; do not pass another")
        return DatabaseSource(source, DocumentPictures(self, self._scorer(), None))

    def _search(self, source: Source, arguments: SearchArguments) -> Generator[SearchArguments, Ranking, Ranking]:
        """Yields what to ask the source and returns its best pictures; asks again where texts took their places."""
        k, strict = arguments.k, self.on_missing == "raise"
        found = yield arguments
        if source.pictures is None:
            return found
        count = len(found)
        try:
            kept = source.pictures.without_texts(found, k, strict=strict)
            if len(kept) == count or count < k:
                return kept
        except InvalidCandidate:
            if strict or count < k:
                raise
        found = yield replace(arguments, k=k + FETCHED)
        return source.pictures.without_texts(found, k, strict=strict)


def _logic_search(store: Any, scorer: LogicScorer) -> LogicQueries:
    """A logic search for a QdrantVectorStore, which takes fewer requests than nearest-vector searches do."""
    from qdrant_lcse import LogicSearch

    name = store.vector_name or None
    return kept_with(store, scorer, lambda: LogicSearch(store.client, store.collection_name, scorer, vector_name=name))


@dataclass(frozen=True, kw_only=True)
class SearchArguments:
    """The arguments of one search, checked; `options` are the source's own."""

    k: int = 4
    fetch_k: int | None = None
    min_truth: float | None = None
    exact: bool = False
    filter: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_limits(self.k, self.min_truth, name="k")
        check_limits(self.fetch_k, None, name="fetch_k")


class PoolSource:
    """Vectors in memory, every row scored; the result is always exact, and `filter` is a function of the document."""

    options: frozenset[str] | None = frozenset()
    pictures = None

    def __init__(self, pool: VectorPool, scorer: LogicScorer) -> None:
        self._pool = pool
        self._scorer = scorer

    def search(self, parse: Parse, arguments: SearchArguments) -> Ranking:
        """The best documents of the pool."""
        pool, encoded = self._pool, self._scorer.encode(parse)
        if arguments.filter is not None:
            fits = equals(arguments.filter)
            if not callable(fits):
                raise InvalidOption(f"this source's filter is a function of the document, not {type(fits).__name__}")
            order, _ = pool.top(encoded, min_truth=arguments.min_truth)
            fitting = (place for place in order.tolist() if fits(document_of(pool.candidate(place))))
            kept = list(islice(fitting, arguments.k))
            if not kept:
                return Ranking([], parse=parse, mode=encoded.config.mode, exact=True)
            pool = pool.part(kept)
        return rank_pool(encoded, pool, limit=arguments.k, min_truth=arguments.min_truth)


class StoreSource:
    """Any vector store, by nothing but its nearest-vector search; made for one call, whose documents it remembers."""

    def __init__(self, pictures: DocumentPictures, *, strict: bool) -> None:
        self.pictures, self._strict = pictures, strict
        self._store: VectorStore = pictures.store
        self._known = known_store(self._store)
        self.exhaustive = self._known is not None and self._known.exhaustive(self._store)
        named, open_ended = keywords(self._store.similarity_search_by_vector)
        self.options = None if open_ended and self._known is None else frozenset(named) - {"k", "filter", "fetch_k"}
        self._more: dict[str, Any] = {}
        self._seen: dict[Hashable, Candidate | LcseError] = {}
        self._seen_all = False

    def search(self, parse: Parse, arguments: SearchArguments) -> Ranking:
        """The best documents of the store; an error if none has an image vector."""
        self._more = {**arguments.options, **own_filter(self._store, arguments.filter)}
        self._seen_all = False
        ranking = search_source(
            self.pictures.scorer.encode(parse),
            self,  # type: ignore[arg-type]  # None stands for a document without a vector
            limit=arguments.k,
            depth=arguments.fetch_k or self._usual_depth(),
            exact=arguments.exact,
            min_truth=arguments.min_truth,
        )
        if faults := [one for one in self._seen.values() if isinstance(one, LcseError)]:
            if len(faults) == len(self._seen):
                raise faults[0]
            logger.warning("%d of %d documents left out; the first: %s", len(faults), len(self._seen), faults[0])
        return ranking

    def nearest(self, vector: FloatArray, depth: int) -> list[Candidate | None]:
        """Documents with their image vectors, None for one that has none."""
        if self._seen_all:
            return []
        with translated_errors(self._store):
            found = self._store.similarity_search_by_vector(vector.tolist(), k=depth, **self._more)
        self._seen_all = self.exhaustive and len(found) < depth
        keys = [document_key(document) for document in found]
        new = {key: document for key, document in zip(keys, found, strict=True) if key not in self._seen}
        rows = self.pictures.vectors_of(list(new.values())) if new else []
        for (key, document), row in zip(new.items(), rows, strict=True):
            if isinstance(row, LcseError) and self._strict:
                raise row
            self._seen[key] = row if isinstance(row, LcseError) else Candidate(id=key, vector=row, payload=document)
        candidates = [self._seen[key] for key in keys]
        return [None if isinstance(one, LcseError) else one for one in candidates]

    def _usual_depth(self) -> int:
        if self._known is not None or self.pictures.options.vectors is not None:
            return FETCHED
        told = "%s gives no vectors back, so the pictures of up to %d documents are encoded for each search vector; "
        told += "pass vectors=, or set fetch_k="
        kept_with(self._store, "told", lambda: logger.warning(told, type(self._store).__name__, ENCODED))
        return ENCODED


class DatabaseSource:
    """A collection that scores by itself: `qdrant_lcse.LogicSearch`, or anything with the same `query`."""

    def __init__(self, search: LogicQueries, pictures: DocumentPictures) -> None:
        self.pictures = pictures
        self._queries = DatabaseQueries(search, blocking="invoke", awaited="ainvoke")
        reserved = {"limit", "candidates", "exact", "min_truth", "query_filter", "with_payload", "with_vectors"}
        self.options = None if self._queries.options is None else self._queries.options - reserved

    def search(self, parse: Any, arguments: SearchArguments) -> Ranking:
        """The best documents of the collection."""
        return self._documents(self._queries.ask(parse, self._asked(arguments)))

    async def asearch(self, parse: Any, arguments: SearchArguments) -> Ranking:
        """The same, awaited."""
        return await asyncio.to_thread(self._documents, await self._queries.aask(parse, self._asked(arguments)))

    def _asked(self, arguments: SearchArguments) -> dict[str, Any]:
        return {
            **arguments.options,
            "limit": arguments.k,
            "candidates": arguments.fetch_k,
            "exact": arguments.exact,
            "min_truth": arguments.min_truth,
            "query_filter": own_filter(self.pictures.store, arguments.filter).get("filter"),
        }

    def _documents(self, answer: Ranking) -> Ranking:
        """The answer with documents as payloads; what the source gave stays as it is."""
        found = answer[:]
        for place, result in enumerate(found):
            document = document_of(result.candidate, self.pictures.store)
            found[place] = replace(result, candidate=replace(result.candidate, payload=document))
        return found


Source: TypeAlias = StoreSource | PoolSource | DatabaseSource
"""What a retriever searches; `options` are further arguments that a search takes, None for any."""
