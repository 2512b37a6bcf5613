"""The tool shows a model pictures and reasons, within a budget, and tells it what it did wrong."""

from __future__ import annotations

import asyncio
import base64
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx import Headers
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import LcseEmbeddings, LogicCompressor, LogicRetriever, logic_search_tool
from langchain_qdrant import QdrantVectorStore
from PIL import Image
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from lcse_plugins import Candidate, LogicScorer, VectorPool, parse
from lcse_plugins.errors import InvalidCandidate, InvalidOption, SearchUnavailable
from lcse_plugins.images.locations import ImageAccess
from lcse_plugins.testing import ToyEncoder
from tests.langchain.flat_store import FlatStore


def call(tool: BaseTool, **arguments: Any) -> ToolMessage:
    message = tool.invoke(ToolCall(name=tool.name, args=arguments, id="call-1", type="tool_call"))
    assert isinstance(message, ToolMessage)
    assert message.tool_call_id == "call-1"
    return message


def pictures_in(message: ToolMessage) -> list[Image.Image]:
    blocks = [block for block in message.content if isinstance(block, dict) and block["type"] == "image"]
    assert all(block["mime_type"] == "image/jpeg" for block in blocks)
    return [Image.open(BytesIO(base64.b64decode(block["base64"]))) for block in blocks]


def texts_in(message: ToolMessage) -> list[str]:
    return [
        block["text"].rstrip("\n") for block in message.content if isinstance(block, dict) and block["type"] == "text"
    ]


def base64_length(message: ToolMessage) -> int:
    return sum(len(block.get("base64", "")) for block in message.content if isinstance(block, dict))


def test_it_may_be_called_with_the_query_alone(memory: InMemoryVectorStore) -> None:
    def found(tool: BaseTool) -> int:
        return len(call(tool, query="a dog or a cat").artifact)

    assert len(logic_search_tool(LogicRetriever(source=memory, k=3)).invoke("a dog or a cat")) == 4  # and a heading
    assert found(logic_search_tool(LogicRetriever(source=memory, k=3))) == 3
    assert found(logic_search_tool(LogicRetriever(source=memory, search_kwargs={"k": 2}))) == 2
    assert found(logic_search_tool(memory.as_retriever())) == 4
    assert logic_search_tool(LogicRetriever(source=memory, k=3)).args["k"]["default"] == 3


def test_what_a_retriever_was_told_to_fetch_is_fetched(memory: InMemoryVectorStore, scorer: LogicScorer) -> None:
    class Queries:
        def query(self, text: str, *, limit: int, **options: Any) -> Any:
            asked.append(limit)
            raise SearchUnavailable("the database did not answer")

    asked: list[int] = []
    call(logic_search_tool(LogicRetriever(source=Queries(), search_kwargs={"limit": 7})), query="dog")
    call(logic_search_tool(LogicRetriever(source=Queries(), search_kwargs={"k": None})), query="dog")
    assert asked == [7, 4]
    assert len(call(logic_search_tool(memory.as_retriever(search_kwargs={"k": 9})), query="dog").artifact) == 9


class _Chain(BaseRetriever):
    """Hands on what it is called with to another, as LangChain's `ContextualCompressionRetriever` does."""

    base: BaseRetriever

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return self.base.invoke(query, **kwargs)[::-1]


class _Bare(BaseRetriever):
    """Takes nothing but a query, as LangChain's `EnsembleRetriever` does."""

    found: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return self.found


async def test_of_what_another_retriever_finds_the_first_are_shown(
    memory: InMemoryVectorStore, documents: list[Document]
) -> None:
    base = memory.as_retriever(search_kwargs={"k": 10})
    for retriever in (_Chain(base=base), _Bare(found=documents * 2)):
        found, tool = retriever.invoke("dog"), logic_search_tool(retriever)
        for k in (None, 2):
            arguments = {"query": "dog"} if k is None else {"query": "dog", "k": k}
            assert call(tool, **arguments).artifact == found[: k or 20]
            request = ToolCall(name=tool.name, args=arguments, id="call-1", type="tool_call")
            assert (await tool.ainvoke(request)).artifact == found[: k or 20]
        assert call(tool, query="dog", k=None).artifact == found[:20]
    assert len(call(logic_search_tool(base), query="dog", k=12).artifact) == 12


