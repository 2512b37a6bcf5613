"""Logic search over vectors in memory: the core's own pool, every row scored."""

from __future__ import annotations

from itertools import islice

from langchain_core.documents import Document

from langchain_lcse.documents import document_of, ranked_documents
from langchain_lcse.sources.protocol import SearchTerms, Wanted
from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.off_loop import compute
from lcse_plugins.pool import VectorPool
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.search import rank_pool

__all__ = ["PoolSource"]


class PoolSource:
    """A pool as a source of documents; the result is always exact, and `filter` is a function of the document.

    Args:
        pool: Image vectors; a candidate's payload may be its document.
        scorer: Reads and scores queries; its encoder made the vectors.
    """

    terms = SearchTerms(function_filter=True)

    def __init__(self, pool: VectorPool, scorer: LogicScorer) -> None:
        self._pool = pool
        self._scorer = scorer

    def search(self, query: str, wanted: Wanted) -> list[Document]:
        """The best documents of the pool."""
        return self._ranked(self._scorer.encode(query), wanted)

    async def asearch(self, query: str, wanted: Wanted) -> list[Document]:
        """As `search`, in a thread."""
        return await compute(self._ranked, await self._scorer.aencode(query), wanted)

    def _ranked(self, encoded: EncodedQuery, wanted: Wanted) -> list[Document]:
        if wanted.filter is None:
            return ranked_documents(rank_pool(encoded, self._pool, limit=wanted.k, min_truth=wanted.min_truth))
        order, _ = self._pool.top(encoded, min_truth=wanted.min_truth)
        fitting = (p for p in order.tolist() if wanted.filter(document_of(self._pool.candidate(p))))
        kept = list(islice(fitting, wanted.k))
        if not kept:
            return []
        return ranked_documents(rank_pool(encoded, self._pool.part(kept)))
