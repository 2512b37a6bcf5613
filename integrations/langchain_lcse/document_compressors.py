"""Rerank documents that another retriever found by what the query says, operators included."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, PrivateAttr

from langchain_lcse.child_runs import arun_as_child, run_as_child
from langchain_lcse.documents import ranked_documents
from langchain_lcse.images import image_location
from langchain_lcse.vectors import DocumentVectors, VectorFunction, cache_for
from lcse_plugins.hosts.checked_options import CheckedOptions, OptionalCount
from lcse_plugins.hosts.made_once import MadeOnce
from lcse_plugins.hosts.reranking import OnMissing, kept_last, rank_found
from lcse_plugins.hosts.result_metadata import fetched_by
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.arguments import check_limits
from lcse_plugins.scoring.encoded import EncodedQuery

__all__ = ["LogicCompressor"]


class LogicCompressor(CheckedOptions, BaseDocumentCompressor):
    """Ranks the documents it is given; for `ContextualCompressionRetriever` and compressor pipelines.

    It can only order what was fetched: the plain top 100 of "no dog" are all dogs. `LogicRetriever` fetches by what
    the query means; prefer it where the store can be searched by vector.
    """

    scorer: LogicScorer
    """Reads and scores queries."""
    top_n: OptionalCount = None
    """How many documents to return; None for all."""
    min_truth: float | None = None
    """Leave out documents for which the query holds less than this, or whose picture cannot be read.

    Those that name no picture are texts, and follow `on_missing`.
    """
    store: VectorStore | None = None
    """The store the documents come from, if their vectors can be read from it."""
    vectors: VectorFunction | None = None
    """A function that gives the image vectors of documents; asked before the store."""
    on_missing: OnMissing = "keep_last"
    """A document with no image vector comes after the others in its old order, is left out, or is an error."""
    locate_image: Callable[[Document], ImageLocation | None] = image_location
    """Which picture a document stands for, when its vector must be encoded."""
    image_access: ImageAccess = DEFAULT_ACCESS
    """What may be read to get a picture."""
    image_cache: ImageVectorCache | None = None
    """Keeps encoded pictures; give several compressors the same to share it."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")
    _made: MadeOnce[DocumentVectors] = PrivateAttr(default_factory=MadeOnce)

    def model_post_init(self, context: Any, /) -> None:
        """Check the numbers and the cache."""
        check_limits(self.top_n, self.min_truth, name="top_n")
        self._vectors()

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """New documents in order of their score, with `relevance_score` and the reasons under `lcse`.

        One that could not be ranked has no score, and says why under `lcse`; the log tells of pictures among them.
        """
        if not documents:
            return []
        return self._ranked(documents, run_as_child(callbacks, lambda: self.scorer.encode(query)))

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """As `compress_documents`; encoding and arithmetic run in threads."""
        if not documents:
            return []
        encoded = await arun_as_child(callbacks, self.scorer.aencode(query))
        return await asyncio.to_thread(self._ranked, documents, encoded)

    def _vectors(self) -> DocumentVectors:
        """The ways to a vector, by the fields as they are now."""
        encoder, cache = self.scorer.encoder, self.image_cache
        ways: dict[str, Any] = {
            "vectors": self.vectors,
            "store": self.store,
            "locate": self.locate_image,
            "access": self.image_access,
        }
        return self._made.get(
            (encoder, cache, ways),
            lambda: DocumentVectors(cache_for(encoder, cache), **ways),
        )

    def _ranked(self, documents: Sequence[Document], encoded: EncodedQuery) -> list[Document]:
        vectors = self._vectors()
        ranking, missing = rank_found(
            encoded,
            documents,
            vectors.of(documents),
            stored=vectors.stored_result,
            check=vectors.check,
            limit=self.top_n,
            min_truth=self.min_truth,
        )
        unranked = kept_last(
            missing,
            found_count=len(documents),
            is_picture=lambda document: self.locate_image(document) is not None,
            on_missing=self.on_missing,
            min_truth=self.min_truth,
        )
        fetched = fetched_by((document.metadata for document in documents), encoded.parse.text)
        return ranked_documents(ranking, fetched=fetched, unranked=unranked)[: self.top_n]
