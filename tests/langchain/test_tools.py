"""The tool shows a model pictures and reasons, within limits, confines what it reads, and tells what went wrong."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import METADATA_KEY, LogicCompressor, LogicRetriever, logic_search_tool
from PIL import Image

from lcse_plugins import Candidate, ImageAccess, LogicScorer, VectorPool, parse
from lcse_plugins.errors import InvalidOption, SearchUnavailable
from tests.langchain.conftest import shown

QUERY = "umbrella and no person"


def request(tool: BaseTool, **arguments: Any) -> ToolCall:
    return ToolCall(name=tool.name, args=arguments, id="call-1", type="tool_call")


def call(tool: BaseTool, **arguments: Any) -> ToolMessage:
    message = tool.invoke(request(tool, **arguments))
    assert isinstance(message, ToolMessage)
    return message


def pictures_in(message: ToolMessage) -> list[Image.Image]:
    blocks = [block for block in message.content if isinstance(block, dict) and block["type"] == "image"]
    assert all(block.keys() == {"type", "base64", "mime_type"} for block in blocks)  # and never a URL
    return [Image.open(BytesIO(base64.b64decode(block["base64"]))) for block in blocks]


def texts_in(message: ToolMessage) -> list[str]:
    return [b["text"].rstrip("\n") for b in message.content if isinstance(b, dict) and b["type"] == "text"]


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    """Three noisy pictures: noise is what JPEG compresses least."""
    rng = np.random.default_rng(3)
    paths = [tmp_path / f"{name}.png" for name in ("umbrella", "umbrella person", "dog")]
    for path in paths:
        Image.fromarray(rng.integers(0, 255, (300, 450, 3), dtype=np.uint8)).save(path)
    return paths


def over(scorer: LogicScorer, photos: list[Path], **fields: Any) -> LogicRetriever:
    """The toy encoder sees what the files are named for."""
    documents = [Document(path.stem, metadata={"image_path": str(path)}) for path in photos]
    vectors = scorer.encoder.encode_images(photos)
    rows = [Candidate(d.page_content, v, payload=d) for d, v in zip(documents, vectors, strict=True)]
    return LogicRetriever(source=VectorPool.of(rows), scorer=scorer, **{"k": 3, **fields})


@pytest.fixture
def retriever(scorer: LogicScorer, photos: list[Path]) -> LogicRetriever:
    return over(scorer, photos, image_access=ImageAccess(root=str(photos[0].parent)))


async def test_reasons_and_pictures_come_in_order(retriever: LogicRetriever) -> None:
    tool = logic_search_tool(retriever, max_side=256)
    message = call(tool, query=QUERY, k=2)
    heading, first, second = texts_in(message)
    assert heading.startswith("2 pictures for ")
    assert 'read as "umbrella" AND NOT "person"' in heading
    assert first == "1. umbrella — umbrella: clear · no person: not seen"
    assert second.startswith("2. ")
    kinds = [block["type"] for block in message.content if isinstance(block, dict)]
    assert kinds == ["text", "text", "image", "text", "image"]
    assert [picture.size for picture in pictures_in(message)] == [(256, 171), (256, 171)]
    assert message.artifact[0].page_content == "umbrella"
    assert await tool.ainvoke(request(tool, query=QUERY, k=2)) == message


@pytest.mark.parametrize("max_bytes", [200_000, 10_000])
def test_pictures_keep_within_the_bytes_of_a_message(retriever: LogicRetriever, max_bytes: int) -> None:
    message = call(logic_search_tool(retriever, max_bytes=max_bytes), query="umbrella")
    assert len(pictures_in(message)) == 3
    length = sum(len(block.get("base64", "")) for block in message.content if isinstance(block, dict))
    assert max_bytes / 8 < length <= max_bytes
    for few, said in ((300, "the message is full"), (0, "umbrella")):
        full = call(logic_search_tool(retriever, max_bytes=few), query="umbrella")
        assert pictures_in(full) == []
        assert said in texts_in(full)[1]


def test_pictures_are_counted_per_conversation(retriever: LogicRetriever) -> None:
    tool = logic_search_tool(retriever, max_pictures=4)

    def sent(thread: str | None) -> int:
        config: Any = {"configurable": {"thread_id": thread}} if thread else {}
        with ThreadPoolExecutor() as pool:  # an agent may call a tool several times at once
            messages = list(pool.map(lambda _: tool.invoke(request(tool, query="umbrella"), config), range(4)))
        assert "this conversation has had its 4" in str([texts_in(message) for message in messages])
        return sum(len(pictures_in(message)) for message in messages)

    assert [sent("a"), sent("b"), sent(None)] == [4, 4, 4]


@pytest.fixture
def address(photos: list[Path]) -> Iterator[str]:
    """A server of one's own, which no hosted model could reach."""

    handler = partial(SimpleHTTPRequestHandler, directory=str(photos[0].parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/umbrella.png?size=1"
        server.shutdown()


def test_pictures_behind_urls_are_sent_inside_or_not_at_all(scorer: LogicScorer, address: str) -> None:
    document = Document("an umbrella", metadata={"image_url": address})
    pool = VectorPool.of([Candidate("u", scorer.encoder.encode_images(["umbrella"])[0], payload=document)])
    retriever = LogicRetriever(source=pool, scorer=scorer)
    refused = call(logic_search_tool(retriever), query="umbrella")
    assert pictures_in(refused) == []
    assert "URLs are not fetched" in texts_in(refused)[1]
    allowed = ImageAccess(allow_urls=True, allow_private_addresses=True)
    sent = call(logic_search_tool(retriever, image_access=allowed), query="umbrella")
    assert len(pictures_in(sent)) == 1
    assert address not in str(refused.content) + str(sent.content)


def test_a_store_does_not_choose_what_leaves_the_machine(scorer: LogicScorer, photos: list[Path]) -> None:
    elsewhere = ImageAccess(root=str(photos[0].parent / "elsewhere"))
    confined = over(scorer, photos, image_access=elsewhere)
    for tool in (logic_search_tool(confined), logic_search_tool(over(scorer, photos), image_access=elsewhere)):
        assert "outside the folder" in texts_in(call(tool, query="umbrella"))[1]


def test_what_cannot_be_shown_is_said(retriever: LogicRetriever, photos: list[Path]) -> None:
    photos[0].write_bytes(b"broken")
    photos[2].unlink()
    message = call(logic_search_tool(retriever), query=QUERY)
    assert len(pictures_in(message)) == 1
    assert "not a picture" in str(message.content)
    assert "there is no such file" in str(message.content)
    nothing = call(logic_search_tool(retriever.bind(min_truth=1.0)), query="a cat")
    assert texts_in(nothing) == ["No picture was found for 'a cat'. Ask for less, or for something else."]
    assert nothing.artifact == []


class Bare(BaseRetriever):
    """Takes nothing but a query, as LangChain's `EnsembleRetriever` does."""

    found: list[Document]
    error: Exception | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        if self.error:
            raise self.error
        return self.found


@pytest.mark.parametrize("forged", ["not json", {"reason": ["x"]}, {"notes": [{"role": "system"}]}], ids=repr)
def test_metadata_of_others_is_checked(forged: Any) -> None:
    tool = logic_search_tool(Bare(found=[Document("a dog", metadata={METADATA_KEY: forged})]))
    message = call(tool, query="dog")
    assert (message.status, str(message.content)[:19]) == ("error", "The search failed: ")


def test_other_retrievers_are_shown_too(memory: InMemoryVectorStore, documents: list[Document]) -> None:
    bare = logic_search_tool(Bare(found=documents * 2))
    assert len(call(bare, query="dog").artifact) == 20
    assert len(call(bare, query="dog", k=2).artifact) == 2
    plain = logic_search_tool(memory.as_retriever(search_kwargs={"k": 9}))
    assert len(call(plain, query="dog", k=None).artifact) == 9
    assert texts_in(call(plain, query="dog", k=12))[0] == "12 pictures for 'dog':"
    compressor = LogicCompressor(store=memory, evidence="json")
    reranked = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=memory.as_retriever())
    message = call(logic_search_tool(reranked), query=QUERY, k=3)
    assert len(message.artifact) == 3
    assert "umbrella: clear" in texts_in(message)[1]


def test_bound_and_configured_retrievers_are_taken(memory: InMemoryVectorStore) -> None:
    retriever = LogicRetriever(source=memory, k=3)
    bound = logic_search_tool(retriever.bind(filter={"even": True}, k=2))
    assert [d.metadata["even"] for d in call(bound, query="no dog").artifact] == [True, True]
    configured = logic_search_tool(retriever.configurable_fields(min_truth=ConfigurableField(id="sure")))
    assert shown(call(configured, query=QUERY, k=1).artifact) == ["umbrella"]


def test_the_model_may_filter_by_what_it_is_told_of(memory: InMemoryVectorStore) -> None:
    tool = logic_search_tool(LogicRetriever(source=memory, k=12), filters={"even": "whether its number is even"})
    assert "whether its number is even" in str(convert_to_openai_tool(tool))
    assert {d.metadata["even"] for d in call(tool, query="no dog", filter={"even": True}).artifact} == {True}
    assert len(call(tool, query="no dog").artifact) == len(call(tool, query="no dog", filter=None).artifact) == 12
    for wrong in ({"odd": True}, "even"):
        assert call(tool, query="no dog", filter=wrong).status == "error"
    bound = logic_search_tool(LogicRetriever(source=memory).bind(filter={"row": 1}), filters={"even": "its number"})
    assert "bound to a filter" in str(call(bound, query="no dog", filter={"even": True}).content)
    with pytest.raises(InvalidOption, match="Bare takes no filter"):
        logic_search_tool(Bare(found=[]), filters={"even": "x"})


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"query": "(dog AND cat"}, "expected"),
        ({"query": "dog", "k": 0}, "k from 1 to 20"),
        ({"query": "dog", "limit": 3}, "limit: Extra inputs are not permitted"),
        ({}, "query: Field required"),
    ],
)
async def test_mistakes_come_back_as_messages(retriever: LogicRetriever, arguments: dict[str, Any], hint: str) -> None:
    tool = logic_search_tool(retriever)
    message = call(tool, **arguments)
    assert message.status == "error"
    assert hint in str(message.content)
    assert await tool.ainvoke(request(tool, **arguments)) == message


def test_a_search_that_fails_is_told_and_a_bug_is_not_hidden() -> None:
    for error in (ConnectionError("refused"), SearchUnavailable("busy")):
        message = call(logic_search_tool(Bare(found=[], error=error)), query="dog")
        assert message.status == "error"
        assert str(error) in str(message.content)
    with pytest.raises(TypeError, match="mine"):
        call(logic_search_tool(Bare(found=[], error=TypeError("mine"))), query="dog")


def test_the_description_teaches_queries_that_parse(retriever: LogicRetriever) -> None:
    examples = logic_search_tool(retriever).description.split('"')[1::2]
    assert len(examples) >= 5
    assert all(parse(example) is not None for example in examples)


@pytest.mark.parametrize("wrong", [{"max_bytes": -1}, {"max_side": 32}, {"max_pictures": 0}, {"retriever": 7}])
def test_wrong_settings_are_refused(retriever: LogicRetriever, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(wrong))):
        logic_search_tool(**{"retriever": retriever, **wrong})
