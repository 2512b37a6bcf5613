"""`lcse demo`: the main job on photographs that come with the package, with no set-up."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from lcse_plugins.cli.folders import build
from lcse_plugins.cli.options import (
    encoder_option,
    file_to_write,
    json_option,
    load,
    naming,
    print_json,
    print_left_out,
    print_notes,
    printable,
    progress_bar,
)
from lcse_plugins.cli.search import reason_in_colour

if TYPE_CHECKING:
    from lcse_plugins.cli.page.report import Comparison

__all__ = ["demo"]

QUERIES = (
    "a dog and no person",
    "a person and no dog",
    "either a dog or a cat, but no people",
    "a horse and no person",
    "a helicopter and no people",
)
IN_REPORT = 24


@click.command(epilog="Example: lcse demo --photos ~/Pictures -q 'a beach without people' --html beach.html")
@click.option("--photos", type=click.Path(path_type=Path), help="A folder of your own; by default the bundled one.")
@click.option("--query", "-q", "queries", multiple=True, help="A query; may be given several times.")
@file_to_write("--html", default="lcse-demo.html", show_default=True, help="Where the page goes.")
@click.option("-k", "shown", type=click.IntRange(1), default=5, show_default=True, help="Pictures of each ranking.")
@encoder_option
@json_option
def demo(photos: Path | None, queries: tuple[str, ...], html: Path, shown: int, encoder: str, as_json: bool) -> None:
    """Rank photographs by plain similarity and by logic, side by side, and write the page as one HTML file."""
    from lcse_plugins.cli.page.report import Comparison, write_report
    from lcse_plugins.errors import ImageError
    from lcse_plugins.images.gallery import demo_photos
    from lcse_plugins.index import ImageIndex
    from lcse_plugins.scorer import LogicScorer

    folder = photos or demo_photos()[0].parent
    logic = LogicScorer(load(encoder))
    plain = LogicScorer.of(logic, mode="holistic")
    with TemporaryDirectory(prefix="lcse-demo-") as work:
        with progress_bar("encoding") as progress:
            report = build([folder], Path(work, "index"), logic.encoder, progress=progress)
        index = ImageIndex.open(Path(work, "index"), encoder=logic.encoder)
        if not len(index):
            reason = f"none of its {len(report.broken)} picture files can be used; the first is {report.broken[0]}"
            raise ImageError(folder, reason)
        comparisons = [
            Comparison(
                encoded=logic.encode(query),
                logical=logic.rank(query, index, limit=max(shown, IN_REPORT)),
                plain=plain.rank(query, index, limit=max(shown, 12)),
            )
            for query in queries or QUERIES
        ]
        if not as_json:
            click.echo(f"{len(index)} photographs, ranked twice: by plain similarity, and by logic.")
        for comparison in comparisons:
            _print(comparison, shown, as_json)
        with naming(html):
            write_report(html, comparisons, title=f"{len(index)} photographs, searched by logic")
    print_left_out(report.broken)
    again = "lcse serve" if photos is None else f"lcse serve {printable(photos)}"
    click.echo(f"\nSee it:   open {printable(html)} in a browser", err=as_json)
    click.echo(f"Play:     {again}", err=as_json)


def _print(comparison: Comparison, shown: int, as_json: bool) -> None:
    logical, plain = comparison.logical[:shown], comparison.plain[:shown]
    if as_json:
        print_json({**logical.to_json(), "plain": [result.id for result in plain]})
        return
    click.secho(f"\n“{printable(logical.parse.text)}”", bold=True)
    names = [printable(result.id) for result in plain]
    left = max([len("plain similarity"), *map(len, names)])
    right = max([len("with logic"), *(len(printable(result.id)) for result in logical)])
    click.secho(f"  {'plain similarity':<{left}}   {'with logic':<{right}}   why", dim=True)
    for before, name, after in zip(plain, names, logical, strict=False):
        wrong = click.style(f"{name:<{left}}", fg=None if before.satisfies else "red")
        mark = " " if before.satisfies else click.style("✗", fg="red")
        found = click.style(f"{printable(after.id):<{right}}", dim=not after.satisfies)
        click.echo(f"{mark} {wrong}   {found}   {reason_in_colour(after)}")
    click.secho(f"  {logical.summary}", dim=True)
    print_notes(logical.parse)
