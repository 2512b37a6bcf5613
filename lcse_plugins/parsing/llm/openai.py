"""`OpenAIParser`: reads queries with an OpenAI model, or with any server that speaks its chat protocol.

    parser = OpenAIParser()                                                  # gpt-4.1-mini, key from OPENAI_API_KEY
    parser = OpenAIParser("qwen3", base_url="http://localhost:8080/v1")      # llama.cpp, vLLM, Ollama …
    scorer = LogicScorer(encoder=encoder, parser=parser)

`read` and `aread` share their connections and keep to the same limits of time and size, even if a server drips.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from lcse_plugins.errors import MissingExtra, ParserOutputError, ParserUnavailable
from lcse_plugins.http_status import may_pass
from lcse_plugins.parsing.consult import DEFAULT_PATIENCE, Patience, Question
from lcse_plugins.parsing.llm.parser import LLMQueryParser, OnError
from lcse_plugins.parsing.prompt import Prompt, load_prompt
from lcse_plugins.parsing.result import Parser

try:
    from lcse_plugins.parsing.llm.schema import SCHEMA_VERSION, wire_schema
    from lcse_plugins.parsing.service.chat_client import MAX_BODY, ChatClient
except ImportError as error:
    raise MissingExtra("OpenAIParser", "openai") from error

__all__ = ["OpenAIParser"]


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
        self.prompt.messages("")  # made here, where no fork can leave a lock behind
        self._client = ChatClient(base_url, api_key)
        self.base_url = self._client.base_url
        official = self._client.host == "api.openai.com"
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
        """Model (where it is served, and a digest of the options it is asked with), prompt version, schema version."""
        options = json.dumps(self._options, sort_keys=True).encode()
        model = f"{self.parser_name}@{self.base_url}#{hashlib.sha256(options).hexdigest()[:12]}"
        return model, self.prompt.version, SCHEMA_VERSION

    def close(self) -> None:
        """Close the connections; the next query opens new ones."""
        self._client.close()

    async def aclose(self) -> None:
        """`close` without blocking."""
        await self._client.aclose()

    def __enter__(self) -> OpenAIParser:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> OpenAIParser:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def _ask(self, question: Question) -> str:
        body = self._client.complete(self._request(question))
        try:
            return self._content(body.result(question.time_limit))
        except FutureTimeoutError:
            raise TimeoutError(f"no complete reply within {question.time_limit:.3g} s") from None
        finally:
            body.cancel()

    async def _aask(self, question: Question) -> str:
        return self._content(await asyncio.wrap_future(self._client.complete(self._request(question))))

    def _request(self, question: Question) -> dict[str, Any]:
        messages = self.prompt.messages(question.text, rejected=question.rejected, complaint=question.complaint)
        return {**self._options, "messages": messages, "timeout": question.time_limit}

    def _content(self, body: bytes) -> str:
        """The reply's text, out of a chat completion that may be wrong in any way."""
        if len(body) > MAX_BODY:
            raise ParserOutputError(f"the response is larger than {MAX_BODY:,} bytes", repairable=False)
        match _json(body):
            case {"choices": [{"message": {"refusal": str(refusal)}}, *_]} if refusal:
                raise ParserOutputError(f"the model refused: {refusal[:200]}", repairable=False)
            case {"choices": [{"finish_reason": "content_filter"}, *_]}:
                raise ParserOutputError("the server's content filter stopped the reply", repairable=False)
            case {"choices": [{"finish_reason": "length", "message": {"content": content}}, *_]}:
                limit = self._options.get("max_tokens", "the server's limit")
                raise ParserOutputError(f"the reply was cut off at {limit} tokens; be shorter", reply=_text(content))
            case {"choices": [{"message": {"content": content}}, *_]} if (text := _text(content)) and text.strip():
                return text
            case {"choices": [*_]}:
                raise ParserOutputError("the reply is empty")
            case {"error": fault}:  # some proxies put an error into a response that says 200
                raise _proxy_error(fault, self._client.redact(str(fault)))
        raise ParserUnavailable(f"{self.base_url} does not answer with chat completions; check base_url")


def _text(content: Any) -> str | None:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else None


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _proxy_error(fault: Any, said: str) -> ParserUnavailable:
    code = fault.get("code") if isinstance(fault, dict) else None
    passing = isinstance(code, int) and may_pass(code)
    return ParserUnavailable(f"the server reports an error: {said[:200]}", retryable=passing)
