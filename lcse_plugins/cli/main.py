"""The command `lcse`: index a folder of pictures, search it by logic, and see why.

Each command lives in a module of `lcse_plugins.cli` that is imported when it is called, so that starting is fast.
Exit codes: 0 done, 1 something could not be done (the message says what to do), 2 the command was not understood.
"""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

import click

from lcse_plugins import __version__
from lcse_plugins.cli.lazy_group import LazyGroup
from lcse_plugins.cli.messages import printable
from lcse_plugins.errors import LcseError

__all__ = ["cli", "main"]

COMMANDS = {
    "demo": ("lcse_plugins.cli.demo:demo", "Show it on real photographs, with no set-up."),
    "index": ("lcse_plugins.cli.index:index", "Encode a folder of pictures, or bring its index up to date."),
    "search": ("lcse_plugins.cli.search:search", "Rank the pictures of an index by a query."),
    "explain": ("lcse_plugins.cli.explain:explain", "Show the arithmetic of one picture's score."),
    "parse": ("lcse_plugins.cli.parse:parse", "Show how a query is read."),
    "calibrate": ("lcse_plugins.cli.calibrate:calibrate", "Fit μ and β for an encoder on labelled pictures."),
    "encoders": ("lcse_plugins.cli.encoders:encoders", "List the encoders."),
    "bench": ("lcse_plugins.bench.cli:bench", "Measure quality and speed."),
}


@click.command(
    cls=LazyGroup,
    table=COMMANDS,
    epilog="Example: lcse index photos --out photos.lcse && lcse search photos.lcse 'a street but no cars'",
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
        cli(standalone_mode=True, color=_colour())
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
