"""Collections as LangChain and LlamaIndex write them, searched as they are."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_lcse import LcseEmbeddings
from langchain_qdrant import QdrantVectorStore as LangChainStore
from llama_index.core.schema import BaseNode, ImageNode, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from llama_index.vector_stores.qdrant import QdrantVectorStore as LlamaIndexStore
from qdrant_client import QdrantClient, models
from qdrant_lcse import LogicSearch, read_langchain_payload, read_llama_index_payload

from lcse_plugins import LogicScorer
from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.testing import toy_gallery

ENCODER, GALLERY = toy_gallery()
NAMES = [str(candidate.id) for candidate in GALLERY]
QUERY = "umbrella and no person"
WANTED = ["umbrella", "umbrella bench"]


def test_langchain_collection() -> None:
    client = QdrantClient(":memory:")
    params = models.VectorParams(size=ENCODER.dimension, distance=models.Distance.COSINE)
    client.create_collection("photos", vectors_config=params)
    store = LangChainStore(client, "photos", LcseEmbeddings(ENCODER))
    store.add_documents([Document(page_content=name, metadata={"place": i}) for i, name in enumerate(NAMES)])
    hits = LogicSearch(client, "photos", LogicScorer(ENCODER)).query(QUERY, limit=2)
    read = [read_langchain_payload(point.payload) for point in hits]
    assert [stored.text for stored in read] == WANTED
    assert [NAMES[stored.metadata["place"]] for stored in read] == WANTED
    assert read[0].node is None


def test_llama_index_collection() -> None:
    client = QdrantClient(":memory:")
    store = LlamaIndexStore("photos", client=client)
    nodes: list[BaseNode] = [
        (ImageNode if i % 2 else TextNode)(text=name, metadata={"place": i}, embedding=candidate.vector.tolist())
        for i, (name, candidate) in enumerate(zip(NAMES, GALLERY, strict=True))
    ]
    store.add(nodes)
    vectors = client.get_collection("photos").config.params.vectors
    name = next(iter(vectors)) if isinstance(vectors, dict) else None
    hits = LogicSearch(client, "photos", LogicScorer(ENCODER), vector_name=name).query(QUERY, limit=2)
    read = [read_llama_index_payload(point.payload) for point in hits]
    assert [stored.text for stored in read] == WANTED
    assert [NAMES[stored.metadata["place"]] for stored in read] == WANTED
    for point, stored in zip(hits, read, strict=True):
        assert point.payload is not None
        assert stored.node is not None
        assert metadata_dict_to_node(point.payload).node_id == stored.node["id_"] == point.id


@pytest.mark.parametrize("payload", [None, {}, {"path": "a.jpg"}, {"_node_content": "not json"}, {"_node_content": 3}])
def test_other_payloads_are_refused(payload: dict[str, object] | None) -> None:
    with pytest.raises(InvalidCandidate):
        read_langchain_payload(payload)
    with pytest.raises(InvalidCandidate):
        read_llama_index_payload(payload)


def test_keys_may_have_other_names() -> None:
    stored = read_langchain_payload({"text": "a dog", "meta": {"x": 1}}, content_key="text", metadata_key="meta")
    assert (stored.text, stored.metadata) == ("a dog", {"x": 1})
