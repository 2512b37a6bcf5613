"""Sources over one small gallery, all of which must give the same answers."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import LcseEmbeddings
from PIL import Image

from lcse_plugins import Candidate, LogicScorer
from lcse_plugins.testing import ToyEncoder, toy_gallery


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
    """One document per picture; the page content names what it shows, which is how the toy encoder sees it."""
    return [
        Document(id=str(uuid4()), page_content=str(candidate.id), metadata={"row": row, "even": row % 2 == 0})
        for row, candidate in enumerate(gallery)
    ]


def _in_memory(embeddings: LcseEmbeddings) -> VectorStore:
    return InMemoryVectorStore(embeddings)


def _qdrant(embeddings: LcseEmbeddings) -> VectorStore:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    size = embeddings.encoder.dimension
    client.create_collection("pictures", models.VectorParams(size=size, distance=models.Distance.COSINE))
    return QdrantVectorStore(client, "pictures", embeddings)


def _chroma(embeddings: LcseEmbeddings) -> VectorStore:
    chroma = pytest.importorskip("langchain_chroma")
    store: VectorStore = chroma.Chroma(f"pictures-{uuid4().hex}", embeddings)
    return store


STORES = {"in-memory": _in_memory, "qdrant": _qdrant, "chroma": _chroma}


@pytest.fixture(params=sorted(STORES))
def empty_store(request: pytest.FixtureRequest, encoder: ToyEncoder) -> VectorStore:
    return STORES[request.param](LcseEmbeddings(encoder))


@pytest.fixture
def store(empty_store: VectorStore, documents: list[Document]) -> VectorStore:
    empty_store.add_documents(documents)
    return empty_store


@pytest.fixture
def memory(encoder: ToyEncoder, documents: list[Document]) -> InMemoryVectorStore:
    store = InMemoryVectorStore(LcseEmbeddings(encoder))
    store.add_documents(documents)
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
