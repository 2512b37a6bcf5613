"""The official OpenAI client, used so that size, time and the key are kept whatever a server does.

It lives on the background loop: blocking callers and every event loop share its connections.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import openai

from lcse_plugins.errors import InvalidOption
from lcse_plugins.forks import leave_to_parent, renew_when_forked
from lcse_plugins.parsing.service.background import background_loop

__all__ = ["MAX_BODY", "ChatClient"]

MAX_BODY = 1_000_000
"""Bytes of a response that are read; a tree takes a few thousand."""

_SHORTEST_SECRET = 8
"""Characters of a key that is worth hiding; local servers are given words such as `none`."""

_NOT_KEPT = ("content-encoding", "content-length", "transfer-encoding")
_CLOSING_SECONDS = 5.0


class ChatClient:
    """Chat completions from one server.

    Args:
        base_url: Where the server is; `OPENAI_BASE_URL`, else OpenAI's own, by default.
        api_key: The key; `OPENAI_API_KEY` by default. A server at `base_url` may need none.

    Raises:
        InvalidOption: `base_url` is not a web address, there is no key that a request can carry, or the environment
            names a proxy or certificates that cannot be used.
    """

    def __init__(self, base_url: str | None, api_key: str | None) -> None:
        self._given = base_url, api_key
        self._key = _usable_key(api_key, needed=not base_url)
        self._lock = threading.Lock()
        self._create: Callable[..., Any]
        self._closer: weakref.finalize[..., ChatClient] | None = None
        self._client: openai.AsyncOpenAI | None = self._new()
        url = self._client.base_url
        if url.scheme not in ("http", "https") or not url.host:
            raise InvalidOption("base_url starts with http:// or https://, such as http://localhost:8080/v1")
        self.host = url.host
        self.base_url = f"{url.scheme}://{url.netloc.decode()}{url.path}".rstrip("/")  # without a user's password
        renew_when_forked(self)

    def __reduce__(self) -> tuple[type[ChatClient], tuple[str | None, str | None]]:
        return ChatClient, self._given

    def complete(self, request: dict[str, Any]) -> Future[bytes]:
        """The body of the response, cut after `MAX_BODY` bytes and one more; to be cancelled when it is late."""
        loop = background_loop()
        with self._lock:
            if self._client is None:
                self._client = self._new()
            if self._closer is None:
                self._closer = weakref.finalize(self, _close, self._client, loop)
                self._closer.atexit = False
            return asyncio.run_coroutine_threadsafe(_complete(self._create, request), loop)

    def redact(self, text: str) -> str:
        """The text without the key: some servers repeat the one they refuse."""
        return _redact(text.encode(errors="replace"), self._key).decode()

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        if closing := self._closing():
            closing.result(_CLOSING_SECONDS)

    async def aclose(self) -> None:
        """`close` without blocking."""
        if closing := self._closing():
            await asyncio.wrap_future(closing)

    def _new(self) -> openai.AsyncOpenAI:
        try:
            http = _BoundedClient()
        except (ImportError, OSError, ValueError) as error:
            raise InvalidOption(
                f"no connection can be made as HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE say ({error});"
                " correct or unset them"
            ) from error
        http.key = self._key
        client = openai.AsyncOpenAI(base_url=self._given[0], api_key=self._key, max_retries=0, http_client=http)
        self._create = client.chat.completions.with_raw_response.create  # imported here, not at the first question
        return client

    def _closing(self) -> Future[None] | None:
        with self._lock:
            closer, self._closer, self._client = self._closer, None, None
        return closer() if closer else None

    def _begin_anew(self) -> None:
        if self._client is not None:
            leave_to_parent(self._client)
        if self._closer is not None:
            self._closer.detach()
        self._client, self._closer, self._lock = None, None, threading.Lock()


class _BoundedClient(openai.DefaultAsyncHttpxClient):
    """Reads every response here, errors included: no more than may be, and errors without the key."""

    key = ""

    async def send(self, request: Any, **options: Any) -> Any:
        response = await super().send(request, **{**options, "stream": True})
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_BODY:
                    break
        finally:
            await response.aclose()
        content = bytes(body[: MAX_BODY + 1])
        return type(response)(
            response.status_code,
            headers=[item for item in response.headers.multi_items() if item[0].lower() not in _NOT_KEPT],
            content=_redact(content, self.key) if response.is_error else content,
            request=response.request,
        )


async def _complete(create: Callable[..., Any], request: dict[str, Any]) -> bytes:
    content: bytes = (await create(**request)).content
    return content


def _close(client: openai.AsyncOpenAI, loop: asyncio.AbstractEventLoop) -> Future[None]:
    return asyncio.run_coroutine_threadsafe(client.close(), loop)


def _redact(text: bytes, key: str) -> bytes:
    return text.replace(key.encode(), b"[key]") if len(key) >= _SHORTEST_SECRET else text


def _usable_key(given: str | None, *, needed: bool) -> str:
    key = (os.environ.get("OPENAI_API_KEY", "") if given is None else given).strip()
    if not key and needed:
        raise InvalidOption(
            "no OpenAI key: set OPENAI_API_KEY, pass api_key=, or pass base_url= of a server that needs none"
        )
    if not (key.isascii() and key.isprintable()):
        raise InvalidOption("the API key holds characters that no request can carry; copy it again, without quotes")
    return key or "not-needed"
