"""`lcse index`, `lcse search`, `lcse explain`: folders of pictures, ranked by a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lcse_plugins.cli.answers import arithmetic, count_satisfying, summary_of
from lcse_plugins.cli.options import (
    QueryCommand,
    build,
    encoder_option,
    file_to_write,
    json_option,
    load,
    make_scorer,
    open_pictures,
    pictures,
    print_json,
    print_notes,
    print_report,
    printable,
    reason_in_colour,
    scoring_options,
)
from lcse_plugins.cli.page.report import Comparison, write_report
from lcse_plugins.query import canonical, draw
from lcse_plugins.retrieval.sources import rank_pool
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.results import Ranking


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
    report = build(folders, out, load(encoder), tiles=tiles)
    counts = {name: getattr(report, name) for name in ("added", "updated", "removed", "unchanged", "repaired")}
    if as_json:
        broken = [{"path": str(error.source), "reason": error.reason} for error in report.broken]
        print_json({"index": str(report.path), **counts, "broken": broken, "passed_over": dict(report.passed_over)})
        return
    said = [f"{count} {name}" for name, count in counts.items() if count]
    if report.broken:
        said.append(f"{len(report.broken)} left out")
    click.echo(f"{printable(report.path)}: {', '.join(said)}")
    print_report(report)


@click.command(
    cls=QueryCommand, epilog="Example: lcse search ~/Pictures 'a kitchen but no microwave' -k 5 --html kitchen.html"
)
@click.argument("folders", metavar="FOLDER...", nargs=-1, type=click.Path(path_type=Path))
@click.argument("query")
@click.option("-k", "limit", type=click.IntRange(1), help="How many pictures; by default 10, with --paths all.")
@click.option("--min-truth", type=click.FloatRange(0, 1), help="Leave out pictures that satisfy the query less.")
@click.option("--since", metavar="DATE", help="Only pictures taken from then on, such as 2024 or 2024-05-01.")
@click.option("--until", metavar="DATE", help="Only pictures taken up to then.")
@click.option("--paths", is_flag=True, help="Print only the paths of what satisfies the query, one a line.")
@file_to_write("--html", metavar="FILE", help="Write the page with this answer inside.")
@scoring_options
@json_option
def search(
    folders: tuple[Path, ...],
    query: str,
    limit: int | None,
    min_truth: float | None,
    since: str | None,
    until: str | None,
    paths: bool,
    html: Path | None,
    as_json: bool,
    **scoring: Any,
) -> None:
    """Rank the pictures in each FOLDER by QUERY: plain English, or AND, OR, NOT, parentheses and "quotes".

    A FOLDER holds pictures, which are indexed first if need be, or is an index that `lcse index` made. A picture's date
    is its camera's or, where that says nothing, its file's.
    """
    _check_order(folders, query)
    scorer = make_scorer(**scoring)
    encoded = scorer.encode(query)  # refused before pictures are indexed for it
    found = open_pictures(folders, scorer.encoder).between(since, until)
    limit = limit or (None if paths else 10)
    ranking = rank_pool(encoded, found, limit=limit, min_truth=min_truth)
    satisfying = count_satisfying(encoded, found, min_truth)
    if as_json:
        print_json(_as_json(ranking))
    elif paths:
        for result in ranking:
            if result.satisfies:
                click.echo(str(result.candidate.payload))
    elif not len(found):
        click.echo("There are no pictures of that time.")
    else:
        click.secho(f"{printable(query)}  ({pictures(len(found))})", bold=True)
        _show(ranking, summary_of(ranking, satisfying))
        print_notes(*ranking.parse.notes, ranking.parse.error)
    if html is not None:
        plain = LogicScorer.of(scorer, mode="holistic").rank(query, found, limit=limit)
        compared = Comparison(encoded, ranking, plain, satisfying)
        missing = write_report(html, [compared], title=pictures(len(found)))
        click.echo(f"wrote {printable(html)}", err=True)
        if missing:
            print_notes(f"{pictures(missing)} could not be shown; if their folder moved, index it anew")


def _check_order(folders: tuple[Path, ...], query: str) -> None:
    """Say what was mistaken: the query left out or before the folder, or its quotes forgotten."""
    missing = next((folder for folder in folders if not folder.exists()), None)
    if not folders:
        raise click.UsageError("give a FOLDER, then a QUERY")
    if missing and Path(query).is_dir():
        raise click.UsageError("FOLDER comes first, then QUERY")
    if missing and len(folders) > 1:
        raise click.UsageError(f"there is no folder {printable(missing)}; if it is part of the query, use quotes")


def _as_json(ranking: Ranking) -> dict[str, Any]:
    answer = ranking.to_json()
    for entry, result in zip(answer["results"], ranking, strict=True):
        entry["path"] = str(result.candidate.payload)
    return answer


def _show(ranking: Ranking, summary: str) -> None:
    """Print a ranking: what satisfies the query, then the nearest; the path alone in the last column."""
    width = max((len(printable(result.reason)) for result in ranking), default=0)
    lines = [
        f"  {reason_in_colour(result)}{' ' * (width - len(printable(result.reason)))}  "
        f"{printable(result.candidate.payload)}"
        for result in ranking
    ]
    held = [line for line, result in zip(lines, ranking, strict=True) if result.satisfies]
    nearest = [line for line, result in zip(lines, ranking, strict=True) if not result.satisfies]
    if not ranking:
        summary = "No picture satisfies the query far enough; lower --min-truth."
    for line in (*held, click.style(summary, fg="green" if held else "yellow"), *nearest):
        click.echo(line)


@click.command(cls=QueryCommand, epilog="Example: lcse explain ~/Pictures 'a cup and no cat' kitchen/cup.jpg")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("query")
@click.argument("image")
@scoring_options
@json_option
def explain(folder: Path, query: str, image: str, as_json: bool, **scoring: Any) -> None:
    """Show how IMAGE, a picture in FOLDER or in an index, gets its score under QUERY."""
    scorer = make_scorer(**scoring)
    encoded = scorer.encode(query)
    found = open_pictures([folder], scorer.encoder)
    ranking = rank_pool(encoded, found.part([found.position(image)]))
    if as_json:
        print_json(_as_json(ranking))
        return
    click.secho(printable(ranking[0].candidate.payload), bold=True)
    click.echo(reason_in_colour(ranking[0]))
    click.echo(f"\n{draw(canonical(encoded.parse.query))}\n")
    click.echo("\n".join(arithmetic(encoded, ranking[0])))
    print_notes(*ranking.parse.notes, ranking.parse.error)
