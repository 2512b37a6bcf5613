"""Logic search that a database runs itself: `qdrant_lcse.LogicSearch`, or anything with the same `query`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Literal

from langchain_core.documents import Document

from langchain_lcse.documents import document_of, ranked_documents
from langchain_lcse.sources.protocol import WORDS, AcceptedArguments, SearchArguments
from langchain_lcse.vectors import DocumentVectors
from lcse_plugins.hosts.logic_queries import DatabaseQueries
from lcse_plugins.scoring.results import Ranking

__all__ = ["DatabaseSource"]

_OWN_WORDS = {"limit": "k", "candidates": "fetch_k", "query_filter": "filter"}


class DatabaseSource:
    """A `LogicSearch` or `AsyncLogicSearch` as a source of documents.

    Payloads as langchain-qdrant and LlamaIndex write them become documents with their text and metadata; any other
    payload becomes the metadata.

    Args:
        queries: The collection.
        vectors: Tells vectors of texts from those of pictures; None where the encoder is not known.
        on_missing: What to do with a document whose vector is that of its text.
    """

    def __init__(
        self, queries: DatabaseQueries, vectors: DocumentVectors | None, on_missing: Literal["drop", "raise"]
    ) -> None:
        self.accepts = AcceptedArguments(words={**WORDS, **_OWN_WORDS}, options=queries.options)
        self._queries = queries
        self._vectors = vectors
        self._on_missing = on_missing

    def search(self, query: str, arguments: SearchArguments) -> list[Document]:
        """The best documents of the collection."""
        return self._documents(self._queries.ask(query, _keywords(arguments)))

    async def asearch(self, query: str, arguments: SearchArguments) -> list[Document]:
        """As `search`, without blocking the event loop."""
        return await asyncio.to_thread(self._documents, await self._queries.aask(query, _keywords(arguments)))

    def _documents(self, ranking: Ranking) -> list[Document]:
        read = [replace(r, candidate=replace(r.candidate, payload=document_of(r.candidate))) for r in ranking]
        found = Ranking(read, parse=ranking.parse, mode=ranking.mode, exact=ranking.exact)
        if self._vectors is not None:
            found = self._vectors.without_text_vectors(found, on_missing=self._on_missing)
        return ranked_documents(found)


def _keywords(arguments: SearchArguments) -> dict[str, Any]:
    return {
        **arguments.search_kwargs,
        "limit": arguments.k,
        "candidates": arguments.fetch_k,
        "exact": arguments.exact,
        "min_truth": arguments.min_truth,
        "query_filter": arguments.filter,
    }
