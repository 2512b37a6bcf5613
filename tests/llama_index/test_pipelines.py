"""Whole LlamaIndex pipelines, without a network: real indexes and stores, a mock model only for the last answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.indices import MultiModalVectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index.vector_stores.qdrant import QdrantVectorStore
from llama_index_lcse import METADATA_KEY, EncoderEmbedding, LogicPostprocessor, LogicRetriever
from qdrant_client import AsyncQdrantClient, QdrantClient

from lcse_plugins import Candidate, ImageAccess, LogicScorer
from tests.llama_index.painted import GALLERY, PaintedEncoder, painted

QUERY = "umbrella and no person"
TEXTS = ["rain makes one wet", "a bench is a seat"]


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
        embed_model=EncoderEmbedding(encoder=encoder),
        storage_context=StorageContext.from_defaults(vector_store=store),
    )


@pytest.fixture
def mixed_index(
    store: BasePydanticVectorStore, image_nodes: list[ImageNode], encoder: PaintedEncoder
) -> MultiModalVectorStoreIndex:
    """Images embedded by the index itself, and texts embedded by another model."""
    return MultiModalVectorStoreIndex(
        [*image_nodes, *(TextNode(text=text) for text in TEXTS)],
        embed_model=MockEmbedding(embed_dim=8),
        image_vector_store=store,
        image_embed_model=EncoderEmbedding(encoder=encoder),
    )


def shown(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [node.text for node in nodes]


def core_scores(query: str) -> dict[str, float]:
    """What the core alone makes of the whole gallery."""
    encoder = PaintedEncoder()
    vectors = encoder.encode_images(painted(words) for words in GALLERY)
    candidates = [Candidate(words, vector) for words, vector in zip(GALLERY, vectors, strict=True)]
    return {str(item.id): item.score for item in LogicScorer(encoder).rank(query, candidates)}


def assert_as_the_core(nodes: Sequence[NodeWithScore], query: str) -> None:
    expected = core_scores(query)
    assert shown(nodes) == list(expected)[: len(nodes)]
    assert [node.score for node in nodes] == pytest.approx([expected[node.text] for node in nodes], abs=1e-6)


def query_engine(index: VectorStoreIndex, encoder: PaintedEncoder, **options: Any) -> BaseQueryEngine:
    postprocessor = LogicPostprocessor(encoder=encoder, top_n=3, **options)
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
    index = VectorStoreIndex([], embed_model=EncoderEmbedding(encoder=encoder), storage_context=storage)
    await index.ainsert_nodes([node.node for node in retrieved])
    response = await query_engine(index, encoder, vector_store=asynchronous_store).aquery(QUERY)
    assert_as_the_core(response.source_nodes, QUERY)
    retriever = LogicRetriever(index.as_retriever(similarity_top_k=4), LogicPostprocessor(encoder=encoder))
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


def test_a_multi_modal_index(mixed_index: MultiModalVectorStoreIndex, encoder: PaintedEncoder) -> None:
    nodes = mixed_index.as_retriever(similarity_top_k=2, image_similarity_top_k=12).retrieve(QUERY)
    assert len(nodes) == len(GALLERY) + len(TEXTS)
    result = LogicPostprocessor(encoder=encoder, image_access=ImageAccess(root="/")).postprocess_nodes(
        nodes, query_str=QUERY
    )
    assert_as_the_core(result[: len(GALLERY)], QUERY)
    assert sorted(shown(result[len(GALLERY) :])) == sorted(TEXTS)


def chat_engine(index: VectorStoreIndex, encoder: PaintedEncoder) -> BaseChatEngine:
    return index.as_chat_engine(
        chat_mode=ChatMode.CONTEXT,
        llm=MockLLM(),
        memory=ChatMemoryBuffer.from_defaults(token_limit=1000),  # the default one leaves a database open
        similarity_top_k=12,
        node_postprocessors=[LogicPostprocessor(encoder=encoder, top_n=2)],
    )


def test_a_chat_engine(image_index: VectorStoreIndex, encoder: PaintedEncoder) -> None:
    assert_as_the_core(chat_engine(image_index, encoder).chat(QUERY).source_nodes, QUERY)


async def test_a_chat_engine_asynchronously(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    index = VectorStoreIndex([node.node for node in retrieved], embed_model=EncoderEmbedding(encoder=encoder))
    assert_as_the_core((await chat_engine(index, encoder).achat(QUERY)).source_nodes, QUERY)


def logic_retriever(index: VectorStoreIndex, encoder: PaintedEncoder) -> LogicRetriever:
    return LogicRetriever(index.as_retriever(similarity_top_k=6), LogicPostprocessor(encoder=encoder, top_n=2))


def test_a_retriever_tool(image_index: VectorStoreIndex, encoder: PaintedEncoder) -> None:
    tool = RetrieverTool.from_defaults(logic_retriever(image_index, encoder), description="finds images")
    output = tool.call(QUERY)
    assert_as_the_core(output.raw_output, QUERY)
    assert "umbrella bench" in output.content
    assert METADATA_KEY not in output.content


async def test_a_retriever_tool_asynchronously(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    index = VectorStoreIndex([node.node for node in retrieved], embed_model=EncoderEmbedding(encoder=encoder))
    tool = RetrieverTool.from_defaults(logic_retriever(index, encoder), description="finds images")
    assert_as_the_core((await tool.acall(QUERY)).raw_output, QUERY)


def test_a_query_engine_over_the_logic_retriever(image_index: VectorStoreIndex, encoder: PaintedEncoder) -> None:
    engine = RetrieverQueryEngine.from_args(logic_retriever(image_index, encoder), llm=MockLLM())
    assert_as_the_core(engine.query("no dog").source_nodes, "no dog")


class Fetched(Event):
    nodes: list[NodeWithScore]
    query: str


class Search(Workflow):
    """Retrieve in one step, rerank in the next."""

    def __init__(self, index: VectorStoreIndex, postprocessor: LogicPostprocessor) -> None:
        super().__init__(timeout=30)
        self.index, self.postprocessor = index, postprocessor

    @step
    async def fetch(self, ctx: Context, ev: StartEvent) -> Fetched:
        nodes = await self.index.as_retriever(similarity_top_k=12).aretrieve(ev.query)
        return Fetched(nodes=nodes, query=ev.query)

    @step
    async def rerank(self, ctx: Context, ev: Fetched) -> StopEvent:
        return StopEvent(result=await self.postprocessor.apostprocess_nodes(ev.nodes, QueryBundle(ev.query)))


async def test_a_workflow(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    index = VectorStoreIndex([node.node for node in retrieved], embed_model=EncoderEmbedding(encoder=encoder))
    workflow = Search(index, LogicPostprocessor(encoder=encoder, top_n=4))
    assert_as_the_core(await workflow.run(query=QUERY), QUERY)
