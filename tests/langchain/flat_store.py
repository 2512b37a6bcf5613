"""A vector store of a class that nobody knows: it returns documents, and no vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from numpy.typing import ArrayLike


class FlatStore(VectorStore):
    """Scans its vectors; each result comes `copies` times, as from stores that hold a picture twice."""

    def __init__(self, documents: list[Document], vectors: ArrayLike, *, copies: int = 1) -> None:
        self.documents = documents
        self.vectors = np.asarray(vectors)
        self.copies = copies
        self.searches = 0

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        self.searches += 1
        order = np.argsort(-(self.vectors @ np.asarray(embedding)), kind="stable")
        return [self.documents[i].model_copy() for i in order for _ in range(self.copies)][:k]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        raise NotImplementedError

    @classmethod
    def from_texts(
        cls, texts: list[str], embedding: Embeddings, metadatas: list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> FlatStore:
        raise NotImplementedError
