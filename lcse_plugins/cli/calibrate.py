"""`lcse calibrate`: μ and β for an encoder, from labelled pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from lcse_plugins.cli.options import (
    encoder_option,
    file_to_write,
    json_option,
    load,
    naming,
    print_json,
    progress_bar,
)
from lcse_plugins.encoders.batches import batched
from lcse_plugins.scoring.config import DEFAULT_CONFIG, Mode, ScoringConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lcse_plugins.calibrating.fitting import CalibrationFit, Objective
    from lcse_plugins.encoders import Encoder, FloatArray

__all__ = ["calibrate"]

BATCH = 32


@click.command(epilog="Example: lcse calibrate labels.csv --images photos --out calibration.json")
@click.argument("labels", type=click.Path(path_type=Path))
@click.option("--images", type=click.Path(path_type=Path), help="Where pictures are; by default beside LABELS.")
@file_to_write("--out", "-o", help="Write the calibration as JSON.")
@encoder_option
@click.option(
    "--mode",
    type=click.Choice([mode for mode in get_args(Mode) if mode != "holistic"]),  # which uses neither μ nor β
    default=DEFAULT_CONFIG.mode,
    show_default=True,
    help="The mode that μ and β are fitted for.",
)
@click.option(
    "--objective",
    type=click.Choice(["pairwise", "retrieval"]),
    default="retrieval",
    show_default=True,
    help="What to make best: the paper's pairwise accuracy, or rankings (of nearly equal ones, the most accurate).",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed for drawing the pairs of concepts tested.",
)
@json_option
def calibrate(
    labels: Path,
    images: Path | None,
    out: Path | None,
    encoder: str,
    mode: Mode,
    objective: Objective,
    seed: int,
    as_json: bool,
) -> None:
    """Fit μ and β on LABELS: a CSV with columns path and labels (a;b;c), a COCO json, or JSON lines."""
    from lcse_plugins.calibrating.fitting import fit_calibration
    from lcse_plugins.calibrating.labelled import read_labels
    from lcse_plugins.encoders import concept_vectors

    labelled = read_labels(labels, images=images)
    model = load(encoder)
    with progress_bar("encoding") as progress:
        similarities = _encoded(model, labelled.paths, progress) @ concept_vectors(model, labelled.classes).T
    with progress_bar("fitting") as progress:
        fit = fit_calibration(
            similarities,
            labelled.labels,
            encoder_id=model.encoder_id,
            objective=objective,
            config=ScoringConfig(mode=mode),
            seed=seed,
            progress=progress,
        )
    if out is not None:
        with naming(out):
            fit.calibration.save(out)
    for name in fit.at_edge:
        click.secho(
            f"note: {name} lies at the edge of the values tried; more labelled pictures may tell it better",
            fg="yellow",
            err=True,
        )
    if as_json:
        print_json({**fit.calibration.to_json(), "objective": objective, "value": fit.accuracy, **_tables(fit)})
        return
    _show(fit, objective, len(labelled))
    if out is not None:
        click.echo(f"wrote {out}")


def _encoded(model: Encoder, paths: Sequence[Path], progress: Callable[[int, int], None]) -> FloatArray:
    """(n, d) image vectors, in batches, so that the bar moves."""
    import numpy as np

    rows: list[FloatArray] = []
    for batch in batched(paths, BATCH):
        rows.extend(model.encode_images(batch))
        progress(len(rows), len(paths))
    return np.stack(rows)


def _tables(fit: CalibrationFit) -> dict[str, object]:
    return {
        "at_edge": list(fit.at_edge),
        "per_operator": fit.per_operator,
        "per_mu": {f"{mu:.4f}": float(value) for mu, value in zip(fit.mus, fit.table.max(axis=1), strict=True)},
        "per_beta": {f"{beta:g}": float(value) for beta, value in zip(fit.betas, fit.table.max(axis=0), strict=True)},
    }


def _show(fit: CalibrationFit, objective: str, images: int) -> None:
    click.echo(f"{images} pictures, objective {objective}")
    for name, value in fit.per_operator.items():
        click.echo(f"  {name:<8} {100 * value:5.1f}")
    click.echo(f"  {'mean':<8} {100 * fit.accuracy:5.1f}")
    click.echo(
        "best by μ   " + "  ".join(f"{mu:.3f}:{100 * v:.1f}" for mu, v in _every(fit.mus, fit.table.max(axis=1)))
    )
    click.echo(
        "best by β   " + "  ".join(f"{beta:g}:{100 * v:.1f}" for beta, v in _every(fit.betas, fit.table.max(axis=0)))
    )
    click.secho(f"μ = {fit.calibration.mu:.4f}, β = {fit.calibration.beta:g}", bold=True)


def _every(keys: NDArray[np.float64], values: NDArray[np.float64]) -> list[tuple[float, float]]:
    """At most ten of the pairs, evenly spread."""
    step = math.ceil(len(keys) / 10)
    return [(float(key), float(value)) for key, value in zip(keys[::step], values[::step], strict=True)]
