"""Sources over one small gallery, all of which must give the same answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

import numpy as np
import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import LcseEmbeddings
from langchain_lcse.stores import add_vectors
from langchain_qdrant import QdrantVectorStore
from numpy.typing import ArrayLike
from PIL import Image
from qdrant_client import QdrantClient, models
from qdrant_lcse import LogicSearch

from lcse_plugins import Candidate, LogicScorer, VectorPool
from lcse_plugins.testing import ToyEncoder, toy_gallery

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # langchain-community is no longer maintained
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS


def _faiss(embeddings: LcseEmbeddings) -> FAISS:
    import faiss

    return FAISS(embeddings, faiss.IndexFlatL2(embeddings.encoder.dimension), InMemoryDocstore(), {})


def _qdrant(embeddings: LcseEmbeddings) -> QdrantVectorStore:
    client = QdrantClient(":memory:")
    size = embeddings.encoder.dimension
    client.create_collection("pictures", models.VectorParams(size=size, distance=models.Distance.COSINE))
    return QdrantVectorStore(client, "pictures", embeddings)


STORES: dict[str, Callable[[LcseEmbeddings], VectorStore]] = {
    "in-memory": InMemoryVectorStore,
    "faiss": _faiss,
    "chroma": lambda embeddings: Chroma(f"pictures-{uuid4().hex}", embeddings),
    "qdrant": _qdrant,
}


class FlatStore(VectorStore):
    """A store of a class that nobody knows, which returns no vectors; each result comes `copies` times."""

    def __init__(self, documents: list[Document], vectors: ArrayLike, *, copies: int = 1) -> None:
        self.documents, self.vectors, self.copies = documents, np.asarray(vectors), copies
        self.asked: list[int] = []

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        self.asked.append(k)
        order = np.argsort(-(self.vectors @ np.asarray(embedding)), kind="stable")
        return [self.documents[i].model_copy() for i in order for _ in range(self.copies)][:k]

    similarity_search = from_texts = None  # type: ignore[assignment]


def toy_documents(gallery: list[Candidate]) -> list[Document]:
    """One document per picture: a caption that tells nothing, and a path that names what the picture shows."""
    return [
        Document(
            id=str(uuid5(NAMESPACE_URL, str(candidate.id))),
            page_content=f"photo number{row}",
            metadata={"image_path": f"{candidate.id}.png", "row": row, "even": row % 2 == 0},
        )
        for row, candidate in enumerate(gallery)
    ]


def fill(store: VectorStore, documents: list[Document], gallery: list[Candidate]) -> VectorStore:
    """Store documents with vectors that are known, for pictures that do not exist."""
    add_vectors(store, [(d, c.vector.tolist()) for d, c in zip(documents, gallery, strict=True)])
    return store


def shown(documents: list[Document]) -> list[str]:
    """What the pictures of found documents show."""
    return [Path(document.metadata["image_path"]).stem for document in documents]


def fields_over(kind: str) -> dict[str, Any]:
    """A source of one kind over the toy gallery, with the scorer if it does not know its own."""
    encoder, gallery = toy_gallery()
    documents = toy_documents(gallery)
    if kind == "pool":
        rows = [Candidate(d.id, c.vector, payload=d) for c, d in zip(gallery, documents, strict=True)]
        return {"source": VectorPool.of(rows), "scorer": LogicScorer(encoder)}
    make = STORES["qdrant" if kind == "search" else kind]
    store: Any = fill(make(LcseEmbeddings(encoder)), documents, gallery)
    return {"source": LogicSearch(store.client, "pictures", LogicScorer(encoder)) if kind == "search" else store}


SOURCES = (*sorted(STORES), "pool", "search")


@pytest.fixture
def encoder() -> ToyEncoder:
    return toy_gallery()[0]


@pytest.fixture
def gallery() -> list[Candidate]:
    return toy_gallery()[1]


@pytest.fixture
def scorer(encoder: ToyEncoder) -> LogicScorer:
    return LogicScorer(encoder)


@pytest.fixture
def documents(gallery: list[Candidate]) -> list[Document]:
    return toy_documents(gallery)


@pytest.fixture(params=sorted(STORES))
def empty_store(request: pytest.FixtureRequest, scorer: LogicScorer) -> VectorStore:
    return STORES[request.param](LcseEmbeddings(scorer))


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest) -> Any:
    return fields_over(request.param)["source"]


@pytest.fixture
def memory() -> Any:
    return fields_over("in-memory")["source"]


@pytest.fixture
def search() -> Any:
    return fields_over("search")["source"]


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    """Six picture files, each of another colour."""
    paths = [tmp_path / f"{name}.png" for name in ("red", "green", "blue", "white", "black", "yellow")]
    for i, path in enumerate(paths):
        Image.new("RGB", (40 + i, 30), path.stem).save(path)
    return paths
