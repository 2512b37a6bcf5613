"""`lcse bench timing | concurrency | qdrant`: each runs a module of its own and prints its table."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from lcse_plugins.bench.command_options import common_options, finish

__all__ = ["concurrency", "qdrant", "timing"]


@click.command(epilog="Example: lcse bench timing --limit 50000")
@common_options
def timing(as_json: bool, seed: int, limit: int | None, out: Path | None, name: str | None) -> None:
    """Time the exact logical top-10 against numpy's plain one; --limit bounds the size of the collections."""
    module = import_module("lcse_plugins.bench.timing")
    sizes = [size for size in module.SIZES if limit is None or size <= limit] or [limit]
    with _spinner("timing") as progress:
        report = module.run(sizes, seed=seed, progress=progress)
    finish(module.table(report), report, as_json=as_json, out=out, name=name or "timing", rows=report["results"])


@click.command()
@common_options
def concurrency(as_json: bool, seed: int, limit: int | None, out: Path | None, name: str | None) -> None:
    """Ask many searches at once; --limit bounds how many."""
    _run("concurrency", {"seed": seed, "calls": limit}, as_json=as_json, out=out, name=name)


@click.command()
@common_options
def qdrant(as_json: bool, seed: int, limit: int | None, out: Path | None, name: str | None) -> None:
    """Search a Qdrant collection every way there is; --limit bounds its size."""
    _run("qdrant", {"seed": seed, "points": limit}, as_json=as_json, out=out, name=name)


def _run(module_name: str, options: dict[str, Any], *, as_json: bool, out: Path | None, name: str | None) -> None:
    module = import_module(f"lcse_plugins.bench.{module_name}")
    known = inspect.signature(module.run).parameters
    given = {key: value for key, value in options.items() if key in known and value is not None}
    with _spinner(module_name) as progress:
        if "progress" in known:
            given["progress"] = progress
        report = module.run(**given)
    rows = report.get("results", ())
    finish(
        module.table(report),
        report,
        as_json=as_json,
        out=out,
        name=name or module_name,
        encoder_id=report.get("encoder"),
        rows=rows,
    )


@contextmanager
def _spinner(label: str) -> Iterator[Any]:
    """A line on standard error that says what is being done; nothing where that is not a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: None
        return
    with console.status(label) as status:
        yield lambda text: status.update(f"{label}: {text}")
