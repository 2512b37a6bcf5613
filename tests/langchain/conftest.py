"""Sources over one small gallery, all of which must give the same answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from uuid import NAMESPACE_URL, uuid4, uuid5

import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import LcseEmbeddings
from langchain_lcse.stores import add_vectors
from langchain_qdrant import QdrantVectorStore
from PIL import Image
from qdrant_client import QdrantClient, models

from lcse_plugins import Candidate, LogicScorer
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


def _chroma(embeddings: LcseEmbeddings) -> Chroma:
    return Chroma(f"pictures-{uuid4().hex}", embeddings)


STORES: dict[str, Callable[[LcseEmbeddings], VectorStore]] = {
    "in-memory": InMemoryVectorStore,
    "faiss": _faiss,
    "chroma": _chroma,
    "qdrant": _qdrant,
}


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
    add_vectors(store, documents, [candidate.vector.tolist() for candidate in gallery])
    return store


def shown(documents: list[Document]) -> list[str]:
    """What the pictures of found documents show."""
    return [Path(document.metadata["image_path"]).stem for document in documents]


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


@pytest.fixture
def store(empty_store: VectorStore, documents: list[Document], gallery: list[Candidate]) -> VectorStore:
    return fill(empty_store, documents, gallery)


@pytest.fixture
def memory(scorer: LogicScorer, documents: list[Document], gallery: list[Candidate]) -> InMemoryVectorStore:
    store = InMemoryVectorStore(LcseEmbeddings(scorer))
    fill(store, documents, gallery)
    return store


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    """Six picture files, each of another colour."""
    paths = []
    for i, name in enumerate(["red", "green", "blue", "white", "black", "yellow"]):
        path = tmp_path / f"{name}.png"
        Image.new("RGB", (40 + i, 30), name).save(path)
        paths.append(path)
    return paths
