"""Where a retriever's documents come from: a vector store, vectors in memory, or a database that scores by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_lcse.documents import document_key, document_of
from langchain_lcse.stores import equals, facts_of, own_filter, translated_errors
from langchain_lcse.vectors import DocumentVectors
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, InvalidOption, LcseError
from lcse_plugins.hosts.logic_queries import DatabaseQueries, LogicQueries, keywords
from lcse_plugins.hosts.payloads import read_langchain_payload
from lcse_plugins.parsing.result import Parse
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.sources import SearchRequest, advance, rank_pool, search_steps
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.arguments import check_count, check_limits
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranked, Ranking

__all__ = ["DatabaseSource", "PoolSource", "SearchArguments", "Searched", "Source", "StoreSource"]

logger = logging.getLogger(__name__)

Searched: TypeAlias = VectorStore | VectorPool | LogicQueries
"""What a retriever can search."""

FETCHED, ENCODED = 1000, 100
"""Candidates of each search vector by default: where their vectors can be read, and where pictures are encoded."""

_told: set[type] = set()


@dataclass(frozen=True, kw_only=True)
class SearchArguments:
    """The arguments of one search, checked; `options` are the source's own."""

    k: int = 4
    fetch_k: int | None = None
    min_truth: float | None = None
    exact: bool = False
    filter: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, given: Mapping[str, Any], known: frozenset[str] | None) -> SearchArguments:
        """The arguments by their names; the source knows further ones, None for any.

        Raises:
            InvalidOption: a name is not known, or a number is out of its range.
        """
        own = ("k", "fetch_k", "min_truth", "exact", "filter")
        options = {name: value for name, value in given.items() if name not in own}
        if known is not None and (unknown := sorted(set(options) - known)):
            takes = ", ".join(sorted({*own, *known}))
            raise InvalidOption(f"a search of this source takes no {', '.join(unknown)}; it takes {takes}")
        read = cls(**{name: given[name] for name in own if given.get(name) is not None}, options=options)
        check_limits(read.k, read.min_truth, name="k")
        check_count("fetch_k", read.fetch_k or FETCHED)
        return read


class StoreSource:
    """Any vector store, by nothing but its nearest-vector search."""

    def __init__(self, vectors: DocumentVectors) -> None:
        self._store: VectorStore = vectors.store
        self._vectors = vectors
        self._facts = facts_of(self._store)
        self._exhaustive = self._facts is not None and self._facts.exhaustive(self._store)

    @property
    def options(self) -> frozenset[str] | None:
        """What its own search is documented to take."""
        named, open_ended = keywords(self._store.similarity_search_by_vector)
        return None if open_ended and self._facts is None else frozenset(named) - {"k", "filter", "fetch_k"}

    def search(self, parse: Parse, arguments: SearchArguments) -> Ranking:
        """The best documents of the store."""
        steps = self._steps(self._vectors.scorer.encode(parse), arguments)
        step = advance(steps)
        while isinstance(step, SearchRequest):
            found: Any = []
            for vector in step.vectors:
                seen_all = self._exhaustive and bool(found) and len(found[0]) < step.depth
                with self._translated_errors(vector, arguments):
                    search, more = self._store.similarity_search_by_vector, self._keywords(arguments)
                    found.append([] if seen_all else search(vector.tolist(), k=step.depth, **more))
            step = advance(steps, found)
        return step

    async def asearch(self, parse: Parse, arguments: SearchArguments) -> Ranking:
        """The same; the store is awaited unless it only computes, and the rest runs in threads."""
        if self._facts is not None and self._facts.in_process:
            return await asyncio.to_thread(self.search, parse, arguments)

        async def nearest(vector: FloatArray, depth: int) -> list[Document]:
            with self._translated_errors(vector, arguments):
                search = self._store.asimilarity_search_by_vector
                return await search(vector.tolist(), k=depth, **self._keywords(arguments))

        steps = self._steps(await self._vectors.scorer.aencode(parse), arguments)
        step = await asyncio.to_thread(advance, steps)
        while isinstance(step, SearchRequest):
            found: Any = await asyncio.gather(*(nearest(vector, step.depth) for vector in step.vectors))
            step = await asyncio.to_thread(advance, steps, found)
        return step

    def _steps(self, encoded: EncodedQuery, arguments: SearchArguments) -> Generator[SearchRequest, Any, Ranking]:
        """Documents whose vectors turn out to be those of their texts are left out, and all is asked once more."""
        known: dict[Hashable, Candidate | None] = {}
        while True:
            steps = search_steps(
                encoded,
                limit=arguments.k,
                depth=arguments.fetch_k or self._usual_depth(),
                exact=arguments.exact,
                exhaustive=self._exhaustive,
                min_truth=arguments.min_truth,
            )
            step = advance(steps)
            while isinstance(step, SearchRequest):
                found: Sequence[Sequence[Document]] = yield step
                keyed = [[(document_key(document), document) for document in documents] for documents in found]
                new = {key: document for documents in keyed for key, document in documents if key not in known}
                known.update(self._candidates(new) if new else {})
                step = advance(steps, [[known[key] for key, _ in documents] for documents in keyed])
            texts = self._vectors.texts_among(step)
            if not texts:
                return step
            known.update(dict.fromkeys(result.id for result in texts))

    def _usual_depth(self) -> int:
        if self._facts is not None or self._vectors.vectors is not None:
            return FETCHED
        if type(self._store) not in _told:
            _told.add(type(self._store))
            logger.warning(
                "%s gives no vectors back, so the pictures of up to %d documents are encoded for each search vector; "
                "pass vectors=, or set fetch_k=",
                type(self._store).__name__,
                ENCODED,
            )
        return ENCODED

    def _candidates(self, documents: dict[Hashable, Document]) -> dict[Hashable, Candidate | None]:
        """Documents with their image vectors; None for one that has none."""
        vectors = self._vectors.of(list(documents.values()))
        faults = [fault for fault in vectors if isinstance(fault, LcseError)]
        if faults and (self._vectors.on_missing == "raise" or len(faults) == len(vectors)):
            raise faults[0]
        if faults:
            logger.warning("%d of %d documents left out; the first: %s", len(faults), len(vectors), faults[0])
        return {
            key: None if isinstance(vector, LcseError) else Candidate(id=key, vector=vector, payload=document)
            for (key, document), vector in zip(documents.items(), vectors, strict=True)
        }

    def _translated_errors(self, vector: FloatArray, arguments: SearchArguments) -> Any:
        given = ", ".join([*arguments.options, *(["filter"] if arguments.filter is not None else [])])
        doubt = f"does it take {given} as it was given, and " if given else ""
        refusal = f"the store could not be searched with a vector of {len(vector)} numbers"
        return translated_errors(
            self._store, f"{refusal} ({{}}); {doubt}are all its vectors made by the scorer's encoder?"
        )

    def _keywords(self, arguments: SearchArguments) -> dict[str, Any]:
        return {**arguments.options, **own_filter(self._store, arguments.filter)}


