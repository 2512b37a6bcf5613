"""Every example runs as a user would run it, offline."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lcse_plugins.query import Concept
from tests.llm.server import ScriptedServer, serving

ROOT = Path(__file__).resolve().parent.parent
SAYS = {
    "quickstart.py": ["plain similarity: skier-with-dog.jpg", "dog-in-armchair.jpg: dog: clear · no person: not seen"],
    "llama_index_query_engine.py": ["a cat but no laptop", "cat: clear · no laptop: not seen"],
    "langchain_agent.py": ['read as "dog" AND NOT "person"', "1. dog-in-armchair", "These are the pictures I found."],
    "langchain_compression.py": ["reranked: ['dog-in-armchair'"],
    "langchain_faiss.py": ["48 photographs added, 0 could not be read", "dog in armchair: dog: clear"],
    "qdrant_search.py": ["proved complete", "no cat: not seen"],
    "openai_parser.py": ['("umbrella" AND NOT "person") OR "raincoat"', "because: ParserUnavailable"],
}


def output(name: str, *arguments: str, folder: Path, **variables: str) -> str:
    environment = {
        key: value for key, value in os.environ.items() if "_API_KEY" not in key and "OPENAI_" not in key
    } | variables
    command = [sys.executable, str(ROOT / "examples" / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_example_runs_offline(name: str, tmp_path: Path) -> None:
    if name == "langchain_agent.py":
        pytest.importorskip("langchain.agents")
    said = output(name, folder=tmp_path)
    for words in SAYS[name]:
        assert words in said


def test_the_parser_example_asks_a_server_once_for_each_query(tmp_path: Path) -> None:
    text = "a lake, unless there is a boat on it"
    server = ScriptedServer()
    server.knows({text: Concept("lake") & ~Concept("boat")})
    with serving(server) as url:
        said = output("openai_parser.py", text, text, folder=tmp_path, OPENAI_BASE_URL=url, OPENAI_MODEL="m")
    assert said.count('"lake" AND NOT "boat"\n    read by openai:m') == 2
    assert server.asked[text] == 1