async def test_awaited_it_may_be_called_with_the_query_alone(memory: InMemoryVectorStore) -> None:
    assert len(await logic_search_tool(LogicRetriever(source=memory, k=3)).ainvoke("a dog or a cat")) == 4


def test_no_number_is_the_usual_number(memory: InMemoryVectorStore) -> None:
    for retriever, count in ((LogicRetriever(source=memory, k=3), 3), (memory.as_retriever(search_kwargs={"k": 9}), 9)):
        assert len(call(logic_search_tool(retriever), query="no dog", k=None).artifact) == count


def test_a_bound_retriever_is_told_how_to_bind(memory: InMemoryVectorStore) -> None:
    bound: Any = LogicRetriever(source=memory).bind(filter=lambda document: True)
    with pytest.raises(InvalidOption, match=r"not RunnableBinding; pass the retriever itself.*search_kwargs"):
        logic_search_tool(bound)


def test_a_store_is_no_retriever(memory: InMemoryVectorStore) -> None:
    with pytest.raises(InvalidOption, match=r"LogicRetriever\(source="):
        logic_search_tool(memory)  # type: ignore[arg-type]


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    """Three noisy pictures: noise is what JPEG compresses least."""
    rng = np.random.default_rng(3)
    paths = []
    for name in ("umbrella", "umbrella person", "dog"):
        path = tmp_path / f"{name}.png"
        Image.fromarray(rng.integers(0, 255, (600, 900, 3), dtype=np.uint8)).save(path)
        paths.append(path)
    return paths


@pytest.fixture
def retriever(encoder: ToyEncoder, scorer: LogicScorer, photos: list[Path]) -> LogicRetriever:
    """The toy encoder sees what the files are named for."""
    pool = VectorPool.of(
        [
            Candidate(
                path.name,
                encoder.encode_images([path])[0],
                payload=Document(page_content=path.stem, metadata={"image_path": str(path)}),
            )
            for path in photos
        ]
    )
    return LogicRetriever(source=pool, scorer=scorer, k=3)


def test_reasons_and_pictures_come_in_order(retriever: LogicRetriever) -> None:
    message = call(logic_search_tool(retriever, max_side=256), query="umbrella and no person", k=2)
    heading, first, second = texts_in(message)
    assert heading == """2 pictures for 'umbrella and no person', read as "umbrella" AND NOT "person":"""
    assert first.startswith("1. umbrella — score ")
    assert "no person ✓" in first
    assert second.startswith("2. ")
    assert [block["type"] for block in message.content if isinstance(block, dict)] == [
        "text", "text", "image", "text", "image",
    ]  # fmt: skip
    assert [picture.size for picture in pictures_in(message)] == [(256, 171), (256, 171)]
    assert message.artifact[0].page_content == "umbrella"
    assert message.status == "success"


@pytest.mark.parametrize("k", [1, 3])
async def test_asynchronously_it_says_the_same(retriever: LogicRetriever, k: int) -> None:
    tool = logic_search_tool(retriever)
    request = ToolCall(name=tool.name, args={"query": "umbrella and no person", "k": k}, id="call-1", type="tool_call")
    message = await tool.ainvoke(request)
    assert message == call(tool, query="umbrella and no person", k=k)
    assert len(message.artifact) == k


@pytest.mark.parametrize("max_bytes", [200_000, 60_000, 10_000])
def test_pictures_keep_within_the_budget(retriever: LogicRetriever, max_bytes: int) -> None:
    message = call(logic_search_tool(retriever, max_bytes=max_bytes, max_side=900), query="umbrella", k=3)
    assert len(pictures_in(message)) == 3
    assert max_bytes / 8 < base64_length(message) <= max_bytes


