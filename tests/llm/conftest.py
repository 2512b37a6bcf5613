"""A scripted server for each test, and parsers that wait for no one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lcse_plugins.parsing.consult import Patience
from tests.llm.server import ScriptedServer, serving

QUICK = Patience(timeout=5.0, deadline=10.0, max_retries=2, first_wait=0.01, longest_wait=0.02)


@pytest.fixture
def server() -> ScriptedServer:
    return ScriptedServer()


@pytest.fixture
def base_url(server: ScriptedServer) -> Iterator[str]:
    with serving(server) as url:
        yield url


@pytest.fixture(autouse=True)
def _no_key_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
