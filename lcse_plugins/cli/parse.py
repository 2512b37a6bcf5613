"""`lcse parse`: how a query is read."""

from __future__ import annotations

from typing import TextIO

import click

from lcse_plugins.cli.options import QueryCommand, json_option, print_each, print_json, printable, query_lines
from lcse_plugins.parsing.grammar import parse as grammar
from lcse_plugins.query import canonical, draw

__all__ = ["parse"]


@click.command(cls=QueryCommand, epilog="Example: lcse parse 'an umbrella and no person, or a raincoat'")
@click.argument("query", required=False)
@click.option(
    "--file", "-f", "stream", type=click.File(encoding="utf-8-sig"), help="One query a line; - for standard input."
)
@json_option
def parse(query: str | None, stream: TextIO | None, as_json: bool) -> None:
    """Show the tree of QUERY, whether the reading is sure, and what a person should know about it."""
    if (query is None) == (stream is None):
        raise click.UsageError("give one QUERY, or --file with one query a line")
    if stream is not None:
        print_each(query_lines(stream), lambda text: grammar.read(text).to_json())
        return
    reading = grammar.read(query or "")
    if as_json:
        print_json(reading.to_json())
        return
    click.echo(printable_lines(draw(canonical(reading.query))))
    if not reading.constrained:
        click.secho("no logic in it: ranked by plain similarity", dim=True)
    for note in reading.notes:
        click.secho(f"note: {printable(note)}", fg="yellow")
    if not reading.sure:
        click.secho("not sure of this reading", fg="yellow")


def printable_lines(text: str) -> str:
    """A drawing with whatever could steer the terminal escaped, line by line."""
    return "\n".join(map(printable, text.split("\n")))