def test_pictures_that_cannot_fit_are_said_to_be_left_out(retriever: LogicRetriever) -> None:
    message = call(logic_search_tool(retriever, max_bytes=300), query="umbrella", k=3)
    assert pictures_in(message) == []
    assert all("the message is full" in text for text in texts_in(message)[1:])
    assert pictures_in(call(logic_search_tool(retriever, max_bytes=0), query="umbrella", k=3)) == []


def test_a_picture_on_the_web_is_handed_on_by_its_address(scorer: LogicScorer, encoder: ToyEncoder) -> None:
    url = "https://example.org/dog.jpg"
    document = Document(page_content="a dog", metadata={"image_url": url})
    pool = VectorPool.of([Candidate("dog", encoder.encode_images(["dog"])[0], payload=document)])
    message = call(logic_search_tool(LogicRetriever(source=pool, scorer=scorer)), query="dog")
    assert {"type": "image", "url": url} in message.content


def test_what_cannot_be_shown_is_said(retriever: LogicRetriever, photos: list[Path], tmp_path: Path) -> None:
    photos[0].write_bytes(b"broken")
    photos[2].unlink()
    message = call(logic_search_tool(retriever), query="umbrella and no person", k=3)
    assert len(pictures_in(message)) == 1
    said = " ".join(texts_in(message))
    assert "not a picture" in said
    assert "there is no such file" in said
    inside = ImageAccess(root=str(tmp_path / "elsewhere"))
    message = call(logic_search_tool(retriever, image_access=inside), query="umbrella", k=3)
    assert pictures_in(message) == []


def test_what_could_not_be_ranked_is_said(memory: InMemoryVectorStore, scorer: LogicScorer) -> None:
    reranked = ContextualCompressionRetriever(
        base_compressor=LogicCompressor(scorer=scorer), base_retriever=memory.as_retriever(search_kwargs={"k": 1})
    )
    _, said = texts_in(call(logic_search_tool(reranked), query="sofa cat"))
    assert said == "1. cat sofa — it could not be ranked — it names no picture"


def test_nothing_found_is_said(encoder: ToyEncoder) -> None:
    empty = LogicRetriever(source=InMemoryVectorStore(LcseEmbeddings(encoder)))
    message = call(logic_search_tool(empty), query="a dog")
    assert texts_in(message) == ["No picture was found for 'a dog'. Ask for less, or for something else."]
    assert message.artifact == []


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"query": "(dog AND cat"}, "expected"),
        ({"query": "   "}, "say what the images should show"),
        ({"query": "dog", "k": 0}, "k from 1 to 20"),
        ({"query": "dog", "k": 1000}, "k from 1 to 20"),
        ({"query": "dog", "k": "many"}, "k from 1 to 20"),
        ({}, "query: Field required"),
    ],
)
async def test_mistakes_come_back_as_messages(retriever: LogicRetriever, arguments: dict[str, Any], hint: str) -> None:
    tool = logic_search_tool(retriever)
    message = call(tool, **arguments)
    assert message.status == "error"
    assert hint in str(message.content)
    assert await tool.ainvoke(ToolCall(name=tool.name, args=arguments, id="call-1", type="tool_call")) == message


def test_a_database_that_does_not_answer_is_told_and_a_bug_is_not_hidden(scorer: LogicScorer) -> None:
    class Broken:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def query(self, text: str, **options: Any) -> Any:
            raise self.error

    down = logic_search_tool(LogicRetriever(source=Broken(SearchUnavailable("the database did not answer"))))
    assert "did not answer" in str(call(down, query="dog").content)
    with pytest.raises(ZeroDivisionError):
        call(logic_search_tool(LogicRetriever(source=Broken(ZeroDivisionError()))), query="dog")


FAILURES = [
    ConnectionError("refused"),
    TimeoutError(),
    asyncio.TimeoutError(),
    ResponseHandlingException(OSError("refused")),
    UnexpectedResponse(503, "busy", b"", Headers()),
    UnexpectedResponse(429, "too soon", b"", Headers()),
]


class _Client(QdrantClient):
    """Fails in one of its methods."""

    def __init__(self, method: str, error: Exception) -> None:
        super().__init__(":memory:")
        self.create_collection("photos", models.VectorParams(size=64, distance=models.Distance.COSINE))
        self.upsert("photos", [models.PointStruct(id=1, vector=[1.0] * 64, payload={"page_content": "dog"})])

        def fail(*args: Any, **kwargs: Any) -> Any:
            raise error

        setattr(self, method, fail)


