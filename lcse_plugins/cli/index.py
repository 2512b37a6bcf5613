"""`lcse index`: a folder of pictures to vectors on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lcse_plugins.cli.messages import print_left_out
from lcse_plugins.cli.options import encoder_option, json_option, load, print_json, progress_bar

if TYPE_CHECKING:
    from lcse_plugins.images.tiles import TileChoice

__all__ = ["index"]


@click.command(epilog="Example: lcse index ~/Pictures --out pictures.lcse")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", "-o", required=True, type=click.Path(path_type=Path), help="Where the index goes.")
@encoder_option
@click.option("--batch-size", type=click.IntRange(1), default=64, show_default=True, help="Files between two saves.")
@click.option("--float16", is_flag=True, help="Keep vectors in half the space.")
@click.option(
    "--tiles",
    type=click.Choice(["few", "many"]),
    help="Also encode tiles, to find small things: few takes 6 times the vectors and up to 6 times the time, many 15.",
)
@json_option
def index(
    folder: Path,
    out: Path,
    encoder: str,
    batch_size: int,
    float16: bool,
    tiles: TileChoice | None,
    as_json: bool,
) -> None:
    """Encode the pictures in FOLDER, or bring their index up to date.

    Run it again after adding, changing or removing pictures: only what changed is encoded. It may be interrupted. A
    file of the same name, size and time of change counts as unchanged.
    """
    from lcse_plugins.images.tiles import describe_tiles
    from lcse_plugins.index import ImageIndex

    with progress_bar("indexing") as progress:
        report = ImageIndex.build(
            folder,
            out,
            encoder=load(encoder),
            batch_size=batch_size,
            dtype="float16" if float16 else None,
            tiles=tiles,
            progress=progress,
        )
    counts = {name: getattr(report, name) for name in ("added", "updated", "removed", "unchanged")}
    if as_json:
        broken = [{"path": error.source, "reason": error.reason} for error in report.broken]
        print_json({"index": str(out), **counts, "tiles": describe_tiles(report.tiles), "broken": broken})
        return
    left_out = f", {len(report.broken)} left out" if report.broken else ""
    tiled = f", tiles {describe_tiles(report.tiles)}" if report.tiles else ""
    click.echo(f"{out}: " + ", ".join(f"{count} {name}" for name, count in counts.items()) + left_out + tiled)
    print_left_out(report.broken)
