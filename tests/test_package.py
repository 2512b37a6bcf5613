"""The package as a whole: what it exports, what importing it costs, what its messages promise."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import lcse_plugins
from lcse_plugins import errors

ROOT = Path(__file__).resolve().parent.parent
HEAVY = set(
    "numpy torch onnxruntime PIL tokenizers pydantic rich click lark llama_index langchain_core qdrant_client openai"
    " open_clip scipy starlette".split()
)


def test_exports_are_real_and_known_to_type_checkers() -> None:
    assert all(getattr(lcse_plugins, name) is not None for name in lcse_plugins.__all__)
    module = ast.parse(Path(lcse_plugins.__file__).read_text(encoding="utf-8"))
    branches = {ast.unparse(node.test): node.body for node in module.body if isinstance(node, ast.If)}
    known = {name.asname for node in branches["TYPE_CHECKING"] for name in node.names}  # type: ignore[attr-defined]
    assert known == {*lcse_plugins.__all__, "OpenAIParser"} - {"__version__"}


@pytest.mark.parametrize(
    ("script", "allowed"),
    [
        ("import lcse_plugins; lcse_plugins.LogicScorer; lcse_plugins.score_arrays", {"numpy"}),
        ("from lcse_plugins.cli.main import cli; cli(['parse', 'a cat'], standalone_mode=False)", {"click", "lark"}),
    ],
)
def test_starting_loads_nothing_heavy(script: str, allowed: set[str]) -> None:
    script += "\nimport sys; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY & set(loaded) <= allowed


def test_every_error_is_one_of_ours_and_in_the_drawing() -> None:
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert issubclass(kind, errors.LcseError)
            assert name in (errors.__doc__ or "")


def test_every_extra_that_is_advised_exists() -> None:
    extras = set(metadata.metadata("lcse-plugins").get_all("Provides-Extra") or ())
    sources = [*ROOT.glob("lcse_plugins/**/*.py"), *ROOT.glob("integrations/**/*.py")]
    said = "".join(path.read_text(encoding="utf-8") for path in sources)
    advised = set(re.findall(r'MissingExtra\([^)]*"([\w-]+)"\)', said))
    assert advised <= extras, advised - extras
