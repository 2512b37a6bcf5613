"""A LlamaIndex LLM over the official client: LlamaIndex's own structured prediction, real HTTP below it.

(LlamaIndex's OpenAI package wants an older client than ours; both faces of it that matter are here: a model that
calls functions, and one that only writes text.)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import openai
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools.types import BaseTool


class HttpLLM(MockFunctionCallingLLM):
    """Chat over `/chat/completions`."""

    base_url: str
    calls_functions: bool = True
    timeout: float = 5

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="m", is_chat_model=True, is_function_calling_model=self.calls_functions)

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        sent: Any = [{"role": message.role.value, "content": message.content or ""} for message in messages]
        tools: Any = {"tools": kwargs["tools"]} if kwargs.get("tools") else {}
        with openai.OpenAI(base_url=self.base_url, api_key="k", max_retries=0, timeout=self.timeout) as client:
            reply = client.chat.completions.create(model="m", messages=sent, **tools).choices[0].message
        told = {"tool_calls": reply.tool_calls} if reply.tool_calls else {}
        return ChatResponse(message=ChatMessage(role="assistant", content=reply.content, additional_kwargs=told))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return await asyncio.to_thread(self.chat, messages, **kwargs)

    def _prepare_chat_with_tools(
        self, tools: Sequence[BaseTool], user_msg: Any = None, chat_history: Any = None, *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        return {"messages": chat_history or [], "tools": [tool.metadata.to_openai_tool() for tool in tools]}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        calls = response.message.additional_kwargs.get("tool_calls") or []
        made = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls]
        return [ToolSelection(tool_id=number, tool_name=name, tool_kwargs=given) for number, name, given in made]
