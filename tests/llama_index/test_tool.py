"""An agent's tool: the query as the model wrote it, pictures and reasons back, failures as messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle
from llama_index.core.tools import FunctionTool, RetrieverTool, ToolOutput
from llama_index_lcse import METADATA_KEY, LogicRetriever, logic_search_tool

from lcse_plugins import ImageAccess
from lcse_plugins.errors import InvalidOption
from lcse_plugins.hosts import pictures as host_pictures
from lcse_plugins.hosts.notices import Notices


@pytest.fixture
def retriever(index: VectorStoreIndex) -> LogicRetriever:
    return LogicRetriever.from_index(index, top_n=4)


def texts(output: ToolOutput) -> list[str]:
    return [block.text for block in output.blocks if isinstance(block, TextBlock)]


def images(output: ToolOutput) -> list[bytes]:
    return [block.resolve_image().read() for block in output.blocks if isinstance(block, ImageBlock)]


@pytest.mark.parametrize("query", ["no person", "neither a dog nor a person"])
def test_the_frame_of_a_retriever_tool_is_no_part_of_the_query(query: str, retriever: LogicRetriever) -> None:
    tool = RetrieverTool.from_defaults(retriever, description="finds images")
    expected = [node.node_id for node in retriever.retrieve(query)]
    for output in (tool.call(input=query), tool.call(query)):
        assert [node.node_id for node in output.raw_output] == expected
        assert METADATA_KEY not in output.content


async def test_pictures_and_reasons(retriever: LogicRetriever, folder: Path) -> None:
    tool = logic_search_tool(retriever, image_access=ImageAccess(root=str(folder)))
    asked: dict[str, Any] = {"query": "umbrella but no person", "k": 2}
    for output in (tool(**asked), await tool.acall(**asked)):
        head, first, second = texts(output)
        assert head.startswith('2 pictures for \'umbrella but no person\', read as "umbrella" AND NOT "person"')
        assert head.endswith("2 of them satisfy this:")
        assert first.startswith("1. umbrella — umbrella: ")
        assert "no person: not seen" in second
        assert all(picture.startswith(b"\xff\xd8") for picture in images(output))
        assert len(images(output)) == 2
        assert [node.text for node in output.raw_output] == ["umbrella", "umbrella bench"]
        assert not output.is_error
    assert len(tool("no person").raw_output) == 4
    assert not images(logic_search_tool(retriever, pictures=False)(query="no person"))


def test_pictures_that_may_not_be_read_are_not_sent(
    retriever: LogicRetriever, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = logic_search_tool(retriever, image_access=ImageAccess(root=str(tmp_path / "other")))(query="no person")
    assert images(output) == []
    assert "its picture cannot be shown: lies outside the folder" in texts(output)[1]
    monkeypatch.setattr(host_pictures, "_notices", Notices(host_pictures._notices._logger))
    for query in ("no person", "no dog"):
        assert images(logic_search_tool(retriever)(query=query))
    (record,) = [record for record in caplog.records if "confine them" in record.getMessage()]
    assert "ImageAccess(root=FOLDER)" in record.getMessage()


async def conversation(tool: FunctionTool, arguments: dict[str, Any]) -> list[ChatMessage]:
    """What a model has seen in the end that calls the tool once."""
    seen: list[ChatMessage] = []

    def model(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        seen[:] = messages
        if messages[-1].role == MessageRole.TOOL:
            return ChatMessage(role="assistant", content="done")
        call = ToolCallBlock(tool_call_id="1", tool_name="search_pictures", tool_kwargs=arguments)
        return ChatMessage(role="assistant", blocks=[call])

    agent = FunctionAgent(tools=[tool], llm=MockFunctionCallingLLM(response_generator=model), streaming=False)
    assert str(await agent.run("find umbrellas without people")) == "done"
    return seen


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # LlamaIndex inspects its own agent
async def test_an_agent_sees_the_pictures_or_what_went_wrong(retriever: LogicRetriever, folder: Path) -> None:
    tool = logic_search_tool(retriever, image_access=ImageAccess(root=str(folder)))
    seen = await conversation(tool, {"query": "umbrella but no person", "k": 2})
    assert [block.block_type for block in seen[-1].blocks] == ["text", "text", "image", "text", "image"]
    wrong: dict[str, dict[str, Any]] = {
        "k is a whole number from 1 to 20, not 0": {"query": "a dog", "k": 0},
        "size": {"query": "a dog", "size": 3},
        "the query is blank": {"query": " "},
    }
    for told, arguments in wrong.items():
        assert told in str((await conversation(tool, arguments))[-1].content)


class Given(BaseRetriever):
    """Finds what it is given."""

    def __init__(self, *nodes: ImageNode) -> None:
        super().__init__()
        self.nodes = nodes

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=node) for node in self.nodes]


def test_plain_nodes_and_nothing(folder: Path) -> None:
    assert texts(logic_search_tool(Given())(query="a dog")) == [
        "No picture was found for 'a dog'. Ask for less, or for something else."
    ]
    node = ImageNode(image_path=str(folder / "00.png"))
    assert texts(logic_search_tool(Given(node, ImageNode(id_="x")))(query="a dog")) == [
        "2 pictures for 'a dog':",
        "1. 00.png",
        "2. x — it has no picture",
    ]
    full = logic_search_tool(Given(node), max_bytes=10)(query="a dog")
    assert "left out, the message is full" in texts(full)[1]


def test_what_cannot_be_used_is_refused(retriever: LogicRetriever) -> None:
    with pytest.raises(InvalidOption, match="asks a retriever, not str"):
        logic_search_tool("index")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="max_bytes"):
        logic_search_tool(retriever, max_bytes=0)
