"""What the documentation shows is what happens: its Python runs, and prints what it says it prints."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from lcse_plugins.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "integrations" / "qdrant_lcse" / "README.md"]
BLOCKS = [
    pytest.param(block, id=f"{page.parent.name}/{page.name}-{number}")
    for page in PAGES
    if page.is_file()
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_python_blocks_print_what_they_say(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = [line.removeprefix("#> ") for line in block.splitlines() if line.startswith("#> ")]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "README", "exec"), {"__name__": "readme"})
    if said:
        assert printed.getvalue().splitlines() == said


def test_commands_in_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL):
        for line in filter(None, block.splitlines()):
            words = shlex.split(line, comments=True)
            if words[:1] == ["lcse"]:
                assert words[1] in COMMANDS, line
            elif words[:1] == ["make"]:
                assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), line


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+?)\)", page.read_text(encoding="utf-8")) if page.is_file() else ():
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"
