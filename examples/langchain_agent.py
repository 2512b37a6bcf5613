"""An agent that searches pictures by logic, sees them, and answers.

    pip install "lcse-plugins[langchain]" "langchain<1.5"
    python examples/langchain_agent.py ["find a dog and no person"]

Offline a scripted model plays the agent; with OPENAI_API_KEY and langchain-openai a real one does.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel, FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import LcseEmbeddings, LogicRetriever, add_images, logic_search_tool

from lcse_plugins import ImageAccess, demo_photos


class ScriptedModel(FakeMessagesListChatModel):
    """Says its lines in turn."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedModel:  # noqa: D102
        return self


def chat_model(question: str) -> BaseChatModel:
    if os.environ.get("OPENAI_API_KEY"):
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model=os.environ.get("LCSE_MODEL", "gpt-4.1-mini"), use_responses_api=True)
    call = ToolCall(name="search_pictures", args={"query": question.removeprefix("find "), "k": 3}, id="call-1")
    return ScriptedModel(responses=[AIMessage("", tool_calls=[call]), AIMessage("These are the pictures I found.")])


question = sys.argv[1] if len(sys.argv) > 1 else "find a dog and no person"
photos = demo_photos()
store = InMemoryVectorStore(LcseEmbeddings("starter"))
add_images(store, photos)
retriever = LogicRetriever(source=store, k=3, image_access=ImageAccess(root=str(photos[0].parent)))
agent = create_agent(chat_model(question), tools=[logic_search_tool(retriever, max_pictures=12)])
for message in agent.invoke({"messages": [{"role": "user", "content": question}]})["messages"]:
    print(f"{message.type}: {message.text.strip() or 'calls the tool'}")