class PoolSource:
    """Vectors in memory, every row scored; the result is always exact, and `filter` is a function of the document."""

    options: frozenset[str] | None = frozenset()

    def __init__(self, pool: VectorPool, scorer: LogicScorer) -> None:
        self._pool = pool
        self._scorer = scorer

    def search(self, parse: Parse, arguments: SearchArguments) -> Ranking:
        """The best documents of the pool."""
        encoded = self._scorer.encode(parse)
        if arguments.filter is None:
            return rank_pool(encoded, self._pool, limit=arguments.k, min_truth=arguments.min_truth)
        fits = equals(arguments.filter) if isinstance(arguments.filter, Mapping) else arguments.filter
        if not callable(fits):
            raise InvalidOption(f"this source's filter is a function of the document, not {type(fits).__name__}")
        order, _ = self._pool.top(encoded, min_truth=arguments.min_truth)
        fitting = (place for place in order.tolist() if fits(document_of(self._pool.candidate(place))))
        kept = list(islice(fitting, arguments.k))
        if not kept:
            return Ranking([], parse=parse, mode=encoded.config.mode, exact=True)
        return rank_pool(encoded, self._pool.part(kept))

    async def asearch(self, parse: Parse, arguments: SearchArguments) -> Ranking:
        """The same, in a thread."""
        return await asyncio.to_thread(self.search, parse, arguments)


class DatabaseSource:
    """A collection that scores by itself: `qdrant_lcse.LogicSearch`, or anything with the same `query`.

    Where vectors of texts took the places of pictures, it is asked once more, for `FETCHED` results.
    """

    def __init__(self, search: LogicQueries, vectors: DocumentVectors) -> None:
        self._queries = DatabaseQueries(search, blocking="invoke", awaited="ainvoke")
        self._vectors = vectors
        reserved = {"limit", "candidates", "exact", "min_truth", "query_filter", "with_payload", "with_vectors"}
        self.options = None if self._queries.options is None else self._queries.options - reserved

    def search(self, parse: Any, arguments: SearchArguments) -> Ranking:
        """The best documents of the collection."""
        limit, kept = arguments.k, None
        while kept is None:
            found = self._queries.ask(parse, self._keywords(arguments, limit))
            kept, limit = self._pictures(found, arguments.k, limit), arguments.k + FETCHED
        return kept

    async def asearch(self, parse: Any, arguments: SearchArguments) -> Ranking:
        """The same, without blocking the event loop."""
        limit, kept = arguments.k, None
        while kept is None:
            found = await self._queries.aask(parse, self._keywords(arguments, limit))
            kept, limit = await asyncio.to_thread(self._pictures, found, arguments.k, limit), arguments.k + FETCHED
        return kept

    def _pictures(self, found: Ranking, k: int, limit: int) -> Ranking | None:
        """The best pictures among what was found; None when texts took their places in a first search."""
        ranking = with_results(found, [replace(r, candidate=self._with_document(r.candidate)) for r in found])
        deeper = limit == k == len(found)
        try:
            texts = {result.id for result in self._vectors.texts_among(ranking)}
        except InvalidCandidate:
            if deeper and self._vectors.on_missing != "raise":
                return None
            raise
        if texts and deeper:
            return None
        return with_results(ranking, [result for result in ranking if result.id not in texts][:k])

    def _with_document(self, candidate: Candidate) -> Candidate:
        document, store = document_of(candidate), self._vectors.store
        if store is not None:
            keys = {"content_key": store.content_payload_key, "metadata_key": store.metadata_payload_key}
            stored = read_langchain_payload(candidate.payload, **keys)
            beside = {"_id": candidate.id, "_collection_name": store.collection_name}
            document = Document(id=str(candidate.id), page_content=stored.text, metadata={**stored.metadata, **beside})
        return replace(candidate, payload=document)

    def _keywords(self, arguments: SearchArguments, limit: int) -> dict[str, Any]:
        return {
            **arguments.options,
            "limit": limit,
            "candidates": arguments.fetch_k,
            "exact": arguments.exact,
            "min_truth": arguments.min_truth,
            "query_filter": own_filter(self._vectors.store, arguments.filter).get("filter"),
        }


Source: TypeAlias = StoreSource | PoolSource | DatabaseSource
"""A collection that gives the best documents of a query, as payloads of the results."""


def with_results(ranking: Ranking, results: Iterable[Ranked]) -> Ranking:
    """A ranking of the same query with other results."""
    return Ranking(results, parse=ranking.parse, mode=ranking.mode, exact=ranking.exact)
