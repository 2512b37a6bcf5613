"""`OpenAIParser`: reads queries with an OpenAI model, or with any server that speaks its chat protocol.

    parser = OpenAIParser()                                                  # gpt-4.1-mini, key from OPENAI_API_KEY
    parser = OpenAIParser("qwen3", base_url="http://localhost:8080/v1")      # llama.cpp, vLLM, Ollama …
    scorer = LogicScorer(encoder, parser=parser)

Retries, time limits and connections are those of the official client.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from lcse_plugins.errors import InvalidOption, MissingExtra, ParserOutputError
from lcse_plugins.parsing.llm.parser import LLMQueryParser, digest, question, redacted
from lcse_plugins.parsing.llm.schema import SCHEMA, unbounded
from lcse_plugins.parsing.result import Parser

try:
    import openai
except ImportError as error:
    raise MissingExtra("OpenAIParser", "openai") from error

__all__ = ["OpenAIParser"]


class OpenAIParser(LLMQueryParser):
    """Reads queries with a chat model under a strict JSON schema.

    Args:
        model: The model's name at the server.
        base_url: Another server than OpenAI's; `OPENAI_BASE_URL` is honoured too.
        api_key: The key; `OPENAI_API_KEY` by default. Servers at `base_url` often need none.
        fallback: The parser that answers when the model does not; the offline grammar by default.
        timeout: Seconds until the client gives up a request.
        max_retries: How often the client tries again, after waits of its own.
        prompt: What the model is told, if not what comes with the package.
        temperature: 0 for the most repeatable answer; None leaves it out, as reasoning models want.
        max_tokens: The longest reply; None leaves it out.

    Raises:
        MissingExtra: the `openai` package is not installed.
        InvalidOption: there is no key and no `base_url`, or it is not a web address.
    """

    def __init__(
        self,
        model: str = "gpt-4.1-mini",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        fallback: Parser | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
        prompt: str | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | None = 400,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__(name=f"openai:{model}", fallback=fallback, prompt=prompt)
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        api_key = api_key or os.environ.get("OPENAI_API_KEY") or ("not-needed" if base_url else "")
        if not api_key:
            raise InvalidOption("no key: set OPENAI_API_KEY, pass api_key=, or pass base_url= of a server without keys")
        if base_url and not re.match(r"https?://[^/\s]", base_url):
            raise InvalidOption("base_url is a web address, such as http://localhost:8080/v1")
        self.base_url = redacted(base_url or "https://api.openai.com/v1")
        schema = unbounded() if self.base_url.startswith("https://api.openai.com/") else SCHEMA
        form = {"name": "query_logic", "strict": True, "schema": schema}
        options = {"model": model, "response_format": {"type": "json_schema", "json_schema": form}}
        limits = {"temperature": temperature, "max_tokens": max_tokens}
        self._options = options | {name: value for name, value in limits.items() if value is not None}
        settings: Any = {"base_url": base_url, "api_key": api_key, "timeout": timeout, "max_retries": max_retries}
        self._connect = partial(openai.OpenAI, **settings)
        self._aconnect = partial(openai.AsyncOpenAI, **settings)
        self._lock = threading.Lock()
        self._client: openai.OpenAI | None = None
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, openai.AsyncOpenAI] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(OpenAIParser, **self._arguments), ()

    @property
    def fingerprint(self) -> str:
        """Model, server and a digest of the options and the prompt."""
        return f"{self.parser_name}@{self.base_url}#{digest(self._options, self.prompt)}"

    def close(self) -> None:
        """Close the connections of `read`; the next query opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the connections that `aread` opened on this event loop, and those of `read`."""
        if (client := self._clients.pop(asyncio.get_running_loop(), None)) is not None:
            await client.close()
        self.close()

    def _ask(self, text: str) -> str:
        with self._lock:
            client = self._client = self._client or self._connect()
        return self._content(client.chat.completions.create(**self._request(text)))

    async def _aask(self, text: str) -> str:
        loop = asyncio.get_running_loop()  # connections belong to the loop they were opened on
        if (client := self._clients.get(loop)) is None:
            client = self._clients[loop] = self._aconnect()
        return self._content(await client.chat.completions.create(**self._request(text)))

    def _request(self, text: str) -> dict[str, Any]:
        asked = [{"role": "system", "content": self.prompt}, {"role": "user", "content": question(text)}]
        return {**self._options, "messages": asked}

    def _content(self, completion: Any) -> str:
        """The reply's text, out of a completion of which a server may have left out any part."""
        choice = next(iter(getattr(completion, "choices", None) or ()), None)
        if choice is None or choice.message is None:
            raise ParserOutputError(f"{self.base_url} does not answer with chat completions; check base_url")
        if refusal := getattr(choice.message, "refusal", None):
            raise ParserOutputError(f"the model refused: {refusal:.200}")
        if choice.finish_reason == "length":
            raise ParserOutputError(f"the reply was cut off at {self._options.get('max_tokens', 'too many')} tokens")
        if not isinstance(choice.message.content, str) or not choice.message.content.strip():
            raise ParserOutputError("the reply is empty")
        return choice.message.content
