"""`lcse encoders` and `lcse calibrate`: what can encode, and μ, β and the presence curve of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lcse_plugins.cli.options import (
    encoder_option,
    file_to_write,
    fitted_mode_option,
    json_option,
    load,
    print_json,
    progress_bar,
)
from lcse_plugins.scoring.config import Mode, ScoringConfig

if TYPE_CHECKING:
    from lcse_plugins.encoders import FloatArray

BATCH = 32


@click.command(epilog="Example: lcse encoders")
def encoders() -> None:
    """List the encoders, what they are, and how to install what they need."""
    from lcse_plugins.encoders.registry import available_encoders

    listings = available_encoders()
    width = max(len(listing.name) for listing in listings)
    for listing in listings:
        missing = (
            "" if listing.installed else click.style(f'  pip install "lcse-plugins[{listing.extra}]"', fg="yellow")
        )
        click.echo(f"{listing.name:<{width}}  {listing.summary}{missing}")


@click.command(epilog="Example: lcse calibrate labels.csv --images photos --out calibration.json")
@click.argument("labels", type=click.Path(path_type=Path))
@click.option("--images", type=click.Path(path_type=Path), help="Where pictures are; by default beside LABELS.")
@file_to_write("--out", "-o", help="Write the calibration as JSON, for --calibration and Calibration.load.")
@encoder_option
@fitted_mode_option
@json_option
def calibrate(labels: Path, images: Path | None, out: Path | None, encoder: str, mode: Mode, as_json: bool) -> None:
    """Fit μ, β and the presence curve on LABELS: a CSV with path and labels (a;b;c), COCO's JSON, or JSON lines."""
    import numpy as np

    from lcse_plugins.calibrating.fitting import fit_calibration
    from lcse_plugins.calibrating.labelled import read_labels
    from lcse_plugins.encoders import concept_vectors

    labelled = read_labels(labels, images=images)
    model = load(encoder)
    rows: list[FloatArray] = []
    with progress_bar("encoding") as progress:
        for start in range(0, len(labelled.paths), BATCH):  # in batches, so that the bar moves
            rows.extend(model.encode_images(labelled.paths[start : start + BATCH]))
            progress(len(rows), len(labelled.paths))
    similarities = np.stack(rows) @ concept_vectors(model, labelled.classes).T
    with progress_bar("fitting") as progress:
        fit = fit_calibration(
            similarities,
            labelled.labels,
            encoder_id=model.encoder_id,
            objective="retrieval",
            config=ScoringConfig(mode=mode),
            progress=progress,
        )
    fitted = fit.calibration
    if out is not None:
        fitted.save(out)
    if as_json:
        print_json({**fitted.to_json(), "value": fit.accuracy, "per_operator": fit.per_operator})
        return
    click.echo(f"{len(labelled)} pictures, {len(labelled.classes)} labels; how well each operator ranks, of 100:")
    for name, value in {**fit.per_operator, "mean": fit.accuracy}.items():
        click.echo(f"  {name:<8} {100 * value:5.1f}")
    click.secho(f"μ = {fitted.mu:.4f}, β = {fitted.beta:g}", bold=True)
    if fitted.presence is None:
        click.echo("no presence curve: too few labels tell what is there from what is not")
    else:
        click.echo(f"presence = σ({fitted.presence.intercept:.2f} + {fitted.presence.slope:.2f} s)")
    if out is not None:
        click.echo(f"wrote {out}")
