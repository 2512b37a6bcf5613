"""`OpenAIParser`: reads queries with an OpenAI model, or with any server that speaks its chat protocol.

    parser = OpenAIParser()                                                  # gpt-4.1-mini, key from OPENAI_API_KEY
    parser = OpenAIParser("qwen3", base_url="http://localhost:8080/v1")      # llama.cpp, vLLM, Ollama …
    scorer = LogicScorer(encoder=encoder, parser=parser)

The reply is read chunk by chunk so that size and time are bounded even if a server drips.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from lcse_plugins.errors import InvalidOption, LcseError, MissingExtra, ParserOutputError, ParserUnavailable
from lcse_plugins.parsing.consult import DEFAULT_PATIENCE, Patience, Question, as_unavailable
from lcse_plugins.parsing.llm import LLMQueryParser, OnError
from lcse_plugins.parsing.prompt import Prompt, load_prompt
from lcse_plugins.parsing.result import Parser

try:
    import openai

    from lcse_plugins.parsing.schema import SCHEMA_VERSION, wire_schema
except ImportError as error:
    raise MissingExtra("OpenAIParser", "openai") from error

__all__ = ["OpenAIParser"]

_MAX_BODY = 1_000_000
"""Bytes of a response that are read; a tree takes a few thousand."""


class OpenAIParser(LLMQueryParser):
    """Reads queries with a chat model under a strict JSON schema.

    Args:
        model: The model's name at the server.
        base_url: Another server than OpenAI's; `OPENAI_BASE_URL` is honoured too.
        api_key: The key; `OPENAI_API_KEY` by default. Servers at `base_url` often need none.
        on_error: What a failure leads to: `fallback` (the default), `holistic` or `raise`.
        fallback: The parser that then answers; the offline grammar by default.
        patience: Time limits and retries; the client's own retries are off, so these are all there are.
        prompt: Rules and examples; all that come with the package by default.
        temperature: 0 for the most repeatable answer; None leaves it out, as reasoning models want.
        max_tokens: The longest reply; None leaves it out.
        bounded_schema: State size limits in the schema; by default to every server but OpenAI's own.

    Raises:
        MissingExtra: the `openai` package is not installed.
        InvalidOption: there is no key and no `base_url`, or an option is out of range.
    """

    def __init__(
        self,
        model: str = "gpt-4.1-mini",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        on_error: OnError = "fallback",
        fallback: Parser | None = None,
        patience: Patience = DEFAULT_PATIENCE,
        prompt: Prompt | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | None = 1024,
        bounded_schema: bool | None = None,
    ) -> None:
        super().__init__(parser_name=f"openai:{model}", on_error=on_error, fallback=fallback, patience=patience)
        self.model = model
        self.prompt = prompt or load_prompt()
        self._client = _client(openai.OpenAI, base_url=base_url, api_key=api_key)
        url = self._client.base_url
        self.base_url = f"{url.scheme}://{url.netloc.decode()}{url.path}".rstrip("/")  # without a user's password
        self._async_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, openai.AsyncOpenAI] = WeakKeyDictionary()
        official = self._client.base_url.host == "api.openai.com"
        self._options: dict[str, Any] = {
            "model": model,
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": "query_tree",
                    "strict": True,
                    "schema": wire_schema(bounded=not official if bounded_schema is None else bounded_schema),
                },
            },
            **({} if temperature is None else {"temperature": temperature}),
            **({} if max_tokens is None else {"max_tokens": max_tokens}),
        }

    @property
    def fingerprint(self) -> tuple[str, str, str]:
        """Model (and where it is served), prompt version, schema version."""
        return f"{self.parser_name}@{self.base_url}", self.prompt.version, SCHEMA_VERSION

    def close(self) -> None:
        """Close the connections of `read`."""
        self._client.close()

    async def aclose(self) -> None:
        """Close the connections of `aread` on the running event loop, and those of `read`."""
        if client := self._async_clients.pop(asyncio.get_running_loop(), None):
            await client.close()
        self.close()

    def __enter__(self) -> OpenAIParser:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> OpenAIParser:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def _ask(self, question: Question) -> str:
        ends = time.monotonic() + question.time_limit
        body = bytearray()
        with self._client.chat.completions.with_streaming_response.create(**self._request(question)) as response:
            try:
                for chunk in response.iter_bytes():
                    _take(chunk, body)
                    if time.monotonic() > ends:
                        raise TimeoutError(f"no complete reply within {question.time_limit:.3g} s")
            except Exception as error:
                _broke_off(error)
        return self._content(bytes(body))

    async def _aask(self, question: Question) -> str:
        loop = asyncio.get_running_loop()
        if (client := self._async_clients.get(loop)) is None:  # a connection belongs to the loop it was opened on
            client = _client(openai.AsyncOpenAI, base_url=str(self._client.base_url), api_key=self._client.api_key)
            self._async_clients[loop] = client
        body = bytearray()
        create = client.chat.completions.with_streaming_response.create
        async with create(**self._request(question)) as response:
            try:
                async for chunk in response.iter_bytes():
                    _take(chunk, body)
            except Exception as error:
                _broke_off(error)
        return self._content(bytes(body))

    def _request(self, question: Question) -> dict[str, Any]:
        messages = self.prompt.messages(question.text, rejected=question.rejected, complaint=question.complaint)
        return {**self._options, "messages": messages, "timeout": question.time_limit}

    def _fault(self, error: Exception) -> LcseError:
        fault = super()._fault(error)
        if isinstance(fault, ParserUnavailable):
            fault.retryable = fault.retryable or isinstance(error, openai.APIConnectionError)
            if (key := self._client.api_key) and key in fault.reason:  # some servers repeat the key they refuse
                fault.reason = fault.reason.replace(key, "[key]")
                fault.args = (fault.reason,)
        return fault

    def _content(self, body: bytes) -> str:
        """The reply's text, out of a chat completion that may be wrong in any way."""
        match _json(body):
            case {"choices": [{"message": {"refusal": str(refusal)}}, *_]} if refusal:
                raise ParserOutputError(f"the model refused: {refusal[:200]}", repairable=False)
            case {"choices": [{"finish_reason": "content_filter"}, *_]}:
                raise ParserOutputError("the server's content filter stopped the reply", repairable=False)
            case {"choices": [{"finish_reason": "length", "message": {"content": content}}, *_]}:
                limit = self._options.get("max_tokens", "the server's limit")
                raise ParserOutputError(f"the reply was cut off at {limit} tokens; be shorter", reply=content)
            case {"choices": [{"message": {"content": str(content)}}, *_]} if content.strip():
                return content
            case {"choices": [*_]}:
                raise ParserOutputError("the reply is empty")
            case {"error": fault}:  # some proxies put an error into a response that says 200
                raise _proxy_error(fault)
        raise ParserUnavailable(f"{self.base_url} does not answer with chat completions; check base_url")


def _client(kind: Any, *, base_url: str | None, api_key: str | None) -> Any:
    try:
        return kind(base_url=base_url, api_key=api_key, max_retries=0)
    except openai.OpenAIError as error:
        if base_url:
            return kind(base_url=base_url, api_key="not-needed", max_retries=0)
        raise InvalidOption(
            "no OpenAI key: set OPENAI_API_KEY, pass api_key=, or pass base_url= of a server that needs none"
        ) from error


def _take(chunk: bytes, body: bytearray) -> None:
    body += chunk
    if len(body) > _MAX_BODY:
        raise ParserOutputError(f"the response is larger than {_MAX_BODY:,} bytes", repairable=False)


def _broke_off(error: Exception) -> NoReturn:
    """The body could not be read to its end; the client leaves its transport's own errors as they are."""
    if isinstance(error, LcseError):
        raise error
    fault = as_unavailable(error)
    fault.retryable = True
    raise fault from error


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _proxy_error(fault: Any) -> ParserUnavailable:
    code = fault.get("code") if isinstance(fault, dict) else None
    passing = isinstance(code, int) and (code in (408, 429) or code >= 500)
    return ParserUnavailable(f"the server reports an error: {str(fault)[:200]}", retryable=passing)
