"""Nodes of Qdrant collections, scored in the database: as LlamaIndex wrote them, and as anyone else did."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import ImageNode, MetadataMode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.vector_stores.qdrant import QdrantVectorStore
from llama_index_lcse import METADATA_KEY, LogicRetriever
from PIL import Image
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_lcse import AsyncLogicSearch, LogicSearch

from lcse_plugins import ImageAccess, LogicScorer
from lcse_plugins.errors import InvalidCandidate, InvalidOption
from lcse_plugins.testing import toy_gallery
from tests.llama_index.painted import painted

QUERY = "umbrella and no person"
ENCODER, GALLERY = toy_gallery()
SCORER = LogicScorer(ENCODER)
SIZE = models.VectorParams(size=ENCODER.dimension, distance=models.Distance.COSINE)
INLINE = base64.b64encode(painted("dog cat sofa")).decode()


def points(payloads: list[dict[str, Any]]) -> list[models.PointStruct]:
    """The first pictures of the gallery with these payloads."""
    pairs = zip(GALLERY, payloads, strict=False)
    return [models.PointStruct(id=i, vector=c.vector.tolist(), payload=p) for i, (c, p) in enumerate(pairs)]


def collection(payloads: list[dict[str, Any]]) -> LogicSearch:
    client = QdrantClient(":memory:")
    client.create_collection("images", vectors_config=SIZE)
    client.upsert("images", points=points(payloads))
    return LogicSearch(client, "images", SCORER)


def test_collections_written_by_llama_index() -> None:
    client = QdrantClient(":memory:")
    nodes = [
        ImageNode(text=str(c.id), image_path=f"{c.id}.jpg", metadata={"album": "toy"}, embedding=c.vector.tolist())
        for c in GALLERY
    ]
    QdrantVectorStore("images", client=client).add(list(nodes))
    found = LogicRetriever(LogicSearch(client, "images", SCORER), top_n=3).retrieve(QUERY)
    expected = SCORER.rank(QUERY, GALLERY, limit=3)
    assert [node.text for node in found] == [result.id for result in expected]
    assert [node.score for node in found] == pytest.approx([result.score for result in expected], abs=1e-5)
    first = found[0].node
    assert isinstance(first, ImageNode)
    assert first.image_path == "umbrella.jpg"
    assert first.metadata["album"] == "toy"
    assert first.metadata[METADATA_KEY]["evidence"][1]["negated"] is True
    assert METADATA_KEY in first.excluded_llm_metadata_keys


async def test_any_other_collection_and_asynchronous_search() -> None:
    client = AsyncQdrantClient(":memory:")
    await client.create_collection("images", vectors_config=SIZE)
    await client.upsert("images", points=points([{"path": f"{c.id}.jpg"} for c in GALLERY]))
    retriever = LogicRetriever(AsyncLogicSearch(client, "images", SCORER), top_n=2, min_truth=0.5)
    found = await retriever.aretrieve(QUERY)
    assert [getattr(node.node, "image_path", None) for node in found] == ["umbrella.jpg", "umbrella bench.jpg"]
    with pytest.raises(InvalidOption, match="aretrieve"):
        retriever.retrieve(QUERY)


def test_what_may_not_be_read_is_not_handed_on(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    confined = ImageAccess(root=str(inside))
    for payload, expected in (
        ({"path": "dog.jpg"}, str(inside / "dog.jpg")),
        ({"path": str(tmp_path / "secret.jpg")}, None),
        ({"path": "../secret.jpg"}, None),
        ({"url": "https://pictures.example/dog.jpg"}, None),
    ):
        node = found_node(payload, image_access=confined)
        assert (node.image_path, node.image_url) == (expected, None)
        assert node.metadata.items() >= payload.items()


def found_node(payload: dict[str, Any], **options: Any) -> ImageNode:
    """The node of the one point of a collection."""
    (found,) = LogicRetriever(collection([payload]), **options).retrieve(QUERY)
    assert isinstance(found.node, ImageNode)
    return found.node


@pytest.mark.parametrize(
    "payload",
    [
        {"image": INLINE},
        {"page_content": INLINE, "metadata": None},
        {"image_path": "dot.png", "thumbnail": INLINE},
    ],
)
def test_a_picture_in_a_payload_is_seen_and_not_read(payload: dict[str, Any]) -> None:
    node = found_node({**payload, "title": "dot"})
    if "image_path" not in payload:
        with Image.open(node.resolve_image()) as picture:
            assert picture.size == (24, 8)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert INLINE not in node.get_content(mode)
        assert "title: dot" in node.get_content(mode)


def test_a_damaged_node_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    node = found_node({"_node_content": "{", "_node_type": "ImageNode", "path": "dog.jpg"})
    assert node.image_path == "dog.jpg"
    assert "point 0 holds a damaged node" in caplog.text


@pytest.fixture
def search() -> LogicSearch:
    payloads = [
        {"path": i, "name": str(c.id), "tags": [("even", "odd")[i % 2], *(["small"] if i < 4 else [])]}
        for i, c in enumerate(GALLERY)
    ]
    return collection(payloads)


def test_options_are_honoured(search: LogicSearch) -> None:
    three = {"query_filter": models.Filter(must=[models.HasIdCondition(has_id=[1, 2, 3])])}
    settings: list[dict[str, Any]] = [{}, {"top_n": 1}, {"min_truth": 0.5}, {"search_options": three}]
    assert [len(LogicRetriever(search, **one).retrieve(QUERY)) for one in settings] == [10, 1, 2, 3]


def _only(key: str, value: Any, operator: str = "==") -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=FilterOperator(operator))])


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (_only("path", 3), {3}),
        (_only("path", 10, ">"), {11}),
        (_only("path", [1, 2], "in"), {1, 2}),
        (_only("tags", ["odd"], "any"), {1, 3, 5, 7, 9, 11}),
        (_only("tags", ["odd", "small"], "all"), {1, 3}),
        (_only("tags", "small", "contains"), {0, 1, 2, 3}),
        (_only("tags", "odd", "!="), {0, 2, 4, 6, 8, 10}),
        (_only("name", "umbrella", "text_match"), {0, 1, 3}),
        (_only("path", None, "is_empty"), set()),
        (MetadataFilters(filters=[_only("path", 1), _only("path", 2)], condition=FilterCondition.OR), {1, 2}),
        (MetadataFilters(filters=[_only("path", 0, ">")], condition=FilterCondition.NOT), {0}),
        (MetadataFilters(filters=[_only("path", 4, ">"), _only("path", 6, "<")]), {5}),
    ],
)
def test_metadata_filters(search: LogicSearch, filters: MetadataFilters, expected: set[int]) -> None:
    found = LogicRetriever(search, top_n=20, filters=filters).retrieve(QUERY)
    assert {int(node.node_id) for node in found} == expected


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"search_options": {"limit": 1}}, "search_options has limit; use top_n="),
        ({"search_options": {"tenant": 7}}, "has tenant; .* the search takes: .*query_filter"),
        ({"mode": "lcse"}, "the search scores"),
        ({"filters": _only("path", 1), "search_options": {"query_filter": models.Filter()}}, "has query_filter"),
    ],
)
def test_options_that_cannot_be_honoured_are_refused(search: LogicSearch, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidOption, match=told):
        LogicRetriever(search, **settings)


async def test_vectors_of_texts_are_left_out_or_refused() -> None:
    client = QdrantClient(":memory:")
    store = QdrantVectorStore("images", client=client)
    wrong = ImageNode(text="umbrella receipt", image_path="gone.jpg", metadata={"album": "toy"})
    words = wrong.get_content(MetadataMode.EMBED)
    store.add([wrong.model_copy(update={"embedding": SCORER.encoder.encode_texts([words])[0].tolist()})])
    retriever = LogicRetriever(LogicSearch(client, "images", SCORER))
    with pytest.raises(
        InvalidCandidate, match=r"that of its text, 'album: toy.*not of its picture; embed the pictures"
    ):
        retriever.retrieve(QUERY)
    store.add([ImageNode(text="a photo", image_path=f"{c.id}.jpg", embedding=c.vector.tolist()) for c in GALLERY[:3]])
    for found in (retriever.retrieve("umbrella receipt"), await retriever.aretrieve("umbrella receipt")):
        assert [node.text for node in found] == ["a photo"] * 3
