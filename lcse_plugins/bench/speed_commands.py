"""`lcse bench timing | concurrency | qdrant`: each runs a module of its own and prints its table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from lcse_plugins.bench.command_options import Run, common_options
from lcse_plugins.cli.options import progress_bar

__all__ = ["concurrency", "qdrant", "timing"]


@click.command(epilog="Example: lcse bench timing --limit 50000")
@common_options
def timing(run: Run) -> None:
    """Time the exact logical top-10 against numpy's plain one; --limit bounds the size of the collections."""
    from lcse_plugins.bench import timing as module

    sizes = [size for size in module.SIZES if run.limit is None or size <= run.limit] or [run.limit or 0]
    with progress_bar("timing") as progress:
        report = module.run(sizes, seed=run.seed, progress=progress)
    run.finish(module.table(report), report, name="timing", rows=report["results"])


@click.command(epilog="Example: lcse bench concurrency --limit 50")
@common_options
def concurrency(run: Run) -> None:
    """Ask many searches at once; --limit bounds how many."""
    from lcse_plugins.bench import concurrency as module

    with _spinner("concurrency") as progress:
        report = module.run(calls=run.limit or module.CALLS, seed=run.seed, progress=progress)
    run.finish(module.table(report), report, name="concurrency", rows=report["results"])


@click.command(epilog="Example: lcse bench qdrant --images photos --limit 2000")
@click.option(
    "--images", type=click.Path(path_type=Path), help="A folder of photographs; by default `photos` in $LCSE_DATA."
)
@common_options
def qdrant(images: Path | None, run: Run) -> None:
    """Search a Qdrant collection every way there is; --limit bounds its size, and below 10,000 points the queries."""
    from lcse_plugins.bench import qdrant as module

    with progress_bar("qdrant") as progress:
        report = module.run(images=images, points=run.limit or module.POINTS, seed=run.seed, progress=progress)
    run.finish(module.table(report), report, name="qdrant", encoder_id=report["encoder"], rows=report["results"])


@contextmanager
def _spinner(label: str) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done; nothing where that is not a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: None
        return
    with console.status(label) as status:
        yield lambda text: status.update(f"{label}: {text}")
