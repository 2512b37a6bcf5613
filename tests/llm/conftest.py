"""A scripted server for each test, both ways to read, and no key in the environment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.result import Parse
from tests.llm.server import Read, ScriptedServer, serving


@pytest.fixture
def server() -> ScriptedServer:
    return ScriptedServer()


@pytest.fixture
def base_url(server: ScriptedServer) -> Iterator[str]:
    with serving(server) as url:
        yield url


@pytest.fixture
async def llm(base_url: str) -> Any:
    parser = OpenAIParser("m", base_url=base_url, max_retries=0, timeout=5)
    yield parser
    await parser.aclose()


@pytest.fixture(params=["sync", "async"])
def read(request: pytest.FixtureRequest) -> Read:
    async def read(parser: Any, text: str) -> Parse:
        if request.param == "async":
            return await parser.aread(text)  # type: ignore[no-any-return]
        return await asyncio.to_thread(parser.read, text)

    return read


@pytest.fixture(autouse=True)
def _no_key_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
