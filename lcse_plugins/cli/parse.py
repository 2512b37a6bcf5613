"""`lcse parse`: how a query is read."""

from __future__ import annotations

import click

from lcse_plugins.cli.options import QueryCommand, json_option, print_json, printable
from lcse_plugins.parsing.grammar import parse as grammar
from lcse_plugins.query import canonical, draw


@click.command(cls=QueryCommand, epilog="Example: lcse parse 'an umbrella and no person, or a raincoat'")
@click.argument("query")
@json_option
def parse(query: str, as_json: bool) -> None:
    """Show the tree of QUERY, whether the reading is sure, and what a person should know about it."""
    reading = grammar.read(query)
    if as_json:
        print_json(reading.to_json())
        return
    click.echo("\n".join(map(printable, draw(canonical(reading.query)).split("\n"))))
    if not reading.constrained:
        click.secho(f"{'no logic in it: ' if reading.sure else ''}ranked by plain similarity", dim=True)
    for note in reading.notes:
        click.secho(f"note: {printable(note)}", fg="yellow")
