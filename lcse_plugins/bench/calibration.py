"""The grid of μ and β under both objectives, and the calibration that needs no labels beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from lcse_plugins.bench.photographs import Progress
from lcse_plugins.calibrating.fitting import CalibrationFit, Objective, fit_calibration
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.calibrating.unlabelled import FEWEST_IMAGES, estimate_calibration
from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import DEFAULT_CONFIG, ScoringConfig

__all__ = ["Sweep", "sweep_calibration"]


@dataclass(frozen=True, eq=False)
class Sweep:
    """What both objectives say of the grid.

    Attributes:
        fits: objective → its grid search.
        unlabelled: μ and β from the vectors alone; None where there are too few.
        unlabelled_values: objective → what they reach, in [0, 1]; empty without them.
    """

    fits: Mapping[str, CalibrationFit]
    unlabelled: Calibration | None
    unlabelled_values: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """The sweep as JSON values."""
        return {
            "objectives": {
                name: {"mu": fit.calibration.mu, "beta": fit.calibration.beta, "value": fit.accuracy}
                | {"per_mu": {f"{mu:.3f}": float(v) for mu, v in zip(fit.mus, fit.table.max(axis=1), strict=True)}}
                for name, fit in self.fits.items()
            },
            "unlabelled": None
            if self.unlabelled is None
            else {**self.unlabelled.to_json(), "values": dict(self.unlabelled_values)},
        }

    def to_text(self) -> str:
        """What each objective chose and how it falls off around that, for a terminal."""
        lines = []
        for name, fit in self.fits.items():
            step = max(1, len(fit.mus) // 10)
            by_mu = zip(fit.mus[::step], fit.table.max(axis=1)[::step], strict=True)
            lines += [
                f"{name}: μ = {fit.calibration.mu:.3f}, β = {fit.calibration.beta:g}, {100 * fit.accuracy:.1f} %",
                "  by μ  " + "  ".join(f"{mu:.2f}: {100 * value:.1f}" for mu, value in by_mu),
            ]
        if self.unlabelled is None:
            return "\n".join([*lines, f"without labels: skipped, it needs at least {FEWEST_IMAGES} images"])
        values = ", ".join(f"{name} {100 * value:.1f} %" for name, value in self.unlabelled_values.items())
        free = self.unlabelled
        return "\n".join([*lines, f"without labels: μ = {free.mu:.3f}, β = {free.beta:.2f}: {values}"])


def sweep_calibration(
    encoder: Encoder,
    images: LabelledImages,
    vectors: FloatArray,
    *,
    config: ScoringConfig = DEFAULT_CONFIG,
    seed: int = 0,
    progress: Progress | None = None,
) -> Sweep:
    """Search the grid under both objectives.

    Args:
        encoder: The encoder of the vectors.
        images: Their labels.
        vectors: (n, d) unit rows.
        config: The mode and aggregation to fit for.
        seed: Of the pairs of concepts.
        progress: Called with (done, total) cells of each grid.
    """
    similarities = vectors @ concept_vectors(encoder, images.classes, templates=config.templates).T
    unlabelled = None
    if len(vectors) >= FEWEST_IMAGES:
        unlabelled = estimate_calibration(encoder, vectors, templates=config.templates)
    fits: dict[str, CalibrationFit] = {}
    values: dict[str, float] = {}
    for objective in get_args(Objective):
        fits[objective] = fit_calibration(
            similarities,
            images.labels,
            encoder_id=encoder.encoder_id,
            objective=objective,
            config=config,
            near_best=0,
            seed=seed,
            progress=progress,
        )
        if unlabelled is not None:
            single = fit_calibration(
                similarities,
                images.labels,
                objective=objective,
                config=config,
                seed=seed,
                mus=[unlabelled.mu],
                betas=[unlabelled.beta],
            )
            values[objective] = single.accuracy
    return Sweep(fits, unlabelled, values)
