"""`lcse demo`: the main job on photographs that come with the package, with no set-up."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from lcse_plugins.cli.answers import count_satisfying, summary_of
from lcse_plugins.cli.options import file_to_write, open_pictures, print_notes, printable, reason_in_colour
from lcse_plugins.cli.page.report import Comparison, write_report
from lcse_plugins.images.gallery import demo_photos
from lcse_plugins.scorer import LogicScorer

QUERIES = (
    "a dog and no person",
    "a person and no dog",
    "either a dog or a cat, but no people",
    "a horse and no person",
    "a helicopter and no people",
)
PRINTED, IN_PAGE = 5, 24


@click.command(epilog="Example: lcse demo --photos ~/Pictures -q 'a beach without people' --html beach.html")
@click.option("--photos", type=click.Path(path_type=Path), help="A folder of your own; by default the bundled one.")
@click.option("--query", "-q", "queries", multiple=True, help="A query; may be given several times.")
@file_to_write("--html", default="lcse-demo.html", show_default=True, help="Where the page goes.")
def demo(photos: Path | None, queries: tuple[str, ...], html: Path) -> None:
    """Rank photographs by plain similarity and by logic, side by side, and write the page as one HTML file."""
    logic = LogicScorer("starter")
    plain = LogicScorer.of(logic, mode="holistic")
    pictures = open_pictures([photos or demo_photos()[0].parent], logic.encoder)
    comparisons = []
    click.echo(f"{len(pictures):,} photographs, ranked twice. ✗ marks what does not satisfy the query.")
    for query in queries or QUERIES:
        encoded = logic.encode(query)
        comparison = Comparison(
            encoded=encoded,
            logical=logic.rank(query, pictures, limit=IN_PAGE),
            plain=plain.rank(query, pictures, limit=IN_PAGE // 2),
            satisfying=count_satisfying(encoded, pictures),
        )
        comparisons.append(comparison)
        _print(comparison)
        click.secho(f"  {summary_of(comparison.logical[:PRINTED], comparison.satisfying)}", dim=True)
        print_notes(*encoded.parse.notes)
    write_report(html, comparisons, title=f"{len(pictures):,} photographs, searched by logic")
    click.echo(f"\nSee it:   open {printable(html)} in a browser")
    called = sys.argv[0] if Path(sys.argv[0]).name == "lcse" and shutil.which("lcse") is None else "lcse"
    click.echo(f"Play:     {called} serve{'' if photos is None else f' {printable(photos)}'}")


def _print(comparison: Comparison) -> None:
    """Print the first results of both rankings beside each other."""
    logical, plain = comparison.logical[:PRINTED], comparison.plain[:PRINTED]
    left, right = (
        max([len(title), *(len(printable(result.id)) for result in ranking)])
        for title, ranking in (("plain similarity", plain), ("with logic", logical))
    )
    click.secho(f"\n“{printable(comparison.encoded.parse.text)}”", bold=True)
    click.secho(f"  {'plain similarity':<{left}}     {'with logic':<{right}}   why", dim=True)
    for before, after in zip(plain, logical, strict=True):
        columns = [
            click.style(f"{' ' if result.satisfies else '✗'} {printable(result.id):<{width}}", dim=not result.satisfies)
            for result, width in ((before, left), (after, right))
        ]
        click.echo("   ".join([*columns, reason_in_colour(after)]))
