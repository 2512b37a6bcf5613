"""From what the user has to a source the retriever can ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_lcse.embeddings import LcseEmbeddings
from langchain_lcse.sources.database import DatabaseSource
from langchain_lcse.sources.pool import PoolSource
from langchain_lcse.sources.protocol import DocumentSource
from langchain_lcse.sources.store import StoreSource
from langchain_lcse.vectors import DocumentVectors, VectorFunction, cache_for
from lcse_plugins.errors import InvalidOption
from lcse_plugins.hosts.logic_queries import DatabaseQueries, LogicQueries
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.locations import ImageAccess, ImageLocation
from lcse_plugins.index import ImageIndex
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.scorer import LogicScorer

__all__ = ["Source", "choose_source"]

Source: TypeAlias = VectorStore | VectorPool | LogicQueries
"""What a retriever can search."""


def choose_source(
    source: Source,
    *,
    scorer: LogicScorer | None,
    vectors: VectorFunction | None,
    on_missing: Literal["drop", "raise"],
    locate: Callable[[Document], ImageLocation | None],
    access: ImageAccess,
    cache: ImageVectorCache | None,
) -> DocumentSource:
    """The way to search a source, by its kind.

    Raises:
        InvalidOption: the source cannot be searched, or there is no scorer, or its encoder did not fill the store.
    """
    match source:
        case VectorStore():
            chosen = _scorer_of_store(source, scorer)
            kept = cache_for(chosen.encoder, cache)
            found = DocumentVectors(kept, vectors=vectors, store=source, locate=locate, access=access)
            return StoreSource(source, chosen, found, on_missing)
        case VectorPool():
            return PoolSource(source, _scorer_of_pool(source, scorer))
        case LogicQueries():
            if scorer is not None:
                raise InvalidOption("a search that runs in the database has its own scorer; do not pass another")
            queries = DatabaseQueries(source, blocking="invoke", awaited="ainvoke")
            if queries.encoder is None:
                return DatabaseSource(queries, None, on_missing)
            kept = cache_for(queries.encoder, cache)
            return DatabaseSource(queries, DocumentVectors(kept, locate=locate, access=access), on_missing)
    raise InvalidOption(f"a source is a vector store, a pool, an index or a LogicSearch, not {type(source).__name__}")


def _scorer_of_store(store: VectorStore, scorer: LogicScorer | None) -> LogicScorer:
    embeddings = store.embeddings
    if not isinstance(embeddings, LcseEmbeddings):
        return _required(scorer)
    if scorer is None:
        return LogicScorer(embeddings.encoder)
    _check_encoder(scorer, embeddings.encoder.encoder_id)
    return scorer


def _scorer_of_pool(pool: VectorPool, scorer: LogicScorer | None) -> LogicScorer:
    chosen = _required(scorer)
    if isinstance(pool, ImageIndex):
        _check_encoder(chosen, pool.encoder_id)
    return chosen


def _check_encoder(scorer: LogicScorer, encoder_id: str) -> None:
    if scorer.encoder.encoder_id != encoder_id:
        raise InvalidOption(
            f"the source's vectors are made by encoder {encoder_id!r}, the scorer uses {scorer.encoder.encoder_id!r}; "
            "use one encoder for both"
        )


def _required(scorer: LogicScorer | None) -> LogicScorer:
    if scorer is None:
        raise InvalidOption("pass scorer=LogicScorer(encoder) with the encoder that made the image vectors")
    return scorer
