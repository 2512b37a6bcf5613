"""What the commands share: options, what they build, and how things are printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args
from unicodedata import category

import click

from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.scoring.config import DEFAULT_CONFIG, Mode

if TYPE_CHECKING:
    from lcse_plugins.encoders import Encoder
    from lcse_plugins.index import ImageIndex, IndexReport
    from lcse_plugins.scorer import LogicScorer
    from lcse_plugins.scoring.results import Ranked

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, one value a line.")
encoder_option = click.option(
    "--encoder", default="starter", show_default=True, metavar="NAME", help="Encoder; `lcse encoders` lists them."
)
fitted_mode_option = click.option(
    "--mode",
    type=click.Choice([mode for mode in get_args(Mode) if mode != "holistic"]),  # which uses neither μ nor β
    default=DEFAULT_CONFIG.mode,
    show_default=True,
    help="The mode that μ and β are fitted for.",
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


def file_to_write(*names: str, **options: Any) -> Callable[[F], F]:
    """An option for a file; one in a folder that is not there is refused now, not after the work."""

    def check(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
        if path is not None and not path.parent.is_dir():
            raise InvalidOption(f"cannot write {path}: there is no folder {path.parent}")
        return path

    kind = click.Path(path_type=Path, dir_okay=False, writable=True)
    return click.option(*names, type=kind, callback=check, **options)


class QueryCommand(click.Command):
    """A command that takes a query: says how to give one that begins with a dash, or has several words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; of what cannot be understood, say how it is given if it is meant as a query."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if isinstance(error, click.NoSuchOption) and not error.option_name.startswith("--"):
                advice = "a query that begins with a dash goes last, after --"
            elif type(error) is click.UsageError:  # arguments are left over
                advice = "put the query in quotes"
            else:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}; {advice}", ctx=ctx) from None


# what they build


def load(name: str) -> Encoder:
    """The encoder of that name."""
    from lcse_plugins.encoders.registry import load_encoder

    return load_encoder(name)


def make_scorer(encoder: str, mode: Mode, calibration: Path | None) -> LogicScorer:
    """The scorer that the shared options describe."""
    from lcse_plugins.scorer import LogicScorer

    return LogicScorer(load(encoder), calibration=calibration, mode=mode)


def build(folders: Sequence[Path], out: Path | None, encoder: Encoder, **options: Any) -> IndexReport:
    """Make or update an index, with a bar; interrupted, say that what is done is kept."""
    from lcse_plugins.index import ImageIndex, cache_place, is_index

    place = out or cache_place(folders, encoder)
    try:
        with progress_bar("indexing") as progress:
            return ImageIndex.build(folders, place, encoder=encoder, progress=progress, **options)
    except KeyboardInterrupt:
        kept = pictures(len(ImageIndex.open(place)) if is_index(place) else 0)
        click.echo(f"\nStopped. The index {printable(place)} has {kept}; the next run goes on from there.", err=True)
        raise SystemExit(130) from None


def open_pictures(folders: Sequence[Path], encoder: Encoder) -> ImageIndex:
    """The index at a path; or that of folders of pictures, made or brought up to date first.

    Raises:
        ImageError: there are no pictures in it.
    """
    from lcse_plugins.index import ImageIndex, is_index

    place = folders[0]
    if len(folders) > 1 or not is_index(place):
        report = build(folders, None, encoder)
        place = report.path
        if report.added:
            click.echo(f"indexed {pictures(report.added)} in {printable(place)}", err=True)
            print_report(report)
    index = ImageIndex.open(place, encoder=encoder)
    if not len(index):
        reason = f"; {len(index.broken)} cannot be used, such as {index.broken[0]}" if index.broken else ""
        raise ImageError(folders[0], f"it has no pictures to search{reason}")
    return index


# how things are printed


def print_json(value: object) -> None:
    """Print a value as a line of JSON, with escapes where the output may lack letters."""
    click.echo(json.dumps(value, ensure_ascii=(sys.stdout.encoding or "").lower() != "utf-8"))


def printable(name: object) -> str:
    """A name as text in which whatever could steer the terminal is escaped; spaces of any kind stay."""
    return "".join(
        letter if letter.isprintable() or category(letter) == "Zs" else letter.encode("unicode_escape").decode()
        for letter in str(name)
    )


def pictures(count: int) -> str:
    """`1 picture`, `5,000 pictures`."""
    return f"{count:,} picture" + ("" if count == 1 else "s")


def reason_in_colour(result: Ranked) -> str:
    """`dog: clear · person: likely`, with what speaks against a picture that does not satisfy the query in red."""
    return " · ".join(
        click.style(printable(item.seen), fg=None if item.fits or result.satisfies else "red")
        for item in result.evidence
    )


def print_notes(*notes: str | None) -> None:
    """Print what a person should know, on standard error."""
    for note in filter(None, notes):
        click.secho(f"note: {printable(note)}", fg="yellow", err=True)


def print_report(report: IndexReport) -> None:
    """Print what could not be read, and what was passed over, on standard error."""
    for error in report.broken:
        click.secho(f"left out {printable(error)}", fg="yellow", err=True)
    print_notes(report.note)


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
