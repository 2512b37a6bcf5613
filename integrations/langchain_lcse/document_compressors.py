"""Rerank documents that another retriever found by what the query says, operators included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import VectorStore
from pydantic import Field

from langchain_lcse.documents import DocumentPictures, PictureOptions, ranked_documents, scorer_for
from lcse_plugins.hosts.checked_options import OptionalCount
from lcse_plugins.hosts.reranking import OnMissing, rerank
from lcse_plugins.hosts.result_metadata import fetched_by
from lcse_plugins.parsing.result import Parse
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
        self.scorer = scorer_for(self.store, self.scorer, mode=self.mode)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """New documents in order of their score, with `relevance_score` and the reasons under `lcse`.

        One that could not be ranked says why under `lcse`; the log tells of pictures among them.
        """
        parse, score = self._steps(documents)
        return score.invoke(parse.invoke(query, {"callbacks": callbacks}), {"callbacks": callbacks})

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """As `compress_documents`; encoding and arithmetic run in threads."""
        parse, score = self._steps(documents)
        return await score.ainvoke(await parse.ainvoke(query, {"callbacks": callbacks}), {"callbacks": callbacks})

    def _steps(self, documents: Sequence[Document]) -> tuple[Runnable[str, Parse], Runnable[Parse, list[Document]]]:
        """Parsing and scoring, each a step that tracers see."""
        scorer = scorer_for(self.store, self.scorer, mode=self.mode)
        pictures = DocumentPictures(self, scorer, self.store)

        def ranked(parse: Parse) -> list[Document]:
            found = rerank(
                scorer.encode(parse),
                documents,
                pictures.vectors_of(documents),
                is_picture=lambda document: pictures.picture(document) is not None,
                limit=self.top_n,
                min_truth=self.min_truth,
                on_missing=self.on_missing,
                check=pictures.check,
                stored=pictures.stored_result,
            )
            fetched = fetched_by((document.metadata for document in documents), parse.text)
            return ranked_documents(found.ranking, evidence=self.evidence, fetched=fetched, unranked=found.unranked)

        read: Runnable[str, Parse] = RunnableLambda(scorer.read, scorer.aread, name="lcse_parse")
        return read, RunnableLambda(ranked, name="lcse_score")
