"""The command `lcse`: index a folder of pictures, search it by logic, and see why.

Each command lives in a module of `lcse_plugins.cli` that is imported when it is called, so that starting is fast.
Exit codes: 0 done, 1 something could not be done (the message says what to do), 2 the command was not understood.
"""

from __future__ import annotations

import io
import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn

import click

from lcse_plugins import __version__
from lcse_plugins.cli.options import printable
from lcse_plugins.errors import LcseError

COMMANDS = {
    "demo": ("lcse_plugins.cli.demo:demo", "Try it on the photographs that come with it."),
    "serve": ("lcse_plugins.cli.serve:serve", "Open a page to search a folder with, on this machine only."),
    "search": ("lcse_plugins.cli.search:search", "Rank the pictures of a folder by a query."),
    "index": ("lcse_plugins.cli.search:index", "Encode a folder of pictures, or bring its index up to date."),
    "explain": ("lcse_plugins.cli.search:explain", "Show the arithmetic of one picture's score."),
    "parse": ("lcse_plugins.cli.parse:parse", "Show how a query is read."),
    "calibrate": ("lcse_plugins.cli.encoders:calibrate", "Fit a calibration for an encoder on labelled pictures."),
    "encoders": ("lcse_plugins.cli.encoders:encoders", "List the encoders."),
    "bench": ("lcse_plugins.bench.cli:bench", "Measure an encoder with this method on your own pictures."),
}
"""Name of a command → where it is, and what it does."""


class _Commands(click.Group):
    """Lists its commands from the table and imports one when it is called; guesses one that is misspelt."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1, cutoff=0.5)
            guess = f"did you mean `lcse {near[0]}`?" if near else "`lcse --help` lists them all."
            raise click.UsageError(f"there is no command {printable(args[0])!r}; {guess}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(
    cls=_Commands,
    epilog="Example: lcse search ~/Pictures 'a street but no cars'",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="lcse")
def cli() -> None:
    """Image search that obeys and, or, not.

    Shell completion: eval "$(_LCSE_COMPLETE=bash_source lcse)", likewise for zsh and fish.
    """


def main() -> None:
    """Run the command line; errors of this package and of the system become one message and exit code 1."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # letters it lacks come out as "?"; standard error escapes them
        sys.stdout.reconfigure(errors="replace")
    try:
        cli(prog_name="lcse", color=_colour())
    except LcseError as error:
        _fail(str(error))
    except OSError as error:
        reason = error.strerror or str(error)
        _fail(f"{error.filename}: {reason}" if error.filename else reason)


def _fail(message: str) -> NoReturn:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True, color=_colour())
    click.echo("\n".join(map(printable, message.split("\n"))), err=True)
    sys.exit(1)


def _colour() -> bool | None:
    """No colour where NO_COLOR asks for none; else as the output allows."""
    return False if os.environ.get("NO_COLOR") else None
