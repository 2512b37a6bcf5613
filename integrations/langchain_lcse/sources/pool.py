"""Logic search over vectors in memory: the core's own pool, every row scored."""

from __future__ import annotations

from itertools import islice

from langchain_core.documents import Document

from langchain_lcse.documents import document_of, ranked_documents
from langchain_lcse.sources.protocol import AcceptedArguments, SearchArguments
from lcse_plugins.off_loop import compute
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.sources import rank_pool
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.encoded import EncodedQuery

__all__ = ["PoolSource"]


class PoolSource:
    """A pool as a source of documents; the result is always exact, and `filter` is a function of the document.

    Args:
        pool: Image vectors; a candidate's payload may be its document.
        scorer: Reads and scores queries; its encoder made the vectors.
    """

    accepts = AcceptedArguments(function_filter=True)

    def __init__(self, pool: VectorPool, scorer: LogicScorer) -> None:
        self._pool = pool
        self._scorer = scorer

    def search(self, query: str, arguments: SearchArguments) -> list[Document]:
        """The best documents of the pool."""
        return self._ranked(self._scorer.encode(query), arguments)

    async def asearch(self, query: str, arguments: SearchArguments) -> list[Document]:
        """As `search`, in a thread."""
        return await compute(self._ranked, await self._scorer.aencode(query), arguments)

    def _ranked(self, encoded: EncodedQuery, arguments: SearchArguments) -> list[Document]:
        if arguments.filter is None:
            return ranked_documents(rank_pool(encoded, self._pool, limit=arguments.k, min_truth=arguments.min_truth))
        order, _ = self._pool.top(encoded, min_truth=arguments.min_truth)
        fitting = (p for p in order.tolist() if arguments.filter(document_of(self._pool.candidate(p))))
        kept = list(islice(fitting, arguments.k))
        if not kept:
            return []
        return ranked_documents(rank_pool(encoded, self._pool.part(kept)))
