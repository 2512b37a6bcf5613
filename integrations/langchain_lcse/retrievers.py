"""A retriever that obeys *and*, *or* and *not*."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, SkipValidation

from langchain_lcse.documents import ranked_documents
from langchain_lcse.sources import DatabaseSource, PoolSource, SearchArguments, Searched, Source, StoreSource
from langchain_lcse.steps import arun_step, run_step
from langchain_lcse.stores import scorer_for
from langchain_lcse.vectors import PictureOptions, kept_with
from lcse_plugins.errors import InvalidOption
from lcse_plugins.hosts.checked_options import OptionalCount
from lcse_plugins.hosts.logic_queries import LogicQueries
from lcse_plugins.parsing.result import Parse
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.scorer import LogicScorer

__all__ = ["LogicRetriever"]


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

    source: SkipValidation[Searched] = Field(
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
        """What a call with these arguments asks of the source.

        Raises:
            InvalidOption: a name is unknown, a number is out of its range, or the source cannot do what it is asked.
        """
        return self._prepared(call)[1]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **call: Any
    ) -> list[Document]:
        source, arguments = self._prepared(call)

        def score(read: Parse) -> list[Document]:
            return ranked_documents(source.search(read, arguments), evidence=self.evidence)

        within = run_manager.get_child()
        return run_step("lcse_score", score, run_step("lcse_parse", self._scorer().read, query, within), within)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **call: Any
    ) -> list[Document]:
        source, arguments = self._prepared(call)

        async def score(read: Parse) -> list[Document]:
            ranking = await source.asearch(read, arguments)
            return await asyncio.to_thread(ranked_documents, ranking, evidence=self.evidence)

        within = run_manager.get_child()
        parse = await arun_step("lcse_parse", self._scorer().aread, query, within)
        return await arun_step("lcse_score", score, parse, within)

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        params = super()._get_ls_params(**kwargs)
        params["ls_vector_store_provider"] = type(self.source).__name__
        params["ls_embedding_provider"] = "lcse"
        params["ls_embedding_model"] = self._scorer().encoder.encoder_id
        return params

    def _prepared(self, call: dict[str, Any]) -> tuple[Source, SearchArguments]:
        """The way to search, by the fields as they are now, and with which arguments."""
        source = self._source()
        fields = {name: getattr(self, name) for name in ("k", "fetch_k", "min_truth", "exact")}
        given = {name: value for part in (fields, call) for name, value in part.items() if value is not None}
        return source, SearchArguments.read({**self.search_kwargs, **given}, source.options)

    def _scorer(self) -> LogicScorer:
        own = None if isinstance(self.source, VectorStore) else getattr(self.source, "scorer", None)
        return own if isinstance(own, LogicScorer) else scorer_for(self.source, self.scorer, mode=self.mode)

    def _source(self) -> Source:
        source: Any = self.source
        if isinstance(source, VectorPool):
            return PoolSource(source, self._scorer())
        if isinstance(source, VectorStore):
            vectors = self._vectors(self._scorer(), source, self.on_missing)
            qdrant = any(kind.__name__ == "QdrantVectorStore" for kind in type(source).__mro__)
            if qdrant and self.vectors is None:
                return DatabaseSource(_logic_search(source, vectors.scorer), vectors)
            return StoreSource(vectors)
        if not isinstance(source, LogicQueries):
            kind = type(source).__name__
            raise InvalidOption(f"a source is a vector store, a pool, an index or a LogicSearch, not {kind}")
        if self.scorer is not None or self.mode is not None:
            raise InvalidOption("a search that runs in the database has its own scorer; do not pass another")
        return DatabaseSource(source, self._vectors(self._scorer(), None, self.on_missing))


def _logic_search(store: Any, scorer: LogicScorer) -> LogicQueries:
    """A logic search for a QdrantVectorStore, which takes fewer requests than nearest-vector searches do."""
    from qdrant_lcse import LogicSearch

    name = store.vector_name or None
    return kept_with(store, scorer, lambda: LogicSearch(store.client, store.collection_name, scorer, vector_name=name))
