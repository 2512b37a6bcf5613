"""`lcse index`: folders of pictures to vectors on disk."""

from __future__ import annotations

from pathlib import Path

import click

from lcse_plugins.cli.folders import build, print_report
from lcse_plugins.cli.options import encoder_option, json_option, load, print_json, printable, progress_bar

__all__ = ["index"]


@click.command(epilog="Example: lcse index ~/Pictures --out pictures.lcse")
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Where the index goes; by default a cache folder.")
@encoder_option
@click.option(
    "--tiles", type=click.Choice(["few"]), help="Also look at parts of pictures, for small things; 6 × as long."
)
@json_option
def index(folders: tuple[Path, ...], out: Path | None, encoder: str, tiles: str | None, as_json: bool) -> None:
    """Encode the pictures in each FOLDER, or bring their index up to date.

    Run it again after adding, changing or removing pictures: only what changed is encoded. It may be interrupted. A
    file of the same name, size and time of change counts as unchanged.
    """
    with progress_bar("indexing") as progress:
        report = build(folders, out, load(encoder), progress=progress, tiles=tiles)
    counts = {name: getattr(report, name) for name in ("added", "updated", "removed", "unchanged", "repaired")}
    if as_json:
        broken = [{"path": str(error.source), "reason": error.reason} for error in report.broken]
        print_json({"index": str(report.path), **counts, "broken": broken, "passed_over": dict(report.passed_over)})
        return
    if not report.repaired:
        del counts["repaired"]
    left_out = f", {len(report.broken)} left out" if report.broken else ""
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    click.echo(f"{printable(report.path)}: {said}{left_out}")
    print_report(report)
