"""`lcse bench timing | concurrency | qdrant`: each runs a module of its own and prints its table."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from lcse_plugins.bench.command_options import Run, common_options

__all__ = ["concurrency", "qdrant", "timing"]


@click.command(epilog="Example: lcse bench timing --limit 50000")
@common_options
def timing(run: Run) -> None:
    """Time the exact logical top-10 against numpy's plain one; --limit bounds the size of the collections."""
    module = import_module("lcse_plugins.bench.timing")
    sizes = [size for size in module.SIZES if run.limit is None or size <= run.limit] or [run.limit]
    with _spinner("timing") as progress:
        report = module.run(sizes, seed=run.seed, progress=progress)
    run.finish(module.table(report), report, name="timing", rows=report["results"])


@click.command()
@common_options
def concurrency(run: Run) -> None:
    """Ask many searches at once; --limit bounds how many."""
    _measure("concurrency", run, {"seed": run.seed, "calls": run.limit})


@click.command()
@common_options
def qdrant(run: Run) -> None:
    """Search a Qdrant collection every way there is; --limit bounds its size."""
    _measure("qdrant", run, {"seed": run.seed, "points": run.limit})


def _measure(module_name: str, run: Run, options: dict[str, Any]) -> None:
    module = import_module(f"lcse_plugins.bench.{module_name}")
    known = inspect.signature(module.run).parameters
    given = {key: value for key, value in options.items() if key in known and value is not None}
    with _spinner(module_name) as progress:
        if "progress" in known:
            given["progress"] = progress
        report = module.run(**given)
    rows = report.get("results", ())
    run.finish(module.table(report), report, name=module_name, encoder_id=report.get("encoder"), rows=rows)


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
