"""The grid of μ and β under both objectives, and the calibration that needs no labels beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from lcse_plugins.bench.charts import heat_map, html_page, html_table, line_chart
from lcse_plugins.bench.photographs import Progress
from lcse_plugins.calibrating.fitting import CalibrationFit, Objective, fit_calibration
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.calibrating.unlabelled import FEWEST_IMAGES, estimate_calibration
from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import DEFAULT_CONFIG, ScoringConfig

__all__ = ["Sweep", "sweep_calibration", "sweep_page"]


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

    @property
    def unlabelled_note(self) -> str:
        """μ and β from the vectors alone, or why there are none."""
        if self.unlabelled is None:
            return f"skipped, it needs at least {FEWEST_IMAGES} images"
        return f"μ = {self.unlabelled.mu:.3f}, β = {self.unlabelled.beta:.2f}"

    def to_json(self) -> dict[str, Any]:
        """The sweep as JSON values."""
        return {
            "objectives": {
                name: {
                    "mu": fit.calibration.mu,
                    "beta": fit.calibration.beta,
                    "value": fit.accuracy,
                    "per_operator": fit.per_operator,
                    "per_mu": {f"{mu:.3f}": float(v) for mu, v in zip(fit.mus, fit.table.max(axis=1), strict=True)},
                    "per_beta": {f"{b:g}": float(v) for b, v in zip(fit.betas, fit.table.max(axis=0), strict=True)},
                    "at_chosen": self._at(fit.calibration),
                }
                for name, fit in self.fits.items()
            },
            "unlabelled": None
            if self.unlabelled is None
            else {
                "mu": self.unlabelled.mu,
                "beta": self.unlabelled.beta,
                "values": dict(self.unlabelled_values),
            },
        }

    def _at(self, calibration: Calibration) -> dict[str, float]:
        """What every objective gives for the cell of the grid where `calibration` lies."""
        values = {}
        for name, fit in self.fits.items():
            i = int(abs(fit.mus - calibration.mu).argmin())
            j = int(abs(fit.betas - calibration.beta).argmin())
            values[name] = float(fit.table[i, j])
        return values


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
        progress: Called with (done, total) cells of both grids.
    """
    similarities = vectors @ concept_vectors(encoder, images.classes, templates=config.templates).T
    enough = len(vectors) >= FEWEST_IMAGES
    unlabelled = estimate_calibration(encoder, vectors, templates=config.templates) if enough else None
    objectives: tuple[Objective, ...] = get_args(Objective)
    fits: dict[str, CalibrationFit] = {}
    values: dict[str, float] = {}
    for number, objective in enumerate(objectives):

        def report(done: int, total: int, *, before: int = number) -> None:
            if progress is not None:
                progress(before * total + done, len(objectives) * total)

        fits[objective] = fit_calibration(
            similarities,
            images.labels,
            encoder_id=encoder.encoder_id,
            objective=objective,
            config=config,
            near_best=0,
            seed=seed,
            progress=report,
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


def sweep_page(sweep: Sweep, *, title: str) -> str:
    """The sweep as one HTML page."""
    sections = []
    for name, fit in sweep.fits.items():
        rows = range(0, len(fit.mus), max(1, len(fit.mus) // 14))
        chosen = f"Best: μ = {fit.calibration.mu:.3f}, β = {fit.calibration.beta:g}, value {100 * fit.accuracy:.1f} %."
        content = (
            heat_map(
                f"{name}: percent by μ (rows) and β (columns)",
                [f"{fit.mus[i]:.2f}" for i in rows],
                [f"{beta:g}" for beta in fit.betas],
                100 * fit.table[list(rows)],
            )
            + line_chart(
                "best over β, by μ",
                {name: [(float(mu), 100 * float(v)) for mu, v in zip(fit.mus, fit.table.max(axis=1), strict=True)]},
                x_label="μ",
                y_label="%",
            )
            + line_chart(
                "best over μ, by β",
                {name: [(float(b), 100 * float(v)) for b, v in zip(fit.betas, fit.table.max(axis=0), strict=True)]},
                x_label="β",
                y_label="%",
                log_x=True,
            )
        )
        sections.append((f"Objective: {name}", chosen, content))
    table = html_table(
        ["objective", "best of the grid, %", "without labels, %"],
        [[name, 100 * sweep.fits[name].accuracy, 100 * value] for name, value in sweep.unlabelled_values.items()],
    )
    sections.append(("Without labels", f"From the vectors alone: {sweep.unlabelled_note}.", table))
    return html_page(title, sections)