@pytest.mark.parametrize("method", ["query_points", "retrieve"])
@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
async def test_a_store_that_does_not_answer_is_told(encoder: ToyEncoder, method: str, error: Exception) -> None:
    retriever = LogicRetriever(source=QdrantVectorStore(_Client(method, error), "photos", LcseEmbeddings(encoder)))
    with pytest.raises(SearchUnavailable, match="QdrantVectorStore did not answer"):
        retriever.invoke("dog")
    tool = logic_search_tool(retriever)
    request = ToolCall(name=tool.name, args={"query": "dog"}, id="call-1", type="tool_call")
    for message in (call(tool, query="dog"), await tool.ainvoke(request)):
        assert message.status == "error"
        assert f"The search failed: QdrantVectorStore did not answer ({type(error).__name__}" in message.content


@pytest.mark.parametrize("method", ["query_points", "retrieve"])
def test_what_a_store_refuses_is_no_failure_to_answer(encoder: ToyEncoder, method: str) -> None:
    refusal = UnexpectedResponse(400, "Bad Request", b"wrong vector", Headers())
    store = QdrantVectorStore(_Client(method, refusal), "photos", LcseEmbeddings(encoder))
    with pytest.raises(InvalidCandidate, match="wrong vector"):
        LogicRetriever(source=store).invoke("dog")


def test_a_store_that_nobody_knows_may_fail_too(scorer: LogicScorer, documents: list[Document]) -> None:
    class Down(FlatStore):
        def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
            raise ConnectionError("refused")

    retriever = LogicRetriever(source=Down(documents, [[1.0] * 64]), scorer=scorer)
    assert "Down did not answer" in str(call(logic_search_tool(retriever), query="dog").content)


@pytest.mark.parametrize("error", [RuntimeError("the server is gone"), ConnectionError("refused"), TypeError("mine")])
async def test_another_retriever_that_fails_is_told_and_a_bug_in_it_is_not_hidden(error: Exception) -> None:
    class Failing(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
            raise error

    tool = logic_search_tool(Failing())
    request = ToolCall(name=tool.name, args={"query": "dog"}, id="call-1", type="tool_call")
    if isinstance(error, TypeError):
        with pytest.raises(TypeError, match="mine"):
            await tool.ainvoke(request)
    else:
        assert call(tool, query="dog").content == f"The search failed: {type(error).__name__}: {error}"
        assert (await tool.ainvoke(request)).status == "error"


def test_the_description_teaches_queries_that_parse() -> None:
    tool = logic_search_tool(LogicRetriever(source=InMemoryVectorStore(LcseEmbeddings(ToyEncoder()))))
    examples = [part for part in tool.description.split('"')[1::2]]
    assert len(examples) >= 5
    for example in examples:
        assert parse(example) is not None
    assert tool.description.endswith("Never rephrase an exclusion into its opposite: say what is not wanted.")
    assert tool.args["k"]["maximum"] == 20
    assert set(tool.args) == {"query", "k"}


def test_its_name_and_description_can_be_chosen(retriever: LogicRetriever) -> None:
    tool = logic_search_tool(retriever, name="find", description="Finds.")
    assert (tool.name, tool.description) == ("find", "Finds.")
    with pytest.raises(InvalidOption):
        logic_search_tool(retriever, max_bytes=-1)
    with pytest.raises(InvalidOption, match="max_side is at least 64 pixels, not 32"):
        logic_search_tool(retriever, max_side=32)


def test_another_retriever_can_be_shown_too(memory: InMemoryVectorStore) -> None:
    memory.add_documents([Document(id="long", page_content="dog " * 100)])
    message = call(logic_search_tool(memory.as_retriever()), query="dog", k=3)
    heading, *rest = texts_in(message)
    assert heading == "3 pictures for 'dog':"
    assert any(text.endswith("long — it names no picture") for text in rest)
