"""What the documentation shows is what happens: its code runs and prints what it says, its links lead somewhere.

Python blocks of a page run in turn, in one session, in a folder whose `photos` are the bundled photographs. `#>` lines
are what a block prints. A block that cannot run here stands behind `<!-- not run: why -->`.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.tables import filled
from lcse_plugins import demo_photos, format_query
from lcse_plugins.cli.main import COMMANDS, cli
from lcse_plugins.parsing.grammar import GrammarParser

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "integrations").glob("*/README.md")),
]
BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^>]+ -->\n+)?^ *```(?P<kind>python|bash)[^\n]*\n(?P<code>.*?)^ *```", re.S | re.M
)


def blocks(page: Path, kind: str) -> list[str]:
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [match["code"] for match in found if match["kind"] == kind and not match["skip"]]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder to work in, with the bundled photographs in `photos`; what a page sets for the log ends with it."""
    (tmp_path / "photos").mkdir()
    for photo in demo_photos():
        shutil.copy(photo, tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield
    logging.getLogger("lcse_plugins").setLevel(logging.NOTSET)


@pytest.mark.usefixtures("photos")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_python_blocks_print_what_they_say(page: Path) -> None:
    session: dict[str, Any] = {"__name__": "docs"}
    for block in blocks(page, "python"):
        said = [line.removeprefix("#>").strip() for line in block.splitlines() if line.startswith("#>")]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, name(page), "exec"), session)
        if said:
            assert [line.strip() for line in printed.getvalue().splitlines()] == said


@pytest.mark.usefixtures("photos")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "bash")], ids=name)
def test_commands_run(page: Path) -> None:
    """`lcse` commands run, but for those that serve or take their own files; `make` targets exist."""
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in (line for block in blocks(page, "bash") for line in block.splitlines()):
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            assert re.search(rf"^{words[1]}:", targets, re.MULTILINE), line
        elif words[:1] == ["lcse"]:
            assert words[1] in COMMANDS, line
            if words[1] in ("index", "search", "explain", "parse", "demo", "encoders"):
                result = CliRunner().invoke(cli, words[1:], catch_exceptions=False)
                assert result.exit_code == 0, f"{line}: {result.output}"


READINGS = re.findall(
    r"^\| ([^|]+) \| `([^`]+)` \|$", (ROOT / "docs" / "query-language.md").read_text(encoding="utf-8"), re.MULTILINE
)


@pytest.mark.parametrize(("text", "tree"), READINGS, ids=[text for text, _ in READINGS])
def test_queries_are_read_as_the_page_says(text: str, tree: str) -> None:
    reading = GrammarParser().read(text.strip("`"))
    assert (format_query(reading.query), reading.sure) == (tree, True)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_tables_are_the_kept_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert filled(text, ROOT / "benchmarks" / "results") == text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert target.startswith("https://") or (page.parent / target).exists(), f"{name(page)}: {target}"
