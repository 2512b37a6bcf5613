"""`lcse explain`: the arithmetic of one score, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lcse_plugins.cli.folders import open_pictures
from lcse_plugins.cli.options import (
    QueryCommand,
    json_option,
    make_scorer,
    print_json,
    print_notes,
    printable,
    scoring_options,
)
from lcse_plugins.cli.search import reason_in_colour

__all__ = ["explain"]


@click.command(cls=QueryCommand, epilog="Example: lcse explain ~/Pictures 'a cup and no cat' kitchen/cup.jpg")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("query")
@click.argument("image")
@scoring_options
@json_option
def explain(folder: Path, query: str, image: str, as_json: bool, **scoring: Any) -> None:
    """Show how IMAGE, a picture in FOLDER or in an index, gets its score under QUERY."""
    from lcse_plugins.cli.arithmetic import arithmetic
    from lcse_plugins.query import canonical, draw
    from lcse_plugins.retrieval.sources import rank_pool

    scorer = make_scorer(**scoring)
    encoded = scorer.encode(query)
    index = open_pictures(folder, scorer.encoder)
    ranking = rank_pool(encoded, index.part([index.position(image)]))
    if as_json:
        print_json(ranking.to_json())
        return
    result = ranking[0]
    click.secho(printable(result.candidate.payload), bold=True)
    click.echo(reason_in_colour(result))
    click.echo(f"\n{draw(canonical(encoded.parse.query))}\n")
    click.echo("\n".join(arithmetic(encoded, result)))
    print_notes(ranking.parse)
