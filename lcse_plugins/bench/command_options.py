"""What the benchmark commands share: their options, and how they say and keep what they found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lcse_plugins.commands.options import encoder_option, json_option, load, progress_bar

if TYPE_CHECKING:
    from lcse_plugins.bench.photographs import Half
    from lcse_plugins.bench.remembering import RememberingEncoder
    from lcse_plugins.calibrate import Calibration
    from lcse_plugins.encoders.protocol import FloatArray
    from lcse_plugins.labelled import LabelledImages

__all__ = ["LabelledVectors", "common_options", "encoder_options", "finish", "label_options", "load_labelled"]

F = TypeVar("F", bound=Callable[..., Any])


def common_options(command: F) -> F:
    """`--json`, `--seed`, `--limit`, `--out` and `--name`."""
    for option in (
        json_option,
        click.option("--seed", default=0, show_default=True, help="Of every draw."),
        click.option("--limit", type=click.IntRange(min=1), help="Only this many items, for a quick look."),
        click.option(
            "--out", type=click.Path(path_type=Path, file_okay=False), help="Keep the figures in this folder."
        ),
        click.option("--name", help="Under this name."),
    ):
        command = option(command)
    return command


def encoder_options(command: F) -> F:
    """`--encoder`, `--calibration`, `--mu`, `--beta`, `--cache`."""
    for option in (
        encoder_option,
        click.option("--calibration", type=click.Path(path_type=Path), metavar="FILE", help="μ and β, as JSON."),
        click.option("--mu", type=float, help="μ, with --beta."),
        click.option("--beta", type=float, help="β, with --mu."),
        click.option("--cache", type=click.Path(path_type=Path, file_okay=False), help="Keep image vectors here."),
    ):
        command = option(command)
    return command


def label_options(command: F) -> F:
    """LABELS, `--images`, `--half`."""
    for option in (
        click.argument("labels", type=click.Path(path_type=Path)),
        click.option("--images", type=click.Path(path_type=Path), help="Where pictures are; by default beside LABELS."),
        click.option(
            "--half", type=click.Choice(["A", "B"]), help="Only one of two fixed halves: tune on A, report B."
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, eq=False)
class LabelledVectors:
    """Labelled images, the encoder that reads texts for them, their vectors, and the calibration to use."""

    images: LabelledImages
    encoder: RememberingEncoder
    vectors: FloatArray
    calibration: Calibration | None


def open_encoder(
    encoder: str, calibration: Path | None, mu: float | None, beta: float | None
) -> tuple[RememberingEncoder, Calibration | None]:
    """The encoder of that name, and the calibration that the options give; None for its preset."""
    from lcse_plugins.bench.remembering import RememberingEncoder
    from lcse_plugins.calibrate import Calibration, load_calibration

    if (mu is None) != (beta is None):
        raise click.UsageError("--mu and --beta go together")
    model = RememberingEncoder(load(encoder))
    if mu is not None and beta is not None:
        return model, Calibration(mu=mu, beta=beta, encoder_id=model.encoder_id)
    return model, None if calibration is None else load_calibration(calibration)


def load_labelled(
    labels: Path,
    images: Path | None,
    half: Half | None,
    limit: int | None,
    *,
    encoder: str,
    calibration: Path | None,
    mu: float | None,
    beta: float | None,
    cache: Path | None,
) -> LabelledVectors:
    """Read labels, take the half and the limit, and encode the images."""
    from lcse_plugins.bench.photographs import half_of, image_vectors, take_images
    from lcse_plugins.labelled import read_labels

    labelled = read_labels(labels, images=images)
    if half is not None:
        labelled = take_images(labelled, half_of(labelled, half))
    if limit is not None:
        labelled = take_images(labelled, range(min(limit, len(labelled))))
    model, chosen = open_encoder(encoder, calibration, mu, beta)
    with progress_bar("encoding") as progress:
        vectors = image_vectors(model, labelled.paths, cache=cache, progress=progress)
    return LabelledVectors(labelled, model, vectors, chosen)


def finish(
    text: str,
    result: Mapping[str, Any],
    *,
    as_json: bool,
    out: Path | None,
    name: str,
    encoder_id: str | None = None,
    rows: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Print what was found, and keep it where that was asked for."""
    click.echo(json.dumps(result, ensure_ascii=False) if as_json else text)
    if out is not None:
        from lcse_plugins.bench.record import write_result

        path = write_result(out, name, result, encoder_id=encoder_id, rows=rows)
        click.echo(f"kept in {path}", err=True)
