"""A retriever that obeys *and*, *or* and *not*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, SkipValidation

from langchain_lcse.child_runs import arun_as_child, run_as_child
from langchain_lcse.documents import without_evidence
from langchain_lcse.images import image_location
from langchain_lcse.sources.choose import Source, choose_source
from langchain_lcse.sources.protocol import DocumentSource, SearchArguments
from langchain_lcse.vectors import VectorFunction
from lcse_plugins.hosts.checked_options import CheckedOptions, OptionalCount
from lcse_plugins.hosts.made_once import MadeOnce
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation
from lcse_plugins.scorer import LogicScorer

__all__ = ["LogicRetriever"]


class LogicRetriever(CheckedOptions, BaseRetriever):
    """Finds the documents whose pictures show what the query says and do not show what it excludes.

        >>> retriever = LogicRetriever(source=store, scorer=LogicScorer(encoder), k=5)
        >>> retriever.invoke("an umbrella and no person")
        >>> retriever.invoke("a dog", k=20, min_truth=0.5, filter=...)

    Each document is a copy with its score in `metadata["relevance_score"]` and the reasons in `metadata["lcse"]`, an
    `Account` of `lcse_plugins.hosts.result_metadata`.
    Fewer than `k` come back when the source holds fewer, or the filter or `min_truth` leaves fewer; none from an empty
    source. A document that the source returns twice counts once. `bind(filter=…)` fixes a filter for all calls.

    Raises:
        InvalidOption: a setting, or an argument of a call, is out of its range.
        QueryError: the query cannot be read.
        InvalidCandidate: vectors do not fit the encoder or each other, or no document found has one.
        SearchUnavailable: the source did not answer.
    """

    source: SkipValidation[Source]
    """A vector store; a `VectorPool` or `ImageIndex`; or a `qdrant_lcse.LogicSearch`, which scores in the database."""
    scorer: LogicScorer | None = None
    """Reads and scores queries; its encoder made the source's vectors. A store with `LcseEmbeddings` needs none, and a
    `LogicSearch` has its own."""
    k: OptionalCount = None
    """How many documents to return; 4 by default."""
    fetch_k: OptionalCount = None
    """How many candidates to fetch for each search vector of a query; 1,000 by default. Lower it if pictures must be
    encoded anew."""
    min_truth: float | None = None
    """Leave out documents for which the query holds less than this."""
    exact: bool | None = None
    """Search deeper until the result is proved or the source exhausted, which `metadata["lcse"]["exact"]` says; not so
    by default."""
    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    """More arguments for the source's own search, such as Qdrant's `search_params`. `k`, `filter`, `min_truth`,
    `fetch_k` and `exact`, or a `LogicSearch`'s words for them, mean the same here as elsewhere: those of a call come
    first, and a field set to something else is refused, as is what the source does not know."""
    with_evidence: bool = True
    """Whether documents carry their score and the reasons. Without them a document is the same for every query, which
    it must be for those that know one by its equality, such as `MultiQueryRetriever`."""
    vectors: VectorFunction | None = None
    """A function that gives the image vectors of documents; else they are read from the store or encoded."""
    on_missing: Literal["drop", "raise"] = "drop"
    """A document with no image vector is left out, or an error. That none has one is always an error."""
    locate_image: Callable[[Document], ImageLocation | None] = image_location
    """Which picture a document stands for, when its vector must be encoded."""
    image_access: ImageAccess = DEFAULT_ACCESS
    """What may be read to get a picture."""
    image_cache: ImageVectorCache | None = None
    """Keeps encoded pictures; give several retrievers the same to share it."""

    made: MadeOnce[DocumentSource] = Field(default_factory=MadeOnce, exclude=True, repr=False)
    """What these settings were made into, not to be set: LangChain makes a retriever of the fields for each configured
    call, and by this one all of them share what was encoded."""

    model_config = ConfigDict(extra="forbid")

    def model_post_init(self, context: Any, /) -> None:
        """Check that the source can be searched and what it is asked for."""
        self.search_arguments()

    def search_arguments(self, **call: Any) -> SearchArguments:
        """What a call with these arguments asks of the source.

        Raises:
            InvalidOption: a number is out of its range or given twice, or the source cannot do what it is asked for.
        """
        settings = {name: getattr(self, name) for name in ("k", "fetch_k", "min_truth", "exact")}
        given = {name: value for name, value in settings.items() if value is not None}
        return self._source().accepts.merged(call=call, settings=given, search_kwargs=self.search_kwargs)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Any = None,
        min_truth: float | None = None,
    ) -> list[Document]:
        source, arguments = self._source(), self.search_arguments(k=k, filter=filter, min_truth=min_truth)
        return self._told(run_as_child(run_manager.get_child(), lambda: source.search(query, arguments)))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Any = None,
        min_truth: float | None = None,
    ) -> list[Document]:
        source, arguments = self._source(), self.search_arguments(k=k, filter=filter, min_truth=min_truth)
        return self._told(await arun_as_child(run_manager.get_child(), source.asearch(query, arguments)))

    def _told(self, documents: list[Document]) -> list[Document]:
        return documents if self.with_evidence else without_evidence(documents)

    def _source(self) -> DocumentSource:
        """The way to search, by the fields as they are now."""
        how: dict[str, Any] = {
            "scorer": self.scorer,
            "vectors": self.vectors,
            "on_missing": self.on_missing,
            "locate": self.locate_image,
            "access": self.image_access,
            "cache": self.image_cache,
        }
        return self.made.get((self.source, how), lambda: choose_source(self.source, **how))
