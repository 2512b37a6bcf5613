"""Every example runs as a user would run it, offline, and is short enough to read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lcse_plugins

ROOT = Path(__file__).resolve().parent.parent
PHOTOS = Path(lcse_plugins.__file__).parent / "demo_photos"
ARGUMENTS: dict[str, list[str]] = {
    "quickstart.py": [],
    "llama_index_rerank.py": [],
    "langchain_agent.py": [str(PHOTOS), "find pictures with a cup and no cat"],
    "qdrant_search.py": [],
    "openai_parser.py": [],
}
SAYS = {
    "quickstart.py": ["plain similarity: cat.jpg", "coffee.jpg: score"],
    "llama_index_rerank.py": ["LogicRetriever: coffee.jpg"],
    "langchain_agent.py": ["coffee.jpg", "These are the pictures I found."],
    "qdrant_search.py": ["proved complete", "coffee.jpg: score"],
    "openai_parser.py": ["NOT"],
}


def test_all_examples_are_listed() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(ARGUMENTS)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_example_runs_offline(name: str, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    command = [sys.executable, str(ROOT / "examples" / name), *ARGUMENTS[name]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    for words in SAYS[name]:
        assert words in done.stdout


@pytest.mark.parametrize("name", ARGUMENTS)
def test_example_is_short(name: str) -> None:
    assert len((ROOT / "examples" / name).read_text(encoding="utf-8").splitlines()) < 60
