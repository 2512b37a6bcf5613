"""`lcse search`: the pictures of an index, ranked by a query."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from lcse_plugins.cli.messages import print_notes, printable
from lcse_plugins.cli.options import (
    file_to_write,
    json_option,
    make_scorer,
    naming,
    print_each,
    print_json,
    query_lines,
    scoring_options,
)
from lcse_plugins.cli.query_command import QueryCommand, check_order

if TYPE_CHECKING:
    from lcse_plugins.index import ImageIndex
    from lcse_plugins.scorer import LogicScorer
    from lcse_plugins.scoring.results import Ranking

__all__ = ["search", "show_ranking"]


@click.command(
    cls=QueryCommand,
    epilog="Example: lcse search pictures.lcse 'a kitchen but no microwave' -k 5 --html kitchen.html",
)
@click.argument("index_path", metavar="INDEX", type=click.Path(path_type=Path))
@click.argument("query", required=False)
@click.option("-k", "limit", type=click.IntRange(1), default=10, show_default=True, help="How many pictures.")
@click.option(
    "--queries", type=click.File(encoding="utf-8-sig"), metavar="FILE", help="One query a line; prints JSON lines."
)
@click.option("--min-truth", type=click.FloatRange(0, 1), help="Leave out pictures for which the query holds less.")
@file_to_write("--html", metavar="FILE", help="Write a picture report.")
@scoring_options
@json_option
def search(
    index_path: Path,
    query: str | None,
    limit: int,
    queries: TextIO | None,
    min_truth: float | None,
    html: Path | None,
    as_json: bool,
    **scoring: Any,
) -> None:
    """Rank the pictures of INDEX by QUERY: plain English, or AND, OR, NOT, parentheses and "quotes"."""
    from lcse_plugins.index import ImageIndex

    if (query is None) == (queries is None):
        raise click.UsageError("give one QUERY, or --queries with one query a line")
    if html is not None and query is None:
        raise click.UsageError("--html goes with one QUERY")
    check_order(index_path, query)
    texts = [] if queries is None else [line.strip() for line in query_lines(queries)]
    scorer = make_scorer(**scoring)
    index = ImageIndex.open(index_path, encoder=scorer.encoder)

    def found(text: str) -> Ranking:
        return scorer.search(text, index, limit=limit, min_truth=min_truth)

    if query is None:
        print_each(texts, lambda text: _as_json(found(text)))
        return
    ranking = found(query)
    if as_json:
        print_json(_as_json(ranking))
    elif len(index):
        show_ranking(ranking)
    else:
        click.echo(f"the index {index_path} holds no picture that can be used; `lcse index` says why")
    if html is not None:
        _write_report(html, ranking, scorer, index, limit)


def _as_json(ranking: Ranking) -> dict[str, Any]:
    report = ranking.to_json()
    for entry, result in zip(report["results"], ranking, strict=True):
        entry["path"] = str(result.candidate.payload)
    return report


def show_ranking(ranking: Ranking) -> None:
    """Print a ranking, aligned: place, picture, score and the reason."""
    names = [printable(result.id) for result in ranking]
    width = max(map(len, names), default=0)
    for place, (name, result) in enumerate(zip(names, ranking, strict=True), start=1):
        reasons = "  ".join(
            click.style(f"{item.label} {item.probability:.2f}", fg="green" if item.fits else "red")
            for item in result.evidence
        )
        sign = "+" if result.correction >= 0 else "-"
        click.echo(
            f"{place:>3}  {name:<{width}}  {result.score:7.3f} = {result.holistic:6.3f} {sign} "
            f"{abs(result.correction):.3f}  truth {result.truth:.2f}  {reasons}"
        )
    if not ranking:
        click.echo("no picture satisfies the query far enough; lower --min-truth")
    print_notes(ranking.parse)


def _write_report(html: Path, ranking: Ranking, scorer: LogicScorer, index: ImageIndex, limit: int) -> None:
    from lcse_plugins.cli.report import Comparison, write_report
    from lcse_plugins.scorer import LogicScorer
    from lcse_plugins.scoring.config import ScoringConfig

    plain = LogicScorer(scorer.encoder, calibration=scorer.calibration, config=ScoringConfig(mode="holistic"))
    before = plain.search(ranking.parse.text, index, limit=limit)
    with naming(html):
        write_report(html, [Comparison(plain=before, logical=ranking, shown=limit)])
    click.echo(f"wrote {html}", err=True)
    pictures = {result.candidate.payload for result in (*before, *ranking)}
    missing = sum(not picture.is_file() for picture in pictures)
    if missing:
        advice = f"if their folder moved, `lcse index NEWFOLDER --out {shlex.quote(str(index.path))}` mends it"
        warning = f"{missing} of {len(pictures)} pictures are not there and could not be shown; {advice}"
        click.secho(f"note: {printable(warning)}", fg="yellow", err=True)
