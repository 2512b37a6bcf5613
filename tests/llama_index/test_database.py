"""Nodes of Qdrant collections, scored in the database: as LlamaIndex wrote them, and as anyone else did."""

from __future__ import annotations

import pytest
from llama_index.core.schema import ImageNode
from llama_index.vector_stores.qdrant import QdrantVectorStore
from llama_index_lcse import METADATA_KEY, DatabaseRetriever
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_lcse import AsyncLogicSearch, LogicSearch

from lcse_plugins import Candidate, LogicScorer
from lcse_plugins.errors import InvalidOption
from lcse_plugins.testing import toy_gallery

QUERY = "umbrella and no person"


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


def test_numbers_out_of_range_are_refused(gallery: tuple[LogicScorer, list[Candidate]]) -> None:
    with pytest.raises(InvalidOption):
        DatabaseRetriever(object(), top_n=0)
