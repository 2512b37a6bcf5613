"""What the benchmark commands share: their options, and how they say and keep what they found."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from lcse_plugins.cli.options import check_folder, encoder_option, json_option, load, print_json, progress_bar
from lcse_plugins.errors import InvalidOption

if TYPE_CHECKING:
    from lcse_plugins.bench.photographs import Half
    from lcse_plugins.bench.remembering import RememberingEncoder
    from lcse_plugins.calibrating.labelled import LabelledImages
    from lcse_plugins.encoders.protocol import FloatArray
    from lcse_plugins.scoring.calibration import Calibration

__all__ = [
    "LabelledVectors",
    "Labels",
    "Model",
    "Run",
    "common_options",
    "encoder_options",
    "label_options",
    "used_calibration",
    "vector_options",
]

Command: TypeAlias = Callable[..., None]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What every benchmark is asked for, and where its figures go."""

    as_json: bool
    seed: int
    limit: int | None
    out: Path | None
    name: str | None

    def finish(
        self,
        text: str,
        result: Mapping[str, Any],
        *,
        name: str,
        encoder_id: str | None = None,
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Print what was found, and keep it where that was asked for: under `name` unless another was given."""
        from lcse_plugins.bench.reports import finite_json, write_result

        if self.as_json:
            print_json(finite_json(result))
        else:
            click.echo(text)
        if self.out is not None:
            path = write_result(self.out, self.name or name, result, encoder_id=encoder_id, rows=rows)
            click.echo(f"kept in {path}", err=True)


@dataclass(frozen=True, kw_only=True)
class Model:
    """Which encoder and calibration to measure with."""

    encoder: str
    calibration: Path | None = None
    mu: float | None = None
    beta: float | None = None
    cache: Path | None

    def open(self) -> tuple[RememberingEncoder, Calibration | None]:
        """The encoder, and the calibration that the options give; None for its preset."""
        from lcse_plugins.bench.remembering import RememberingEncoder
        from lcse_plugins.scoring.calibration import Calibration, load_calibration

        if (self.mu is None) != (self.beta is None):
            raise click.UsageError("--mu and --beta go together")
        if self.mu is not None and self.calibration is not None:
            raise click.UsageError("give --calibration, or --mu and --beta, not both")
        encoder = RememberingEncoder(load(self.encoder))
        if self.mu is not None and self.beta is not None:
            return encoder, Calibration(mu=self.mu, beta=self.beta, encoder_id=encoder.encoder_id)
        return encoder, None if self.calibration is None else load_calibration(self.calibration)

    def encode(self, encoder: RememberingEncoder, paths: Sequence[Path]) -> FloatArray:
        """(n, d) vectors of pictures, with a progress bar."""
        from lcse_plugins.bench.photographs import image_vectors

        with progress_bar("encoding") as progress:
            return image_vectors(encoder, paths, cache=self.cache, progress=progress)


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Which labelled images to measure on."""

    labels: Path
    images: Path | None
    half: Half | None

    @property
    def root(self) -> Path:
        """The folder that the names of pictures start from."""
        return self.labels.parent if self.images is None else self.images

    def read(self) -> LabelledImages:
        """The images of the half that was asked for."""
        from lcse_plugins.bench.photographs import half_of, take_images
        from lcse_plugins.calibrating.labelled import read_labels

        labelled = read_labels(self.labels, images=self.images)
        if self.half is None:
            return labelled
        chosen = half_of(labelled, self.half)
        if not len(chosen):
            raise InvalidOption(f"half {self.half} of {self.labels} holds no pictures")
        return take_images(labelled, chosen)

    def encoded(self, model: Model, limit: int | None) -> LabelledVectors:
        """The images, at most `limit`, with their vectors."""
        from lcse_plugins.bench.photographs import take_images

        labelled = self.read()
        if limit is not None:
            labelled = take_images(labelled, range(min(limit, len(labelled))))
        encoder, chosen = model.open()
        return LabelledVectors(labelled, encoder, model.encode(encoder, labelled.paths), chosen)


@dataclass(frozen=True, eq=False)
class LabelledVectors:
    """Labelled images, the encoder that reads texts for them, their vectors, and the calibration to use."""

    images: LabelledImages
    encoder: RememberingEncoder
    vectors: FloatArray
    calibration: Calibration | None


def used_calibration(encoder: RememberingEncoder, chosen: Calibration | None) -> dict[str, Any] | None:
    """μ and β that were measured with, as JSON values: those chosen, or the encoder's preset."""
    used = chosen or encoder.calibration
    return None if used is None else used.to_json()


def _folder_to_write(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    if value is not None:
        try:
            value.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.BadParameter(f"cannot make the folder {value}: {error.strerror or error}") from error
        check_folder(value, click.BadParameter)
    return value


def _plain_name(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and Path(value).name != value:
        raise click.BadParameter(f"a name without folders, not {value!r}")
    return value


def common_options(command: Command) -> Command:
    """`--json`, `--seed`, `--limit`, `--out` and `--name`, as one argument `run`."""
    return _bundled(
        command,
        "run",
        Run,
        json_option,
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of every draw."),
        click.option("--limit", type=click.IntRange(min=1), help="Only this many items, for a quick look."),
        click.option(
            "--out",
            type=click.Path(path_type=Path, file_okay=False),
            callback=_folder_to_write,
            help="Keep the figures in this folder.",
        ),
        click.option("--name", callback=_plain_name, help="Under this name."),
    )


_cache_option = click.option(
    "--cache", type=click.Path(path_type=Path, file_okay=False), help="Keep image vectors here."
)


def encoder_options(command: Command) -> Command:
    """`--encoder`, `--calibration`, `--mu`, `--beta` and `--cache`, as one argument `model`."""
    return _bundled(
        command,
        "model",
        Model,
        encoder_option,
        click.option("--calibration", type=click.Path(path_type=Path), metavar="FILE", help="μ and β, as JSON."),
        click.option("--mu", type=float, help="μ, with --beta."),
        click.option("--beta", type=float, help="β, with --mu."),
        _cache_option,
    )


def vector_options(command: Command) -> Command:
    """`--encoder` and `--cache`, as one argument `model`: for what finds μ and β itself."""
    return _bundled(command, "model", Model, encoder_option, _cache_option)


def label_options(command: Command) -> Command:
    """LABELS, `--images` and `--half`, as one argument `labels`."""
    return _bundled(
        command,
        "labels",
        Labels,
        click.argument("labels", type=click.Path(path_type=Path)),
        click.option("--images", type=click.Path(path_type=Path), help="Where pictures are; by default beside LABELS."),
        click.option(
            "--half", type=click.Choice(["A", "B"]), help="Only one of two fixed halves: tune on A, report B."
        ),
    )


def _bundled(command: Command, name: str, kind: type[Any], *options: Callable[[Any], Any]) -> Command:
    """The command with some options, which reach it as one argument."""

    @functools.wraps(command)
    def called(**given: Any) -> None:
        own = {field.name: given.pop(field.name) for field in fields(kind) if field.name in given}
        command(**given, **{name: kind(**own)})

    for option in options:
        called = option(called)
    return called
