"""An agent that searches pictures by logic, sees them, and answers.

    python examples/langchain_agent.py [FOLDER] ["find streets without cars"]

Offline a scripted model plays the agent; with OPENAI_API_KEY and langchain-openai a real one does (LCSE_MODEL=…).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel, FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import LcseEmbeddings, LogicRetriever, logic_search_tool

import lcse_plugins
from lcse_plugins.images.reading import walk_images

BUNDLED = str(Path(lcse_plugins.__file__).parent / "demo_photos")


class ScriptedModel(FakeMessagesListChatModel):
    """Says its lines in turn."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedModel:  # noqa: D102
        return self


def chat_model(question: str) -> BaseChatModel:
    if os.environ.get("OPENAI_API_KEY"):
        from langchain_openai import ChatOpenAI  # type: ignore[import-not-found, unused-ignore]

        name = os.environ.get("LCSE_MODEL", "gpt-4.1-mini")
        return ChatOpenAI(model=name, use_responses_api=True)  # type: ignore[no-any-return, unused-ignore]
    call = ToolCall(name="search_pictures", args={"query": question.removeprefix("find "), "k": 3}, id="call-1")
    return ScriptedModel(responses=[AIMessage("", tool_calls=[call]), AIMessage("These are the pictures I found.")])


def main(folder: str = BUNDLED, question: str = "find a cup and no cat", encoder: Any = "starter") -> list[BaseMessage]:
    paths = [str(path) for path in walk_images(folder)]
    store = InMemoryVectorStore.from_texts(paths, LcseEmbeddings(encoder, documents="images"))
    tool = logic_search_tool(LogicRetriever(source=store))
    model = chat_model(question).bind_tools([tool])
    messages: list[BaseMessage] = [HumanMessage(question)]
    while True:
        reply = model.invoke(messages)
        messages.append(reply)
        if not reply.tool_calls:
            return messages
        messages += [tool.invoke(call) for call in reply.tool_calls]


if __name__ == "__main__":
    for message in main(*sys.argv[1:3]):
        print(f"{message.type}: {message.text or 'calls the tool'}")
