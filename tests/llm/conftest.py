"""A scripted server for each test, both ways to read, and no key in the environment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from lcse_plugins.parsing.result import Parse
from tests.llm.server import Read, ScriptedServer, serving


@pytest.fixture
def server() -> ScriptedServer:
    return ScriptedServer()


@pytest.fixture
def base_url(server: ScriptedServer) -> Iterator[str]:
    with serving(server) as url:
        yield url


async def _read(parser: Any, text: str) -> Parse:
    parse: Parse = await asyncio.to_thread(parser.read, text)
    return parse


async def _aread(parser: Any, text: str) -> Parse:
    parse: Parse = await parser.aread(text)
    return parse


@pytest.fixture(params=[_read, _aread], ids=["sync", "async"])
def read(request: pytest.FixtureRequest) -> Read:
    how: Read = request.param
    return how


@pytest.fixture(autouse=True)
def _no_key_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
