"""Does "80 % seen" mean that it is there in 80 of 100 pictures? Shown percentages beside how often labels agree."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lcse_plugins.bench.reports import aligned, number_text
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors
from lcse_plugins.errors import CalibrationError
from lcse_plugins.scoring.calibration import Calibration

__all__ = ["Band", "measure_reliability", "reliability_text"]

EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)


@dataclass(frozen=True)
class Band:
    """The cases shown with a percentage from `low` to `high`, over all pictures and classes; all in percent.

    Attributes:
        low: least percentage of the band.
        high: its upper end.
        shown: mean of what was shown; None where nothing was.
        present: share of them in which the labels have the class.
        cases: how many there are.
    """

    low: float
    high: float
    shown: float | None
    present: float | None
    cases: int

    def to_json(self) -> dict[str, Any]:
        """The band as JSON values."""
        return asdict(self)


def measure_reliability(
    encoder: Encoder, images: LabelledImages, vectors: FloatArray, *, calibration: Calibration | None = None
) -> list[Band]:
    """Compare what people are shown with the labels, for every picture and class.

    Raises:
        CalibrationError: the encoder has no presence curve, so that no percentage is shown.
    """
    curve = (calibration or encoder.calibration or Calibration(mu=0, beta=1)).presence
    if curve is None:
        raise CalibrationError("this encoder has no presence curve; fit one with `lcse calibrate`")
    cosines = vectors @ concept_vectors(encoder, images.classes).T
    shown = np.vectorize(curve.probability, otypes=[float])(cosines)
    bands = []
    for low, high in itertools.pairwise(EDGES):
        inside = (shown >= low) & ((shown < high) | (high == 1.0))
        cases = int(inside.sum())
        bands.append(
            Band(
                100 * low,
                100 * high,
                100 * float(shown[inside].mean()) if cases else None,
                100 * float(images.labels[inside].mean()) if cases else None,
                cases,
            )
        )
    return bands


def reliability_text(bands: Sequence[Band]) -> str:
    """The bands for a terminal."""
    rows = [["shown", "mean shown", "really there", "cases"]]
    for band in bands:
        label = f"{band.low:.0f}–{band.high:.0f} %"
        rows.append([label, number_text(band.shown), number_text(band.present), f"{band.cases:,}"])
    return aligned(rows)
