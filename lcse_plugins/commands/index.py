"""`lcse index`: a folder of pictures to vectors on disk."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lcse_plugins.commands.options import encoder_option, json_option, load, progress_bar

__all__ = ["index"]


@click.command(epilog="Example: lcse index ~/Pictures --out pictures.lcse")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", "-o", required=True, type=click.Path(path_type=Path), help="Where the index goes.")
@encoder_option
@click.option("--batch-size", type=click.IntRange(1), default=64, show_default=True, help="Files between two saves.")
@click.option("--float16", is_flag=True, help="Keep vectors in half the space.")
@json_option
def index(folder: Path, out: Path, encoder: str, batch_size: int, float16: bool, as_json: bool) -> None:
    """Encode the pictures in FOLDER, or bring their index up to date.

    Run it again after adding, changing or removing pictures: only what changed is encoded. It may be interrupted.
    """
    from lcse_plugins.index import ImageIndex

    with progress_bar("indexing") as progress:
        report = ImageIndex.build(
            folder,
            out,
            encoder=load(encoder),
            batch_size=batch_size,
            dtype="float16" if float16 else None,
            progress=progress,
        )
    counts = {name: getattr(report, name) for name in ("added", "updated", "removed", "unchanged")}
    if as_json:
        broken = [{"path": error.source, "reason": error.reason} for error in report.broken]
        click.echo(json.dumps({"index": str(out), **counts, "broken": broken}))
        return
    click.echo(f"{out}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    for error in report.broken:
        click.secho(f"left out {error}", fg="yellow", err=True)
