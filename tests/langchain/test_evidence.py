"""Scores and reasons may be left out, for those that know a document by its equality."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_classic.retrievers import MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.vectorstores import VectorStore
from langchain_lcse import METADATA_KEY, LogicRetriever, logic_search_tool

from lcse_plugins import Candidate, LogicScorer, VectorPool

WAYS = "umbrella without a person\numbrella, but no person\nan umbrella and no person"


@pytest.fixture(params=["store", "pool", "database"])
def source(
    request: pytest.FixtureRequest,
    store: VectorStore,
    gallery: list[Candidate],
    documents: list[Document],
    scorer: LogicScorer,
) -> dict[str, Any]:
    """The source of a retriever, and the scorer it needs."""
    if request.param == "store":
        return {"source": store, "scorer": scorer}
    if request.param == "pool":
        return {"source": VectorPool.of(gallery), "scorer": scorer}
    from qdrant_client import QdrantClient, models
    from qdrant_lcse import LogicSearch

    client = QdrantClient(":memory:")
    client.create_collection("pictures", models.VectorParams(size=64, distance=models.Distance.COSINE))
    points = [
        models.PointStruct(id=str(document.id), vector=picture.vector.tolist(), payload={"path": str(picture.id)})
        for document, picture in zip(documents, gallery, strict=True)
    ]
    client.upsert("pictures", points)
    return {"source": LogicSearch(client, "pictures", scorer)}


def test_several_queries_find_a_document_once(source: dict[str, Any]) -> None:
    retriever = LogicRetriever(**source, k=4, with_evidence=False)
    several = MultiQueryRetriever.from_llm(retriever, FakeListChatModel(responses=[WAYS]))
    found = [document.page_content for document in several.invoke("umbrella and no person")]
    assert len(found) == len(set(found)) >= 4


async def test_the_documents_are_those_with_evidence(source: dict[str, Any]) -> None:
    told = LogicRetriever(**source, k=4)
    bare = LogicRetriever(**source, k=4, with_evidence=False)
    for found in (bare.invoke("no dog"), await bare.ainvoke("no dog")):
        assert [(d.id, d.page_content) for d in found] == [(d.id, d.page_content) for d in told.invoke("no dog")]
        assert not any({METADATA_KEY, "relevance_score"} & d.metadata.keys() for d in found)


def test_a_tool_does_without(source: dict[str, Any]) -> None:
    found = logic_search_tool(LogicRetriever(**source, k=2, with_evidence=False)).invoke({"query": "no dog"})
    assert "2 pictures for 'no dog':" in found[0]["text"]
