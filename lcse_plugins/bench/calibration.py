"""Is the calibration good? The grid of μ and β under both objectives, and whether the percentages shown are true."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from lcse_plugins.bench.photographs import Progress
from lcse_plugins.bench.reports import Rows, number_text
from lcse_plugins.calibrating.fitting import Objective, fit_calibration
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.calibrating.unlabelled import FEWEST_IMAGES, estimate_calibration
from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors
from lcse_plugins.errors import CalibrationError
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import DEFAULT_CONFIG, ScoringConfig

__all__ = ["measure_reliability", "reliability_rows", "sweep_calibration", "sweep_text"]

EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)
"""Of the bands of shown percentages."""


def sweep_calibration(
    encoder: Encoder,
    images: LabelledImages,
    vectors: FloatArray,
    *,
    config: ScoringConfig = DEFAULT_CONFIG,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Search the grid under both objectives, and see what the calibration that needs no labels reaches.

    Returns:
        `objectives`: for each the best `mu` and `beta`, the `value` they reach in [0, 1], and the best value at each μ;
        `unlabelled`: the calibration from the vectors alone and what it reaches, None where there are too few images.
    """
    similarities = vectors @ concept_vectors(encoder, images.classes, templates=config.templates).T
    free = None
    if len(vectors) >= FEWEST_IMAGES:
        free = estimate_calibration(encoder, vectors, templates=config.templates)
    objectives: dict[str, Any] = {}
    values: dict[str, float] = {}
    for name in get_args(Objective):
        options: dict[str, Any] = {"objective": name, "config": config, "seed": seed}
        fit = fit_calibration(similarities, images.labels, near_best=0, progress=progress, **options)
        per_mu = {f"{mu:.3f}": float(best) for mu, best in zip(fit.mus, fit.table.max(axis=1), strict=True)}
        found = {"mu": fit.calibration.mu, "beta": fit.calibration.beta, "value": fit.accuracy}
        objectives[name] = {**found, "per_mu": per_mu}
        if free is not None:
            single = fit_calibration(similarities, images.labels, mus=[free.mu], betas=[free.beta], **options)
            values[name] = single.accuracy
    return {"objectives": objectives, "unlabelled": None if free is None else {**free.to_json(), "values": values}}


def sweep_text(result: Mapping[str, Any]) -> str:
    """What each objective chose and how it falls off around that, for a terminal."""
    lines = []
    for name, found in result["objectives"].items():
        falls = list(found["per_mu"].items())
        by_mu = (f"{float(mu):.2f}: {100 * value:.1f}" for mu, value in falls[:: max(1, len(falls) // 10)])
        lines.append(f"{name}: μ = {found['mu']:.3f}, β = {found['beta']:g}, {100 * found['value']:.1f} %")
        lines.append(f"  by μ  {'  '.join(by_mu)}")
    if (free := result["unlabelled"]) is None:
        lines.append(f"without labels: skipped, it needs at least {FEWEST_IMAGES} images")
    else:
        reached = ", ".join(f"{name} {100 * value:.1f} %" for name, value in free["values"].items())
        lines.append(f"without labels: μ = {free['mu']:.3f}, β = {free['beta']:.2f}: {reached}")
    return "\n".join(lines)


def measure_reliability(
    encoder: Encoder, images: LabelledImages, vectors: FloatArray, *, calibration: Calibration | None = None
) -> dict[str, Any]:
    """Does "80 %" mean that it is there in 80 of 100 pictures? Compares what is shown with the labels.

    Returns:
        `bands` of shown percentages, over all pictures and classes: from `low` to `high`, the mean `shown`, how often
        it is `present` (all in percent, None where nothing was shown), and the number of `cases`.

    Raises:
        CalibrationError: the encoder has no presence curve, so that no percentage is shown.
    """
    used = calibration or encoder.calibration
    if used is None or used.presence is None:
        raise CalibrationError("this encoder has no presence curve; fit one with `lcse calibrate`")
    cosines = vectors @ concept_vectors(encoder, images.classes).T
    shown = np.vectorize(used.presence.probability, otypes=[float])(cosines)
    bands = []
    for low, high in itertools.pairwise(EDGES):
        inside = (shown >= low) & ((shown < high) | (high == 1.0))
        told, there = (100 * float(of[inside].mean()) if inside.any() else None for of in (shown, images.labels))
        band = {"low": 100 * low, "high": 100 * high, "shown": told, "present": there, "cases": int(inside.sum())}
        bands.append(band)
    return {"bands": bands}


def reliability_rows(result: Mapping[str, Any]) -> Rows:
    """A row for each band."""
    rows = [["shown", "mean shown, %", "really there, %", "cases"]]
    for band in result["bands"]:
        told = number_text(band["shown"]), number_text(band["present"]), f"{band['cases']:,}"
        rows.append([f"{band['low']:.0f} to {band['high']:.0f} %", *told])
    return rows
