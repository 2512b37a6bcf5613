"""The package as a whole: what it exports, what importing it costs, what its messages promise."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import lcse_plugins
from lcse_plugins import errors

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {
    "torch",
    "onnxruntime",
    "PIL",
    "tokenizers",
    "pydantic",
    "rich",
    "click",
    "lark",
    "llama_index",
    "langchain_core",
}
HEAVY |= {"qdrant_client", "openai", "open_clip", "skimage", "scipy"}


def test_exports_are_sorted_and_real() -> None:
    assert list(lcse_plugins.__all__) == sorted(lcse_plugins.__all__)
    for name in lcse_plugins.__all__:
        assert getattr(lcse_plugins, name) is not None
    assert list(errors.__all__) == sorted(errors.__all__)


def test_importing_loads_nothing_heavy() -> None:
    script = (
        "import sys, lcse_plugins; lcse_plugins.LogicScorer; lcse_plugins.score_arrays; "
        "print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)
    assert "numpy" in loaded


def test_every_error_is_one_of_ours_and_in_the_drawing() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.LcseError)
        assert name in (errors.__doc__ or "")


def test_every_extra_that_is_advised_exists() -> None:
    extras = set(metadata.metadata("lcse-plugins").get_all("Provides-Extra") or ())
    advised = set()
    for path in [*ROOT.glob("lcse_plugins/**/*.py"), *ROOT.glob("integrations/**/*.py")]:
        advised |= set(re.findall(r'MissingExtra\([^)]*"([\w-]+)"\)', path.read_text(encoding="utf-8")))
    assert advised <= extras, advised - extras


def test_version_is_the_distribution_version() -> None:
    assert lcse_plugins.__version__ == metadata.version("lcse-plugins")


def test_the_package_runs_as_the_command() -> None:
    script = [sys.executable, "-m", "lcse_plugins", "parse", "no dog"]
    assert "NOT dog" in subprocess.run(script, capture_output=True, text=True, check=True).stdout


def test_type_checkers_know_the_names_and_no_others() -> None:
    module = ast.parse(Path(lcse_plugins.__file__).read_text(encoding="utf-8"))
    branches = {ast.unparse(node.test): node.body for node in module.body if isinstance(node, ast.If)}
    known = {name.asname for node in branches["TYPE_CHECKING"] for name in node.names}  # type: ignore[attr-defined]
    assert known == {*lcse_plugins.__all__, "OpenAIParser"} - {"__version__"}
    assert [node.name for node in branches["not TYPE_CHECKING"]] == ["__getattr__"]  # type: ignore[attr-defined]
    assert "__getattr__" not in {getattr(node, "name", "") for node in module.body}
