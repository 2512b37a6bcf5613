"""A command whose argument is a query, which may look like an option."""

from __future__ import annotations

import click

__all__ = ["QueryCommand"]


class QueryCommand(click.Command):
    """Says how to give a query that begins with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; of a short option that does not exist, say that it may be meant as a query."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name.startswith("--"):
                raise
            message = f"{error.message.rstrip('.')}; a query that begins with a dash goes last, after --"
            raise click.NoSuchOption(error.option_name, message, ctx=ctx) from None
