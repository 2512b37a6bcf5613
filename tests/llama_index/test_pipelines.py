"""Whole LlamaIndex pipelines, without a network: real indexes and stores, a mock model only for the last answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import ChatMode
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.vector_stores.qdrant import QdrantVectorStore
from llama_index_lcse import METADATA_KEY, LcseEmbedding, LogicPostprocessor, LogicRetriever
from qdrant_client import AsyncQdrantClient, QdrantClient

from tests.llama_index.painted import GALLERY, PaintedEncoder, core_scores, shown

QUERY = "umbrella and no person"


def qdrant_store() -> QdrantVectorStore:
    return QdrantVectorStore(collection_name="images", client=QdrantClient(":memory:"))


@pytest.fixture(params=[SimpleVectorStore, qdrant_store])
def store(request: pytest.FixtureRequest) -> BasePydanticVectorStore:
    made: BasePydanticVectorStore = request.param()
    return made


@pytest.fixture
def image_index(
    store: BasePydanticVectorStore, retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> VectorStoreIndex:
    """A plain index whose image nodes were given their vectors."""
    return VectorStoreIndex(
        [node.node for node in retrieved],
        embed_model=LcseEmbedding(scorer=encoder),
        storage_context=StorageContext.from_defaults(vector_store=store),
    )


def assert_as_the_core(nodes: Sequence[NodeWithScore], query: str) -> None:
    expected = core_scores(query)
    assert shown(nodes) == list(expected)[: len(nodes)]
    assert [node.score for node in nodes] == pytest.approx([expected[node.text] for node in nodes], abs=1e-6)


def query_engine(index: VectorStoreIndex, encoder: PaintedEncoder, **options: Any) -> BaseQueryEngine:
    postprocessor = LogicPostprocessor(scorer=encoder, top_n=3, **options)
    return index.as_query_engine(llm=MockLLM(), similarity_top_k=12, node_postprocessors=[postprocessor])


def test_a_query_engine_obeys_the_query(image_index: VectorStoreIndex, encoder: PaintedEncoder) -> None:
    response = query_engine(image_index, encoder).query(QUERY)
    assert_as_the_core(response.source_nodes, QUERY)
    assert "umbrella bench" in str(response)  # the mock model repeats its context
    assert METADATA_KEY not in str(response)


def test_vectors_come_from_the_store_if_it_is_named(image_index: VectorStoreIndex, encoder: PaintedEncoder) -> None:
    engine = query_engine(image_index, encoder, vector_store=image_index.vector_store)
    assert_as_the_core(engine.query(QUERY).source_nodes, QUERY)
    assert encoder.images_encoded == 0


def test_without_the_store_images_are_encoded_once(image_index: VectorStoreIndex, encoder: PaintedEncoder) -> None:
    engine = query_engine(image_index, encoder)
    for query in (QUERY, "no dog", "a dog or a car"):
        assert_as_the_core(engine.query(query).source_nodes, query)
    assert encoder.images_encoded == len(GALLERY)


async def test_an_asynchronous_query_engine(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder, asynchronous_store: BasePydanticVectorStore
) -> None:
    storage = StorageContext.from_defaults(vector_store=asynchronous_store)
    index = VectorStoreIndex([], embed_model=LcseEmbedding(scorer=encoder), storage_context=storage)
    await index.ainsert_nodes([node.node for node in retrieved])
    response = await query_engine(index, encoder, vector_store=asynchronous_store).aquery(QUERY)
    assert_as_the_core(response.source_nodes, QUERY)
    retriever = LogicRetriever(index.as_retriever(similarity_top_k=4), scorer=encoder, top_n=4)
    assert_as_the_core(await retriever.aretrieve("no dog"), "no dog")
    assert encoder.images_encoded == 0


@pytest.fixture(params=["simple", "qdrant"])
async def asynchronous_store(request: pytest.FixtureRequest) -> AsyncIterator[BasePydanticVectorStore]:
    if request.param == "simple":
        yield SimpleVectorStore()
        return
    client = AsyncQdrantClient(":memory:")
    yield QdrantVectorStore(collection_name="images", aclient=client)
    await client.close()


def test_a_chat_engine(image_index: VectorStoreIndex, encoder: PaintedEncoder) -> None:
    engine = image_index.as_chat_engine(
        chat_mode=ChatMode.CONTEXT,
        llm=MockLLM(),
        memory=ChatMemoryBuffer.from_defaults(token_limit=1000),  # the default one leaves a database open
        similarity_top_k=12,
        node_postprocessors=[LogicPostprocessor(scorer=encoder, top_n=2)],
    )
    assert_as_the_core(engine.chat(QUERY).source_nodes, QUERY)


def test_a_query_engine_over_the_logic_retriever(image_index: VectorStoreIndex, encoder: PaintedEncoder) -> None:
    retriever = LogicRetriever(image_index.as_retriever(similarity_top_k=6), scorer=encoder, top_n=2)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    assert_as_the_core(engine.query("no dog").source_nodes, "no dog")
