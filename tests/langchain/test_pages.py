"""The code on LangChain's pages runs, and prints what it says it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("page", ["docs/hosts/langchain.md", "integrations/langchain_lcse/README.md"])
def test_what_is_shown_is_what_happens(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session: dict[str, Any] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL):
        said = [line.removeprefix("#> ") for line in block.splitlines() if line.startswith("#> ")]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), session)
        assert [line.rstrip() for line in printed.getvalue().splitlines()] == [line.rstrip() for line in said]
