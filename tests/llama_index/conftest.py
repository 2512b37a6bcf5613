"""Fixtures of the LlamaIndex tests: painted pictures as files, as nodes and in an index."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import ImageNode, NodeWithScore
from llama_index_lcse import LcseEmbedding

from tests.llama_index.painted import GALLERY, PaintedEncoder, painted


@pytest.fixture
def encoder() -> PaintedEncoder:
    return PaintedEncoder()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Each picture of the gallery as a file; its name does not tell what it shows."""
    for i, shown in enumerate(GALLERY):
        (tmp_path / f"{i:02}.png").write_bytes(painted(shown))
    return tmp_path


@pytest.fixture
def image_nodes(folder: Path) -> list[ImageNode]:
    """Image nodes without embeddings; their text is what the picture shows."""
    return [
        ImageNode(id_=str(uuid.UUID(int=i)), text=shown, image_path=str(folder / f"{i:02}.png"), metadata={"place": i})
        for i, shown in enumerate(GALLERY)
    ]


@pytest.fixture
def retrieved(image_nodes: list[ImageNode]) -> list[NodeWithScore]:
    """The image nodes with their embeddings, as a retriever might give them."""
    vectors = PaintedEncoder().encode_images([str(node.image_path) for node in image_nodes])
    return [
        NodeWithScore(node=node.model_copy(update={"embedding": vector.tolist()}), score=0.5)
        for node, vector in zip(image_nodes, vectors, strict=True)
    ]


@pytest.fixture
def index(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> VectorStoreIndex:
    return VectorStoreIndex([node.node for node in retrieved], embed_model=LcseEmbedding(scorer=encoder))
