"""What the commands share: options, what they build, and how things are printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, get_args
from unicodedata import category

import click

from lcse_plugins.errors import InvalidOption, QueryError
from lcse_plugins.scoring.config import DEFAULT_CONFIG, Mode

if TYPE_CHECKING:
    from lcse_plugins.encoders import Encoder
    from lcse_plugins.errors import ImageError
    from lcse_plugins.parsing.result import Parse
    from lcse_plugins.scorer import LogicScorer

__all__ = [
    "QueryCommand",
    "encoder_option",
    "file_to_write",
    "json_option",
    "load",
    "make_scorer",
    "naming",
    "print_each",
    "print_json",
    "print_left_out",
    "print_notes",
    "printable",
    "progress_bar",
    "query_lines",
    "scoring_options",
]

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, one value a line.")
encoder_option = click.option(
    "--encoder", default="starter", show_default=True, metavar="NAME", help="Encoder; `lcse encoders` lists them."
)


def scoring_options(command: F) -> F:
    """`--mode`, `--calibration` and `--encoder`."""
    modes = click.Choice(get_args(Mode))
    for option in (
        encoder_option,
        click.option("--calibration", type=click.Path(path_type=Path), metavar="FILE", help="From `lcse calibrate`."),
        click.option("--mode", type=modes, default=DEFAULT_CONFIG.mode, show_default=True, help="How scores are made."),
    ):
        command = option(command)
    return command


def load(name: str) -> Encoder:
    """The encoder of that name."""
    from lcse_plugins.encoders.registry import load_encoder

    return load_encoder(name)


def make_scorer(encoder: str, mode: Mode, calibration: Path | None) -> LogicScorer:
    """The scorer that the shared options describe."""
    from lcse_plugins.scorer import LogicScorer

    return LogicScorer(load(encoder), calibration=calibration, mode=mode)


class QueryCommand(click.Command):
    """A command that takes a query: says how to give one that begins with a dash, or has several words."""

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


def file_to_write(*names: str, **options: Any) -> Callable[[F], F]:
    """An option for a file; one in a folder that is not there is refused now, not after the work."""

    def check(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
        if path is not None and not path.parent.is_dir():
            raise InvalidOption(f"cannot write {path}: there is no folder {path.parent}")
        return path

    kind = click.Path(path_type=Path, dir_okay=False, writable=True)
    return click.option(*names, type=kind, callback=check, **options)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An error of the system names the file that was to be written; that of a full disk by itself does not."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def query_lines(stream: TextIO) -> Iterator[str]:
    """The queries of a file, one a line.

    Raises:
        QueryError: the file is not text.
    """
    try:
        for line in stream:
            if line.strip():
                yield line.strip()
    except UnicodeDecodeError as error:
        raise QueryError(f"{stream.name} is not UTF-8 text; save it as UTF-8, one query a line") from error


def print_each(queries: Iterable[str], answer: Callable[[str], dict[str, Any]]) -> None:
    """Print the answer to each query as a line of JSON; for a query that cannot be read, the reason.

    Raises:
        QueryError: some could not be read.
    """
    failed = 0
    for text in queries:
        try:
            print_json(answer(text))
        except QueryError as error:
            print_json({"query": text, "error": str(error)})
            failed += 1
    if failed:
        raise QueryError(f"{failed} of the queries cannot be read; their lines say why")


def print_json(value: object) -> None:
    """Print a value as a line of JSON, with escapes if the output lacks one of its letters."""
    line = json.dumps(value, ensure_ascii=False)
    try:
        line.encode(getattr(sys.stdout, "encoding", None) or "utf-8")  # there may be no output at all
    except UnicodeEncodeError:
        line = json.dumps(value)
    click.echo(line)


def printable(name: object) -> str:
    """A name as text in which whatever could steer the terminal is escaped; spaces of any kind stay."""
    return "".join(
        letter if letter.isprintable() or category(letter) == "Zs" else letter.encode("unicode_escape").decode()
        for letter in str(name)
    )


def print_notes(parse: Parse) -> None:
    """Print what a person should know about how the query was read, on standard error."""
    for note in (*parse.notes, *filter(None, [parse.error])):
        click.secho(f"note: {printable(note)}", fg="yellow", err=True)


def print_left_out(errors: Iterable[ImageError]) -> None:
    """Print what could not be used and why, on standard error."""
    for error in errors:
        click.secho(f"left out {printable(error)}", fg="yellow", err=True)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error while something long goes on; nothing where that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
