"""Rerank documents that another retriever found by what the query says, operators included."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.vectorstores import VectorStore
from pydantic import Field

from langchain_lcse.documents import ranked_documents
from langchain_lcse.steps import arun_step, run_step
from langchain_lcse.stores import scorer_for
from langchain_lcse.vectors import PictureOptions
from lcse_plugins.hosts.checked_options import OptionalCount
from lcse_plugins.hosts.reranking import OnMissing, rerank
from lcse_plugins.hosts.result_metadata import fetched_by
from lcse_plugins.parsing.result import Parse
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.arguments import check_limits

__all__ = ["LogicCompressor"]


class LogicCompressor(PictureOptions, BaseDocumentCompressor):
    """Ranks the documents it is given; for `ContextualCompressionRetriever` and compressor pipelines.

    It can only order what was fetched: the plain top 100 of "no dog" are all dogs. `LogicRetriever` fetches by what
    the query means; prefer it where the store can be searched by vector.
    """

    top_n: OptionalCount = Field(default=None, description="How many documents to return; None for all.")
    store: VectorStore | None = Field(
        default=None, description="The store the documents come from, if their vectors can be read from it."
    )
    on_missing: OnMissing = Field(
        default="keep_last",
        description="What becomes of a document with no image vector: after the others in its old order, left out, or "
        "an error.",
    )

    def model_post_init(self, context: Any, /) -> None:
        """Check the numbers, and load a scorer that was named."""
        check_limits(self.top_n, self.min_truth, name="top_n")
        self.scorer = self._scorer()

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """New documents in order of their score, with `relevance_score` and the reasons under `lcse`.

        One that could not be ranked has no score, and says why under `lcse`; the log tells of pictures among them.
        """
        if not documents:
            return []
        parse = run_step("lcse_parse", self._scorer().read, query, callbacks)
        return run_step("lcse_score", lambda read: self._ranked(documents, read), parse, callbacks)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """As `compress_documents`; encoding and arithmetic run in threads."""
        if not documents:
            return []

        async def score(read: Parse) -> list[Document]:
            return await asyncio.to_thread(self._ranked, documents, read)

        parse = await arun_step("lcse_parse", self._scorer().aread, query, callbacks)
        return await arun_step("lcse_score", score, parse, callbacks)

    def _scorer(self) -> LogicScorer:
        return scorer_for(self.store, self.scorer, mode=self.mode)

    def _ranked(self, documents: Sequence[Document], parse: Parse) -> list[Document]:
        vectors = self._vectors(self._scorer(), self.store, self.on_missing)
        found = rerank(
            vectors.scorer.encode(parse),
            documents,
            vectors.of(documents),
            is_picture=lambda document: vectors.picture(document) is not None,
            limit=self.top_n,
            min_truth=self.min_truth,
            on_missing=self.on_missing,
            check=vectors.check,
            stored=vectors.stored_result,
        )
        fetched = fetched_by((document.metadata for document in documents), parse.text)
        return ranked_documents(found.ranking, evidence=self.evidence, fetched=fetched, unranked=found.unranked)
