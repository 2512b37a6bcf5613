"""What the documentation shows is what happens: its Python runs, and prints what it says it prints."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from lcse_plugins.bench.readme_tables import filled
from lcse_plugins.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "integrations" / "qdrant_lcse" / "README.md"]


def test_python_blocks_print_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks in turn, in one session, as a reader would try them."""
    monkeypatch.chdir(tmp_path)
    session: dict[str, Any] = {"__name__": "readme"}
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        said = [line.removeprefix("#> ") for line in block.splitlines() if line.startswith("#> ")]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, "README", "exec"), session)
        assert printed.getvalue().splitlines() == said


def test_tables_are_the_kept_results() -> None:
    assert filled(README, ROOT / "tests" / "bench" / "results") == README


def test_commands_exist() -> None:
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL):
        for line in filter(None, block.splitlines()):
            words = shlex.split(line, comments=True)
            if words[:1] == ["lcse"]:
                assert words[1] in COMMANDS, line
            elif words[:1] == ["make"]:
                assert re.search(rf"^{words[1]}:", targets, re.MULTILINE), line


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+?)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"
