"""`lcse parse`: how a query is read."""

from __future__ import annotations

from typing import TextIO

import click

from lcse_plugins.cli.options import json_option, print_each, print_json, query_lines
from lcse_plugins.cli.query_command import QueryCommand
from lcse_plugins.parsing.grammar import parse as grammar
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import canonical, draw

__all__ = ["parse"]


@click.command(cls=QueryCommand, epilog="Example: lcse parse 'an umbrella and no person, or a raincoat'")
@click.argument("query", required=False)
@click.option(
    "--file", "-f", "stream", type=click.File(encoding="utf-8-sig"), help="One query a line; - for standard input."
)
@json_option
def parse(query: str | None, stream: TextIO | None, as_json: bool) -> None:
    """Show the tree of QUERY, and what a person should know about how it was read."""
    if (query is None) == (stream is None):
        raise click.UsageError("give one QUERY, or --file with one query a line")
    if stream is not None:
        print_each(query_lines(stream), lambda text: grammar.read(text).to_json())
    elif as_json:
        print_json(grammar.read(query or "").to_json())
    else:
        _show(grammar.read(query or ""))


def _show(reading: Parse) -> None:
    click.echo(draw(canonical(reading.query)))
    if not reading.constrained:
        click.secho("no logic in it: ranked by plain similarity", dim=True)
    for note in reading.notes:
        click.secho(f"note: {note}", fg="yellow")
