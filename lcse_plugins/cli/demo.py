"""`lcse demo`: the main job on real photographs, with no set-up."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from lcse_plugins.cli.messages import print_left_out, print_notes, printable
from lcse_plugins.cli.options import (
    encoder_option,
    file_to_write,
    json_option,
    load,
    naming,
    print_json,
    progress_bar,
)
from lcse_plugins.errors import ImageError

if TYPE_CHECKING:
    from lcse_plugins.cli.report import Comparison

__all__ = ["demo"]

QUERIES = ("a cup and no cat", "a person and no cat", "no cat", "neither a cat nor a person")

SKIMAGE_PHOTOS = (
    "astronaut",
    "brick",
    "camera",
    "cat",
    "clock",
    "coffee",
    "coins",
    "grass",
    "gravel",
    "hubble_deep_field",
    "immunohistochemistry",
    "moon",
    "page",
    "retina",
    "rocket",
)
"""Photographs that scikit-image installs and serves by a function of that name."""


@click.command(epilog="Example: lcse demo --photos ~/Pictures -q 'a beach without people' --html beach.html")
@click.option("--photos", type=click.Path(path_type=Path), help="A folder of your own pictures.")
@click.option("--query", "-q", "queries", multiple=True, help="A query; may be given several times.")
@file_to_write("--html", help="Write the picture report here.")
@click.option(
    "-k", "shown", type=click.IntRange(1), default=3, show_default=True, help="Pictures to show of each ranking."
)
@encoder_option
@json_option
def demo(
    photos: Path | None, queries: tuple[str, ...], html: Path | None, shown: int, encoder: str, as_json: bool
) -> None:
    """Index photographs, ask Boolean queries, and show plain similarity beside logic.

    By default the photographs are scikit-image's, or a few of them that come with this package.
    """
    from lcse_plugins.cli.report import Comparison, write_report
    from lcse_plugins.index import ImageIndex
    from lcse_plugins.scorer import LogicScorer
    from lcse_plugins.scoring.config import ScoringConfig

    model = load(encoder)
    with TemporaryDirectory(prefix="lcse-demo-") as work:
        folder = photos or _default_photos(Path(work) / "photos")
        with progress_bar("encoding") as progress:
            report = ImageIndex.build(folder, Path(work) / "index", encoder=model, progress=progress)
        index = ImageIndex.open(Path(work) / "index", encoder=model)
        if not len(index):
            reason = f"none of its {len(report.broken)} picture files can be used; the first is {report.broken[0]}"
            raise ImageError(folder, reason)
        plain = LogicScorer(model, config=ScoringConfig(mode="holistic"))
        logical = LogicScorer(model)
        comparisons = [
            Comparison(
                plain=plain.rank(query, index, limit=max(shown, 6)),
                logical=logical.rank(query, index, limit=1000),
                shown=max(shown, 6),
            )
            for query in queries or QUERIES
        ]
        for comparison in comparisons:
            _print(comparison, shown, as_json)
        if html is not None:
            with naming(html):
                write_report(html, comparisons, title="Image search that obeys and, or, not")
    print_left_out(report.broken)
    if html is not None:
        click.echo(f"The same with pictures: open {html} in a browser.", err=as_json)


def _default_photos(folder: Path) -> Path:
    """Write the photographs of scikit-image to `folder`, or the few that come with this package."""
    folder.mkdir()
    try:
        from skimage import data
    except ImportError:
        with as_file(files("lcse_plugins") / "demo_photos") as bundled:
            for photo in Path(bundled).glob("*.jpg"):
                (folder / photo.name).write_bytes(photo.read_bytes())
        return folder
    from PIL import Image

    for name in SKIMAGE_PHOTOS:
        Image.fromarray(getattr(data, name)()).convert("RGB").save(folder / f"{name}.jpg", quality=95)
    left, _, _ = data.stereo_motorcycle()  # type: ignore[no-untyped-call]
    Image.fromarray(left).save(folder / "motorcycle.jpg", quality=95)
    return folder


def _print(comparison: Comparison, shown: int, as_json: bool) -> None:
    parse = comparison.logical.parse
    if as_json:
        record = comparison.logical.to_json()
        record["results"] = record["results"][:shown]
        record["plain"] = [result.id for result in comparison.plain[:shown]]
        print_json(record)
        return
    click.secho(f"\n“{parse.text}”", bold=True)
    rows = [
        (printable(plain.id), printable(result.id), result)
        for plain, result in zip(comparison.plain[:shown], comparison.logical[:shown], strict=False)
    ]
    left = max([len("plain similarity"), *(len(row[0]) for row in rows)])
    right = max([len("with logic"), *(len(row[1]) for row in rows)])
    click.secho(f"     {'plain similarity':<{left}}  {'with logic':<{right}}  why", dim=True)
    for place, (before, after, result) in enumerate(rows, start=1):
        why = ", ".join(
            click.style(
                f"{item.label} {'✓' if item.fits else '✗'} ({100 * item.probability:.0f} % seen)",
                fg="green" if item.fits else "red",
            )
            for item in result.evidence
        )
        click.echo(f"  {place}  {before:<{left}}  {after:<{right}}  {result.score:+.3f}: {why}")
    first = comparison.plain[0]
    moved = next((n for n, result in enumerate(comparison.logical, start=1) if result.id == first.id), None)
    if moved is not None and moved > 1:
        name = printable(first.id)
        click.secho(f"     plain similarity puts {name} first; logic moves it to place {moved}", fg="yellow")
    print_notes(parse)
