"""Logic search over any LangChain vector store, by nothing but its nearest-vector search."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_lcse.documents import ranked_documents
from langchain_lcse.sources.known_stores import StoreFacts, document_key, facts_of, translated_errors
from langchain_lcse.sources.protocol import WORDS, AcceptedArguments, SearchArguments
from langchain_lcse.vectors import DocumentVectors
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, LcseError
from lcse_plugins.hosts.keywords import keywords
from lcse_plugins.off_loop import compute
from lcse_plugins.retrieval.sources import SearchRequest, advance, search_steps
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = ["StoreSource"]

logger = logging.getLogger(__name__)


class StoreSource:
    """A vector store as a source of documents.

    Args:
        store: The store; it must search by vector.
        scorer: Reads and scores queries; its encoder made the store's vectors.
        vectors: Where the image vectors of its documents come from.
        on_missing: What to do with a document that has no image vector.
    """

    def __init__(
        self, store: VectorStore, scorer: LogicScorer, vectors: DocumentVectors, on_missing: Literal["drop", "raise"]
    ) -> None:
        self._store = store
        self._scorer = scorer
        self._vectors = vectors
        self._on_missing = on_missing
        self._facts = facts_of(store)
        self.accepts = _accepted(store, self._facts)
        self._exhaustive = self._facts is not None and self._facts.exhaustive
        self._in_process = self._facts is not None and self._facts.in_process

    def search(self, query: str, arguments: SearchArguments) -> list[Document]:
        """The best documents of the store."""
        return self._search(self._scorer.encode(query), arguments)

    async def asearch(self, query: str, arguments: SearchArguments) -> list[Document]:
        """As `search`; the store is awaited, reading vectors and arithmetic run in threads."""
        encoded = await self._scorer.aencode(query)
        thread = compute if self._vectors.in_process else asyncio.to_thread
        if self._in_process:
            return await thread(self._search, encoded, arguments)
        progress = _SearchProgress(self, encoded, arguments, exhaustive=self._exhaustive)
        step = await compute(progress.take, None)
        while isinstance(step, SearchRequest):
            found = await asyncio.gather(*(self._anearest(vector, step.depth, arguments) for vector in step.vectors))
            step = await asyncio.to_thread(progress.take, found)
        return await thread(self._documents, step)

    def _search(self, encoded: EncodedQuery, arguments: SearchArguments) -> list[Document]:
        progress = _SearchProgress(self, encoded, arguments, exhaustive=self._exhaustive)
        step = progress.take(None)
        while isinstance(step, SearchRequest):
            step = progress.take(self._found(step, arguments))
        return self._documents(step)

    def _documents(self, ranking: Ranking) -> list[Document]:
        return ranked_documents(self._vectors.without_text_vectors(ranking, on_missing=self._on_missing))

    def _found(self, request: SearchRequest, arguments: SearchArguments) -> list[list[Document]]:
        found: list[list[Document]] = []
        for vector in request.vectors:
            seen_all = self._exhaustive and bool(found) and len(found[0]) < request.depth
            found.append([] if seen_all else self._nearest(vector, request.depth, arguments))
        return found

    def _nearest(self, vector: FloatArray, depth: int, arguments: SearchArguments) -> list[Document]:
        with translated_errors(self._store, partial(_refusal, vector, arguments)):
            return self._store.similarity_search_by_vector(vector.tolist(), k=depth, **_keywords(arguments))

    async def _anearest(self, vector: FloatArray, depth: int, arguments: SearchArguments) -> list[Document]:
        with translated_errors(self._store, partial(_refusal, vector, arguments)):
            return await self._store.asimilarity_search_by_vector(vector.tolist(), k=depth, **_keywords(arguments))

    def candidates(self, documents: dict[Hashable, Document]) -> dict[Hashable, Candidate | None]:
        """Documents with their image vectors; None for one that has none.

        Raises:
            InvalidCandidate, ImageError: a document has no image vector, and none or not all may be left out.
        """
        vectors = self._vectors.of(list(documents.values()))
        faults = [fault for fault in vectors if isinstance(fault, LcseError)]
        if faults and (self._on_missing == "raise" or len(faults) == len(vectors)):
            raise faults[0]
        if faults:
            logger.warning("%d of %d documents left out; the first: %s", len(faults), len(vectors), faults[0])
        return {
            key: None if isinstance(vector, LcseError) else Candidate(id=key, vector=vector, payload=document)
            for (key, document), vector in zip(documents.items(), vectors, strict=True)
        }

    def key(self, document: Document) -> Hashable:
        """What tells two documents of the store apart."""
        return document_key(document, self._facts)


class _SearchProgress:
    """One search under way: each document's vector is read once, however many searches return it."""

    def __init__(
        self, source: StoreSource, encoded: EncodedQuery, arguments: SearchArguments, *, exhaustive: bool
    ) -> None:
        self._source = source
        self._known: dict[Hashable, Candidate | None] = {}
        self._steps = search_steps(
            encoded,
            limit=arguments.k,
            depth=arguments.fetch_k,
            exact=arguments.exact,
            exhaustive=exhaustive,
            min_truth=arguments.min_truth,
        )

    def take(self, found: Sequence[Sequence[Document]] | None) -> SearchRequest | Ranking:
        """The next searches to run, or the ranking, given what the last searches found."""
        if found is None:
            return advance(self._steps)
        keyed = [[(self._source.key(document), document) for document in documents] for documents in found]
        new = {key: document for documents in keyed for key, document in documents if key not in self._known}
        if new:
            self._known.update(self._source.candidates(new))
        return advance(self._steps, [[self._known[key] for key, _ in documents] for documents in keyed])


def _accepted(store: VectorStore, facts: StoreFacts | None) -> AcceptedArguments:
    named, open_ended = keywords(store.similarity_search_by_vector)
    own = frozenset(named) - {"k", "filter"}  # a store may mean something of its own by `fetch_k`
    return AcceptedArguments(
        words={word: name for word, name in WORDS.items() if word not in own},
        options=own.union(facts.options) if facts else None if open_ended else own,
        function_filter=facts is not None and facts.function_filter,
    )


def _keywords(arguments: SearchArguments) -> dict[str, Any]:
    given = {} if arguments.filter is None else {"filter": arguments.filter}
    return {**arguments.search_kwargs, **given}


def _refusal(vector: FloatArray, arguments: SearchArguments, error: Exception) -> InvalidCandidate:
    given = ", ".join(_keywords(arguments))
    doubt = f"does it take {given} as it was given, and " if given else ""
    return InvalidCandidate(
        f"the store could not be searched with a vector of {len(vector)} numbers ({error}); "
        f"{doubt}are all its vectors made by the scorer's encoder?"
    )
