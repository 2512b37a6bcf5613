"""A LlamaIndex LLM over the official client: LlamaIndex's own structured prediction, real HTTP below it.

(LlamaIndex's OpenAI package wants an older client than ours; both faces of it that matter are here: a model that
calls functions, and one that only writes text.)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import openai
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools.types import BaseTool
from pydantic import Field, PrivateAttr


class HttpLLM(MockFunctionCallingLLM):
    """Chat over `/chat/completions`."""

    base_url: str
    calls_functions: bool = Field(default=True)
    timeout: float = 5
    _client: openai.OpenAI | None = PrivateAttr(default=None)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="m", is_chat_model=True, is_function_calling_model=self.calls_functions)

    def _request(self, messages: Sequence[ChatMessage], kwargs: dict[str, Any]) -> dict[str, Any]:
        sent = [{"role": message.role.value, "content": message.content or ""} for message in messages]
        return {"model": "m", "messages": sent, **({"tools": kwargs["tools"]} if kwargs.get("tools") else {})}

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        if self._client is None:
            self._client = openai.OpenAI(base_url=self.base_url, api_key="k", max_retries=0, timeout=self.timeout)
        return _response(self._client.chat.completions.create(**self._request(messages, kwargs)))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        options: dict[str, Any] = {"base_url": self.base_url, "api_key": "k", "max_retries": 0, "timeout": self.timeout}
        async with openai.AsyncOpenAI(**options) as client:
            return _response(await client.chat.completions.create(**self._request(messages, kwargs)))

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        return {"messages": chat_history or [], "tools": [tool.metadata.to_openai_tool() for tool in tools]}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        calls = response.message.additional_kwargs.get("tool_calls") or []
        made = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls]
        return [ToolSelection(tool_id=number, tool_name=name, tool_kwargs=given) for number, name, given in made]


def _response(completion: Any) -> ChatResponse:
    message = completion.choices[0].message
    told = {"tool_calls": message.tool_calls} if message.tool_calls else {}
    return ChatResponse(message=ChatMessage(role="assistant", content=message.content, additional_kwargs=told))
