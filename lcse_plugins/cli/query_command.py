"""A command whose argument is a query, which may look like an option, or like several arguments."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["QueryCommand", "check_order"]


class QueryCommand(click.Command):
    """Says how to give a query that begins with a dash, or has several words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; of what cannot be understood, say how it is given if it is meant as a query."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name.startswith("--"):
                raise
            message = f"{error.message.rstrip('.')}; a query that begins with a dash goes last, after --"
            raise click.NoSuchOption(error.option_name, message, ctx=ctx) from None
        except click.UsageError as error:
            if type(error) is not click.UsageError:  # which is of arguments that are left over
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}; put the query in quotes", ctx=ctx) from None


def check_order(index_path: Path, *others: str | None) -> None:
    """Refuse another argument in the place of the index."""
    if not _is_index(index_path) and any(map(_is_index, filter(None, others))):
        raise click.UsageError("INDEX comes first, then QUERY")


def _is_index(path: str | Path) -> bool:
    from lcse_plugins.index.files import TABLE_FILE

    try:
        return Path(path, TABLE_FILE).is_file()
    except (OSError, ValueError):  # a query is seldom a path
        return False
