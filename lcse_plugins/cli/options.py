"""Options that several commands share, and what they build."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, get_args

import click

from lcse_plugins.errors import InvalidOption, QueryError
from lcse_plugins.scoring.config import DEFAULT_CONFIG, Aggregator, HolisticText, Mode, ScoringConfig

if TYPE_CHECKING:
    from lcse_plugins.encoders import Encoder
    from lcse_plugins.scorer import LogicScorer

__all__ = [
    "check_folder",
    "encoder_option",
    "file_to_write",
    "json_option",
    "load",
    "make_scorer",
    "print_each",
    "print_json",
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
    """`--mode`, `--holistic`, `--aggregator`, `--calibration` and `--encoder`."""
    for option in (
        encoder_option,
        click.option("--calibration", type=click.Path(path_type=Path), metavar="FILE", help="μ and β, as JSON."),
        click.option(
            "--aggregator",
            type=click.Choice(get_args(Aggregator)),
            default=DEFAULT_CONFIG.aggregator,
            show_default=True,
            help="How concepts combine.",
        ),
        click.option(
            "--holistic",
            type=click.Choice(get_args(HolisticText)),
            default=DEFAULT_CONFIG.holistic,
            show_default=True,
            help="Which text gives the plain similarity.",
        ),
        click.option(
            "--mode",
            type=click.Choice(get_args(Mode)),
            default=DEFAULT_CONFIG.mode,
            show_default=True,
            help="How the score is made.",
        ),
    ):
        command = option(command)
    return command


def file_to_write(*names: str, refusal: type[Exception] = InvalidOption, **options: Any) -> Callable[[F], F]:
    """An option for a file; one that could not be written is refused now, not after the work."""

    def check(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
        if path is not None and not path.exists():
            check_folder(path.parent, refusal)
        return path

    kind = click.Path(path_type=Path, dir_okay=False, writable=True)
    return click.option(*names, type=kind, callback=check, **options)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An error of the system names the file that was to be written; that of a full disk by itself does not."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def check_folder(folder: Path, refusal: type[Exception]) -> None:
    """Refuse a folder that is missing, or that one may not write to."""
    import tempfile

    if not folder.is_dir():
        raise refusal(f"cannot write to the folder {folder}: there is no folder {folder}")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise refusal(f"cannot write to the folder {folder}: {error.strerror or error}") from error


def query_lines(stream: TextIO) -> Iterator[str]:
    """The queries of a file, one a line.

    Raises:
        QueryError: the file is not text.
    """
    try:
        for line in stream:
            if line.strip():
                yield line.rstrip("\r\n")
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


def load(name: str) -> Encoder:
    """The encoder of that name."""
    from lcse_plugins.encoders.registry import load_encoder

    return load_encoder(name)


def make_scorer(
    encoder: str, mode: Mode, holistic: HolisticText, aggregator: Aggregator, calibration: Path | None
) -> LogicScorer:
    """The scorer that the shared options describe."""
    from lcse_plugins.scorer import LogicScorer

    return LogicScorer(
        load(encoder),
        calibration=calibration,
        config=ScoringConfig(mode=mode, holistic=holistic, aggregator=aggregator),
    )


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
