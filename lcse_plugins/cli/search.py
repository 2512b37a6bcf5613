"""`lcse search`: the pictures of a folder, ranked by a query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from lcse_plugins.cli.folders import open_pictures
from lcse_plugins.cli.options import (
    QueryCommand,
    file_to_write,
    json_option,
    make_scorer,
    naming,
    print_each,
    print_json,
    print_notes,
    printable,
    query_lines,
    scoring_options,
)

if TYPE_CHECKING:
    from lcse_plugins.index import ImageIndex
    from lcse_plugins.scorer import LogicScorer
    from lcse_plugins.scoring.results import Ranked, Ranking

__all__ = ["reason_in_colour", "search"]


@click.command(
    cls=QueryCommand, epilog="Example: lcse search ~/Pictures 'a kitchen but no microwave' -k 5 --html kitchen.html"
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("query", required=False)
@click.option("-k", "limit", type=click.IntRange(1), default=10, show_default=True, help="How many pictures.")
@click.option("--queries", type=click.File(encoding="utf-8-sig"), metavar="FILE", help="One query a line; prints JSON.")
@click.option("--min-truth", type=click.FloatRange(0, 1), help="Leave out pictures for which the query holds less.")
@click.option("--since", metavar="DATE", help="Only pictures taken from then on, such as 2024 or 2024-05-01.")
@click.option("--until", metavar="DATE", help="Only pictures taken up to then.")
@click.option("--paths", is_flag=True, help="Print the paths of what satisfies the query, one a line, to be piped.")
@click.option("--out", type=click.Path(path_type=Path), help="Where the index goes; by default a cache folder.")
@file_to_write("--html", metavar="FILE", help="Write the page with this answer inside.")
@scoring_options
@json_option
def search(
    folder: Path,
    query: str | None,
    limit: int,
    queries: TextIO | None,
    min_truth: float | None,
    since: str | None,
    until: str | None,
    paths: bool,
    out: Path | None,
    html: Path | None,
    as_json: bool,
    **scoring: Any,
) -> None:
    """Rank the pictures in FOLDER by QUERY: plain English, or AND, OR, NOT, parentheses and "quotes".

    FOLDER holds pictures, which are indexed first if need be, or is an index that `lcse index` made.
    """
    from lcse_plugins.index import is_index

    if (query is None) == (queries is None):
        raise click.UsageError("give one QUERY, or --queries with one query a line")
    if query is None and (html is not None or paths):
        raise click.UsageError("--html and --paths go with one QUERY")
    if query and not folder.exists() and (is_index(query) or Path(query).is_dir()):
        raise click.UsageError("FOLDER comes first, then QUERY")
    texts = [] if queries is None else list(query_lines(queries))
    scorer = make_scorer(**scoring)
    if query is not None:
        scorer.read(query)  # refused before pictures are indexed for it
    index = open_pictures(folder, scorer.encoder, out=out).between(since, until)

    def found(text: str) -> Ranking:
        return scorer.rank(text, index, limit=limit, min_truth=min_truth)

    if query is None:
        print_each(texts, lambda text: _as_json(found(text)))
        return
    ranking = found(query)
    if as_json:
        print_json(_as_json(ranking))
    elif paths:
        for result in ranking:
            if result.satisfies:
                click.echo(str(result.candidate.payload))
    elif not len(index):
        click.echo("there are no pictures of that time" if since or until else "the index holds no pictures")
    else:
        _show(ranking, len(index))
        print_notes(ranking.parse)
    if html is not None:
        _write_report(html, ranking, scorer, index, limit)


def _as_json(ranking: Ranking) -> dict[str, Any]:
    report = ranking.to_json()
    for entry, result in zip(report["results"], ranking, strict=True):
        entry["path"] = str(result.candidate.payload)
    return report


def _show(ranking: Ranking, pictures: int) -> None:
    """Print a ranking: what satisfies the query, then the nearest; the path alone in the last column."""
    click.secho(f"{printable(ranking.parse.text)}  ({pictures} pictures)", bold=True)
    width = max((len(result.reason) for result in ranking), default=0)
    held = [result for result in ranking if result.satisfies]
    for result in held:
        _show_one(result, width)
    if ranking:
        click.secho(ranking.summary, fg="green" if held else "yellow")
    else:
        click.secho("No picture satisfies the query far enough; lower --min-truth.", fg="yellow")
    for result in ranking:
        if not result.satisfies:
            _show_one(result, width)


def _show_one(result: Ranked, width: int) -> None:
    padding = " " * (width - len(result.reason))
    click.echo(f"  {reason_in_colour(result)}{padding}  {printable(result.candidate.payload)}")


def reason_in_colour(result: Ranked) -> str:
    """`dog: clear · person: likely`, with what speaks against a picture that does not satisfy the query in red."""
    return " · ".join(
        click.style(item.seen, fg=None if item.fits or result.satisfies else "red") for item in result.evidence
    )


def _write_report(html: Path, ranking: Ranking, scorer: LogicScorer, index: ImageIndex, limit: int) -> None:
    from lcse_plugins.cli.page.report import Comparison, write_report
    from lcse_plugins.scorer import LogicScorer

    query = ranking.parse.text
    plain = LogicScorer.of(scorer, mode="holistic").rank(query, index, limit=limit)
    with naming(html):
        missing = write_report(html, [Comparison(encoded=scorer.encode(query), logical=ranking, plain=plain)])
    click.echo(f"wrote {printable(html)}", err=True)
    if missing:
        warning = f"{missing} pictures could not be shown; if their folder moved, index it anew"
        click.secho(f"note: {warning}", fg="yellow", err=True)
