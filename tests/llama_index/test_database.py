"""Nodes of Qdrant collections, scored in the database: as LlamaIndex wrote them, and as anyone else did."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

import pytest
from llama_index.core.schema import ImageNode, MetadataMode
from llama_index.vector_stores.qdrant import QdrantVectorStore
from llama_index_lcse import METADATA_KEY, DatabaseRetriever, LogicPostprocessor
from PIL import Image
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_lcse import AsyncLogicSearch, LogicSearch

from lcse_plugins import Candidate, LogicScorer
from lcse_plugins.errors import InvalidCandidate, InvalidOption
from lcse_plugins.testing import toy_gallery

QUERY = "umbrella and no person"


def _inline() -> str:
    kept = BytesIO()
    Image.new("RGB", (3, 2), "red").save(kept, "PNG")
    return base64.b64encode(kept.getvalue()).decode()


INLINE = _inline()


@pytest.fixture
def gallery() -> tuple[LogicScorer, list[Candidate]]:
    encoder, candidates = toy_gallery()
    return LogicScorer(encoder), candidates


def test_collections_written_by_llama_index(gallery: tuple[LogicScorer, list[Candidate]]) -> None:
    scorer, candidates = gallery
    client = QdrantClient(":memory:")
    nodes = [
        ImageNode(text=str(c.id), image_path=f"{c.id}.jpg", metadata={"album": "toy"}, embedding=c.vector.tolist())
        for c in candidates
    ]
    QdrantVectorStore("images", client=client).add(list(nodes))
    found = DatabaseRetriever(LogicSearch(client, "images", scorer), top_n=3).retrieve(QUERY)
    expected = scorer.rank(QUERY, candidates, limit=3)
    assert [node.text for node in found] == [result.id for result in expected]
    assert [node.score for node in found] == pytest.approx([result.score for result in expected], abs=1e-5)
    first = found[0].node
    assert isinstance(first, ImageNode)
    assert first.image_path == "umbrella.jpg"
    assert first.metadata["album"] == "toy"
    assert first.metadata[METADATA_KEY]["evidence"][1]["negated"] is True
    assert METADATA_KEY in first.excluded_llm_metadata_keys


async def test_any_other_collection_and_asynchronous_search(gallery: tuple[LogicScorer, list[Candidate]]) -> None:
    scorer, candidates = gallery
    client = AsyncQdrantClient(":memory:")
    size = models.VectorParams(size=len(candidates[0].vector), distance=models.Distance.COSINE)
    await client.create_collection("images", vectors_config=size)
    points = [
        models.PointStruct(id=i, vector=c.vector.tolist(), payload={"path": f"{c.id}.jpg"})
        for i, c in enumerate(candidates)
    ]
    await client.upsert("images", points=points)
    retriever = DatabaseRetriever(AsyncLogicSearch(client, "images", scorer), top_n=2, min_truth=0.5)
    found = await retriever.aretrieve(QUERY)
    assert [getattr(node.node, "image_path", None) for node in found] == ["umbrella.jpg", "umbrella bench.jpg"]
    with pytest.raises(InvalidOption, match="aretrieve"):
        retriever.retrieve(QUERY)


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"image": "dog.jpg"}, "image_path"),
        ({"filename": "dog.jpg"}, "image_path"),
        ({"url": "https://pictures.example/dog.jpg"}, "image_url"),
        ({"image": "data:image/png;base64,iVBORw0KGgo="}, "image"),
    ],
)
def test_a_payload_may_name_its_picture_as_it_likes(
    payload: dict[str, str], field: str, gallery: tuple[LogicScorer, list[Candidate]]
) -> None:
    assert getattr(found_node(gallery, payload), field) == next(iter(payload.values())).removeprefix(
        "data:image/png;base64,"
    )


def found_node(gallery: tuple[LogicScorer, list[Candidate]], payload: dict[str, Any]) -> ImageNode:
    """The node of the one point of a collection."""
    scorer, candidates = gallery
    client = QdrantClient(":memory:")
    size = models.VectorParams(size=len(candidates[0].vector), distance=models.Distance.COSINE)
    client.create_collection("images", vectors_config=size)
    client.upsert("images", [models.PointStruct(id=1, vector=candidates[0].vector.tolist(), payload=payload)])
    (found,) = DatabaseRetriever(LogicSearch(client, "images", scorer)).retrieve(QUERY)
    assert isinstance(found.node, ImageNode)
    return found.node


@pytest.mark.parametrize(
    "payload",
    [
        {"image": INLINE},
        {"image": f"data:image/png;base64,{INLINE}"},
        {"page_content": "a dot", "metadata": {"image": INLINE}},
        {"page_content": INLINE, "metadata": None},
        {"record": {"image": INLINE}},
        {"image_path": "dot.png", "thumbnail": INLINE},
    ],
)
def test_a_picture_in_a_payload_is_seen_and_not_read(
    gallery: tuple[LogicScorer, list[Candidate]], payload: dict[str, Any]
) -> None:
    node = found_node(gallery, {**payload, "title": "dot"})
    if "image_path" not in payload:
        with Image.open(node.resolve_image()) as picture:
            assert picture.size == (3, 2)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert INLINE not in node.get_content(mode)
        assert "title: dot" in node.get_content(mode)


@pytest.mark.parametrize(
    "payload",
    [
        {"page_content": "a dog", "metadata": {"image_path": "dog.jpg", "album": "toy"}},
        {"text": "a dog", "meta": {"image_path": "dog.jpg", "album": "toy"}},
        {"page_content": "dog.jpg", "metadata": {"album": "toy"}},
        {"page_content": "data: a dog, a cat", "metadata": {"path": "dog.jpg", "album": "toy"}},
    ],
)
def test_what_langchain_wrote_is_read(gallery: tuple[LogicScorer, list[Candidate]], payload: dict[str, Any]) -> None:
    node = found_node(gallery, payload)
    assert node.image_path == "dog.jpg"
    if "page_content" in payload:
        assert (node.text, node.metadata["album"]) == (payload["page_content"], "toy")


@pytest.mark.parametrize("written", ["{", "[7]", 7, '{"metadata": 7}'])
def test_a_damaged_node_is_told(gallery: tuple[LogicScorer, list[Candidate]], written: Any) -> None:
    with pytest.raises(InvalidCandidate, match=r"point 1 .*'_node_content'"):
        found_node(gallery, {"_node_content": written, "_node_type": "ImageNode"})


def test_numbers_out_of_range_are_refused(gallery: tuple[LogicScorer, list[Candidate]]) -> None:
    with pytest.raises(InvalidOption):
        DatabaseRetriever(object(), top_n=0)  # type: ignore[arg-type]


@pytest.fixture
def search(gallery: tuple[LogicScorer, list[Candidate]]) -> LogicSearch:
    """A collection whose payloads name a path only by a number."""
    scorer, candidates = gallery
    client = QdrantClient(":memory:")
    size = models.VectorParams(size=len(candidates[0].vector), distance=models.Distance.COSINE)
    client.create_collection("images", vectors_config=size)
    points = [models.PointStruct(id=i, vector=c.vector.tolist(), payload={"path": i}) for i, c in enumerate(candidates)]
    client.upsert("images", points=points)
    return LogicSearch(client, "images", scorer)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"options": {"min_truth": 0.5}}, 2),
        ({"options": {"limit": 1}}, 1),
        ({"options": {"limit": 1}, "top_n": 1}, 1),
        ({"options": {"query_filter": models.Filter(must=[models.HasIdCondition(has_id=[1, 2, 3])])}}, 3),
        ({}, 10),
    ],
)
def test_options_are_honoured(search: LogicSearch, settings: dict[str, Any], found: int) -> None:
    assert len(DatabaseRetriever(search, **settings).retrieve(QUERY)) == found


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"options": {"limit": 1}, "top_n": 2}, "limit is given twice: 2, and 1 in options"),
        ({"options": {"min_truth": 0.1}, "min_truth": 0.5}, "min_truth is given twice"),
        ({"options": {"min_truth": 2.0}}, "min_truth lies between"),
        ({"options": {"tenant": 7}}, "does not take tenant; it takes .*query_filter"),
    ],
)
def test_options_that_cannot_be_honoured_are_refused(search: LogicSearch, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidOption, match=told):
        DatabaseRetriever(search, **settings)


def test_what_does_not_search_is_refused() -> None:
    with pytest.raises(InvalidOption, match="has a method `query`, which object has not"):
        DatabaseRetriever(object())  # type: ignore[arg-type]


def test_a_path_that_is_no_text_is_none(search: LogicSearch) -> None:
    first = DatabaseRetriever(search, top_n=1).retrieve(QUERY)[0].node
    assert isinstance(first, ImageNode)
    assert first.image_path is None
    assert first.metadata["path"] == int(first.node_id)


async def test_vectors_of_texts_are_left_out_or_refused(gallery: tuple[LogicScorer, list[Candidate]]) -> None:
    scorer, candidates = gallery
    client = QdrantClient(":memory:")
    store = QdrantVectorStore("images", client=client)
    wrong = ImageNode(text="umbrella receipt", image_path="gone.jpg", metadata={"album": "toy"})
    words = wrong.get_content(MetadataMode.EMBED)
    store.add([wrong.model_copy(update={"embedding": scorer.encoder.encode_texts([words])[0].tolist()})])
    retriever = DatabaseRetriever(LogicSearch(client, "images", scorer))
    with pytest.raises(
        InvalidCandidate, match=r"that of its text, 'album: toy.*not of its picture; write the collection"
    ):
        retriever.retrieve(QUERY)
    store.add(
        [ImageNode(text="a photo", image_path=f"{c.id}.jpg", embedding=c.vector.tolist()) for c in candidates[:3]]
    )
    for found in (retriever.retrieve("umbrella receipt"), await retriever.aretrieve("umbrella receipt")):
        assert [node.text for node in found] == ["a photo"] * 3


def test_its_nodes_are_known_to_be_fetched_by_logic(gallery: tuple[LogicScorer, list[Candidate]]) -> None:
    scorer, candidates = gallery
    client = QdrantClient(":memory:")
    nodes = [ImageNode(text="a photo", image_path=f"{c.id}.jpg", embedding=c.vector.tolist()) for c in candidates]
    QdrantVectorStore("images", client=client).add(list(nodes))
    found = DatabaseRetriever(LogicSearch(client, "images", scorer), top_n=3).retrieve(QUERY)
    for retrieved in found:
        retrieved.node.embedding = candidates[0].vector.tolist()
    again = LogicPostprocessor(encoder=scorer.encoder).postprocess_nodes(found, query_str=QUERY)
    account = again[0].metadata[METADATA_KEY]
    assert (account["fetched"], account["notes"]) == ("logic", [])
