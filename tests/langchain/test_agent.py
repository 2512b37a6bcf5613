"""An agent really runs: a chat model calls the tool, gets pictures and reasons, and answers from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_lcse import LogicRetriever, logic_search_tool
from PIL import Image
from pydantic import Field

from lcse_plugins import Candidate, LogicScorer, VectorPool
from lcse_plugins.testing import ToyEncoder


class Agent(BaseChatModel):
    """A chat model with a script: asks its queries in turn, goes on when one fails, and answers from what it saw."""

    queries: list[str]
    tools: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.model_copy(update={"tools": [convert_to_openai_tool(tool) for tool in tools]})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        heard = [message for message in messages if isinstance(message, ToolMessage)]
        if heard and heard[-1].status == "success":
            blocks = [block for block in heard[-1].content if isinstance(block, dict)]
            shown = sum(block["type"] == "image" for block in blocks)
            reply = AIMessage(f"I was shown {shown} pictures; the best is: {blocks[1]['text']}")
        else:
            name = self.tools[0]["function"]["name"]
            query = self.queries[len(heard)]
            reply = AIMessage("", tool_calls=[ToolCall(name=name, args={"query": query, "k": 2}, id=f"{len(heard)}")])
        return ChatResult(generations=[ChatGeneration(message=reply)])


def converse(model: BaseChatModel, tool: BaseTool, question: str) -> list[BaseMessage]:
    """The loop every tool-calling agent runs."""
    bound = model.bind_tools([tool])
    messages: list[BaseMessage] = [HumanMessage(question)]
    while True:
        reply = bound.invoke(messages)
        messages.append(reply)
        if not reply.tool_calls:
            return messages
        messages += [tool.invoke(call) for call in reply.tool_calls]


@pytest.fixture
def tool(encoder: ToyEncoder, tmp_path: Path) -> BaseTool:
    candidates = []
    for name in ["cars streets", "streets", "cars people streets", "dogs park"]:
        path = tmp_path / f"{name}.png"
        Image.new("RGB", (80, 60), "grey").save(path)
        document = Document(page_content=name, metadata={"image_path": str(path)})
        candidates.append(Candidate(name, encoder.encode_images([path])[0], payload=document))
    return logic_search_tool(LogicRetriever(source=VectorPool.of(candidates), scorer=LogicScorer(encoder)))


def test_find_streets_without_cars(tool: BaseTool) -> None:
    question, asked, answered, told = converse(
        Agent(queries=["streets without cars"]), tool, "find streets without cars"
    )
    assert question.content == "find streets without cars"
    assert isinstance(asked, AIMessage)
    assert asked.tool_calls[0]["args"] == {"query": "streets without cars", "k": 2}
    assert isinstance(answered, ToolMessage)
    assert answered.tool_call_id == asked.tool_calls[0]["id"]
    kinds = [block["type"] for block in answered.content if isinstance(block, dict)]
    assert kinds == ["text", "text", "image", "text", "image"]
    assert answered.artifact[0].page_content == "streets"
    assert answered.artifact[0].metadata["lcse"]["truth"] > 0.5 > answered.artifact[1].metadata["lcse"]["truth"]
    assert isinstance(told, AIMessage)
    assert told.text.startswith("I was shown 2 pictures; the best is: 1. streets — score ")


def test_a_mistake_is_mended_in_the_next_turn(tool: BaseTool) -> None:
    transcript = converse(Agent(queries=["streets AND (", "streets AND NOT cars"]), tool, "find streets without cars")
    kinds = [message.type for message in transcript]
    assert kinds == ["human", "ai", "tool", "ai", "tool", "ai"]
    failed, mended = (message for message in transcript if isinstance(message, ToolMessage))
    assert (failed.status, mended.status) == ("error", "success")
    assert "streets AND (" in str(failed.content)
    assert mended.artifact[0].page_content == "streets"


def test_the_model_is_told_the_query_language(tool: BaseTool) -> None:
    bound = Agent(queries=[]).bind_tools([tool])
    assert isinstance(bound, Agent)
    function = bound.tools[0]["function"]
    assert "AND, OR, NOT" in function["description"]
    assert function["parameters"]["required"] == ["query"]


def test_the_example_runs_offline(pictures: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from examples.langchain_agent import main

    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    transcript = main(str(pictures[0].parent), "find streets without cars", encoder=ToyEncoder())
    assert [message.type for message in transcript] == ["human", "ai", "tool", "ai"]
    answered = transcript[2]
    assert isinstance(answered, ToolMessage)
    assert sum(block["type"] == "image" for block in answered.content if isinstance(block, dict)) == 3
    assert '"streets" AND NOT "cars"' in answered.text
