"""Documents of Qdrant collections that the database scores, whoever wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import ToolCall
from langchain_lcse import LogicRetriever, logic_search_tool
from llama_index.core.schema import BaseNode, ImageNode
from llama_index.vector_stores.qdrant import QdrantVectorStore
from PIL import Image
from qdrant_client import QdrantClient, models
from qdrant_lcse import LogicSearch

from lcse_plugins import Candidate, LogicScorer
from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.testing import ToyEncoder

QUERY = "umbrella and no person"


@pytest.fixture
def photos(gallery: list[Candidate], tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{candidate.id}.png" for candidate in gallery]
    for path in paths:
        Image.new("RGB", (9, 7), "red").save(path)
    return paths


def test_a_collection_of_llama_index_gives_texts_and_pictures(
    scorer: LogicScorer, gallery: list[Candidate], photos: list[Path]
) -> None:
    nodes: list[BaseNode] = [
        ImageNode(text=f"photo {i}", image_path=str(path), metadata={"album": "toy"}, embedding=c.vector.tolist())
        for i, (c, path) in enumerate(zip(gallery, photos, strict=True))
    ]
    client = QdrantClient(":memory:")
    QdrantVectorStore("photos", client=client).add(nodes)
    retriever = LogicRetriever(source=LogicSearch(client, "photos", scorer), k=2)
    found = retriever.invoke(QUERY)
    assert [Path(document.metadata["image_path"]).stem for document in found] == ["umbrella", "umbrella bench"]
    assert all(document.page_content.startswith("photo ") for document in found)
    assert found[0].metadata["album"] == "toy"
    assert "_node_content" not in found[0].metadata
    message = logic_search_tool(retriever).invoke(
        ToolCall(name="search_pictures", args={"query": QUERY}, id="call-1", type="tool_call")
    )
    assert [block["type"] for block in message.content].count("image") == 2


def searched(scorer: LogicScorer, points: list[tuple[Any, dict[str, Any]]]) -> LogicSearch:
    """A search over points, each a vector and its payload."""
    client = QdrantClient(":memory:")
    client.create_collection("photos", models.VectorParams(size=64, distance=models.Distance.COSINE))
    rows = [models.PointStruct(id=i, vector=row.tolist(), payload=payload) for i, (row, payload) in enumerate(points)]
    client.upsert("photos", rows)
    return LogicSearch(client, "photos", scorer)


@pytest.mark.parametrize(
    ("payload", "content"),
    [
        ({"page_content": "a dog", "metadata": {"path": "dog.jpg"}}, "a dog"),
        ({"page_content": "a dog", "metadata": "none"}, "a dog"),
        ({"page_content": None, "metadata": None, "path": "dog.jpg"}, "dog.jpg"),
        ({"page_content": 7}, "0"),
        ({"_node_content": "{"}, "0"),
        ({"_node_content": '{"text": "a dog", "image_url": "https://pictures.example/1"}'}, "a dog"),
        ({"_node_content": '{"image_resource": {"path": "dog.jpg"}}'}, "dog.jpg"),
        ({"_node_content": '{"image": "bm8="}'}, "0"),
        ({"path": "dog.jpg"}, "dog.jpg"),
        ({}, "0"),
    ],
)
def test_any_payload_becomes_a_document(
    scorer: LogicScorer, gallery: list[Candidate], payload: dict[str, Any], content: str
) -> None:
    search = searched(scorer, [(gallery[0].vector, payload)])
    (found,) = LogicRetriever(source=search).invoke(QUERY)
    assert (found.id, found.page_content) == ("0", content)


def named(path: Path, words: str) -> dict[str, Any]:
    return {"page_content": words, "metadata": {"image_path": str(path)}}


async def test_vectors_of_texts_in_a_database_are_left_out_or_refused(
    scorer: LogicScorer, encoder: ToyEncoder, gallery: list[Candidate], photos: list[Path]
) -> None:
    pictures = [(c.vector, named(path, "a photo")) for c, path in zip(gallery, photos, strict=True)]
    receipt = (encoder.encode_texts(["umbrella receipt"])[0], named(photos[-1], "umbrella receipt"))
    search = searched(scorer, [receipt, *pictures])
    retriever = LogicRetriever(source=search, k=3)
    for found in (retriever.invoke("umbrella receipt"), await retriever.ainvoke("umbrella receipt")):
        assert [document.page_content for document in found] == ["a photo"] * 2
    with pytest.raises(InvalidCandidate, match="that of its text, 'umbrella receipt'"):
        LogicRetriever(source=search, k=3, on_missing="raise").invoke("umbrella receipt")
    with pytest.raises(InvalidCandidate, match="not of its picture"):
        LogicRetriever(source=searched(scorer, [receipt])).invoke(QUERY)


def test_a_search_that_gives_no_vectors_is_taken_at_its_word(scorer: LogicScorer, gallery: list[Candidate]) -> None:
    search = searched(scorer, [(gallery[0].vector, {"page_content": "a dog", "metadata": {"path": "dog.jpg"}})])

    class Bare:
        def query(self, text: str, **options: Any) -> Any:
            return search.query(text, **options)

    assert isinstance(LogicRetriever(source=Bare()).invoke(QUERY)[0], Document)


def test_a_cache_of_the_searchs_encoder_is_used(scorer: LogicScorer, gallery: list[Candidate]) -> None:
    search = searched(scorer, [(gallery[0].vector, {})])
    assert len(LogicRetriever(source=search, image_cache=ImageVectorCache(scorer.encoder)).invoke(QUERY)) == 1
