"""`lcse bench calibrate | diagnose | tables`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from lcse_plugins.bench.command_options import (
    Labels,
    Model,
    Run,
    common_options,
    encoder_options,
    label_options,
    used_calibration,
    vector_options,
)
from lcse_plugins.cli.options import file_to_write, json_option, print_json, progress_bar
from lcse_plugins.errors import InvalidOption
from lcse_plugins.scoring.config import DEFAULT_CONFIG, Mode, ScoringConfig

if TYPE_CHECKING:
    from lcse_plugins.bench.calibration_sweep import Sweep

__all__ = ["calibrate", "diagnose", "tables"]

html_option = file_to_write("--html", refusal=click.BadParameter, help="Write a page with charts.")


@click.command(epilog="Example: lcse bench calibrate photos/photos.jsonl --half A --html sweep.html")
@label_options
@click.option(
    "--mode",
    type=click.Choice([mode for mode in get_args(Mode) if mode != "holistic"]),  # which uses neither μ nor β
    default=DEFAULT_CONFIG.mode,
    show_default=True,
    help="To fit for.",
)
@html_option
@vector_options
@common_options
def calibrate(
    labels: Labels,
    mode: Mode,
    html: Path | None,
    model: Model,
    run: Run,
) -> None:
    """Sweep μ and β over LABELS by the paper's objective and by retrieval, and compare with no labels at all."""
    from lcse_plugins.bench.calibration_sweep import sweep_calibration, sweep_page

    data = labels.encoded(model, run.limit)
    with progress_bar("sweeping") as progress:
        sweep = sweep_calibration(
            data.encoder, data.images, data.vectors, config=ScoringConfig(mode=mode), seed=run.seed, progress=progress
        )
    if html is not None:
        html.write_text(sweep_page(sweep, title=f"Calibration of {data.encoder.encoder_id}"), encoding="utf-8")
    run.finish(
        _sweep_text(sweep),
        {**sweep.to_json(), "mode": mode, "half": labels.half},
        name="calibrate",
        encoder_id=data.encoder.encoder_id,
    )


def _sweep_text(sweep: Sweep) -> str:
    lines = []
    for name, fit in sweep.fits.items():
        step = max(1, len(fit.mus) // 10)
        by_mu = zip(fit.mus[::step], fit.table.max(axis=1)[::step], strict=True)
        by_beta = zip(fit.betas, fit.table.max(axis=0), strict=True)
        lines += [
            f"{name}: μ = {fit.calibration.mu:.3f}, β = {fit.calibration.beta:g}, {100 * fit.accuracy:.1f} %",
            "  by μ  " + "  ".join(f"{mu:.2f}: {100 * value:.1f}" for mu, value in by_mu),
            "  by β  " + "  ".join(f"{beta:g}: {100 * value:.1f}" for beta, value in by_beta),
        ]
    values = ", ".join(f"{name} {100 * value:.1f} %" for name, value in sweep.unlabelled_values.items())
    lines.append(f"without labels: {sweep.unlabelled_note}" + (f": {values}" if values else ""))
    return "\n".join(lines)


@click.command(epilog="Example: lcse bench diagnose photos/photos.jsonl --html diagnosis.html")
@label_options
@click.option(
    "--pairs", type=click.IntRange(min=1), default=60, show_default=True, help="Pairs of classes to ask about."
)
@html_option
@encoder_options
@common_options
def diagnose(
    labels: Labels,
    pairs: int,
    html: Path | None,
    model: Model,
    run: Run,
) -> None:
    """Show what an encoder makes of operators, over LABELS."""
    from lcse_plugins.bench.diagnose import diagnose as analyse
    from lcse_plugins.bench.diagnose_page import diagnosis_page, diagnosis_text

    data = labels.encoded(model, run.limit)
    with progress_bar("diagnosing") as progress:
        found = analyse(
            data.encoder,
            data.images,
            data.vectors,
            calibration=data.calibration,
            pairs=pairs,
            seed=run.seed,
            progress=progress,
        )
    if html is not None:
        html.write_text(diagnosis_page(found, title=f"Diagnosis of {data.encoder.encoder_id}"), encoding="utf-8")
    run.finish(
        diagnosis_text(found),
        {**found.to_json(), "calibration": used_calibration(data.encoder, data.calibration)},
        name="diagnose",
        encoder_id=data.encoder.encoder_id,
    )


@click.command(epilog="Example: lcse bench tables tests/bench/results")
@click.argument("results", type=click.Path(path_type=Path, file_okay=False))
@json_option
def tables(results: Path, as_json: bool) -> None:
    """Print the tables of the README from the folder RESULTS."""
    from lcse_plugins.bench.readme_tables import readme_tables

    found = readme_tables(results)
    if not found:
        raise InvalidOption(f"{results} keeps no result of which there is a table")
    if as_json:
        print_json(found)
        return
    for title, table in found.items():
        click.echo(f"{title}\n\n{table}\n")
