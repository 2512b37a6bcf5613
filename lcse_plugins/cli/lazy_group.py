"""A group of commands that imports a command when it is called, so that starting is fast."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

__all__ = ["LazyGroup"]


class LazyGroup(click.Group):
    """Lists its commands from a table and imports one when it is called.

    Args:
        table: Name of a command → where it is (`module:name`), and what it does.
        options: Arguments of `click.Group`.
    """

    def __init__(self, *, table: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(**options)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in self._table:
            return None
        module, _, name = self._table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help text, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])
