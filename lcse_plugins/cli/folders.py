"""From what a person names, folders of pictures or an index, to an index that can be searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lcse_plugins.cli.options import print_left_out, printable, progress_bar

if TYPE_CHECKING:
    from lcse_plugins.encoders import Encoder
    from lcse_plugins.index import ImageIndex, IndexReport

__all__ = ["build", "open_pictures", "print_report"]


def build(
    folders: Sequence[Path],
    place: Path | None,
    encoder: Encoder,
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> IndexReport:
    """Make or update an index; interrupted, it says that what is done is kept."""
    from lcse_plugins.index import ImageIndex, cache_place

    done = 0

    def tell(now: int, total: int) -> None:
        nonlocal done
        done = now
        if progress is not None:
            progress(now, total)

    place = place or cache_place(folders, encoder)
    try:
        return ImageIndex.build(folders, place, encoder=encoder, progress=tell, **options)
    except KeyboardInterrupt:
        click.echo(f"\nStopped. {done} pictures are in {printable(place)}; the next run goes on from there.", err=True)
        raise SystemExit(130) from None


def open_pictures(path: Path, encoder: Encoder, *, out: Path | None = None) -> ImageIndex:
    """The index at a path; or that of the folder of pictures there, made or brought up to date first."""
    from lcse_plugins.index import ImageIndex, is_index

    if is_index(path):
        return ImageIndex.open(path, encoder=encoder)
    with progress_bar("indexing") as progress:
        report = build([path], out, encoder, progress=progress)
    if report.added and not report.unchanged:
        click.echo(f"indexed {report.added} pictures in {printable(report.path)}", err=True)
        print_report(report)
    return ImageIndex.open(report.path, encoder=encoder)


def print_report(report: IndexReport) -> None:
    """Print what could not be read, and what was passed over, on standard error."""
    print_left_out(report.broken)
    if report.note:
        click.secho(f"note: {report.note}", fg="yellow", err=True)
