"""Calibration without labels: what an encoder's similarities look like on a collection says where evidence begins.

Most things are not in most pictures. Over a collection and a vocabulary of common things, similarities are therefore
mostly those of absent concepts, with a tail of present ones; one deviation above their middle is where the tail starts.
That is μ, and β is the inverse of the same deviation: evidence is a z-score, less one. Middle and deviation are taken
from ranks (median, and the distance from there to the 84th percentile), so that the tail itself does not move them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors
from lcse_plugins.errors import CalibrationError
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import DEFAULT_TEMPLATES

__all__ = ["COMMON_THINGS", "estimate_calibration", "spread_calibration"]

COMMON_THINGS = tuple(
    "person man woman child dog cat horse bird car bus bicycle train boat airplane road street building house tree"
    " grass flower sky water beach mountain snow food plate fruit bread table chair bed window door clock sign book"
    " phone computer television ball bag hat shoe bottle cup glass knife kitchen bathroom garden park field".split()
)
"""Things photographs show, of many kinds; which ones hardly matters."""

ONE_DEVIATION = 84.134
"""The percentile one standard deviation above the median of a normal distribution."""

FEWEST_IMAGES = 50
"""Below this many images the spread says more about the sample than about the encoder."""


def estimate_calibration(
    encoder: Encoder,
    vectors: FloatArray,
    *,
    templates: Sequence[str] = DEFAULT_TEMPLATES,
) -> Calibration:
    """μ and β for an encoder from image vectors alone; there is no presence curve without labels.

    The default mode needs μ alone. In mode `lcse` β counts too, and a spread is a rough guess of it: where similarities
    lie close together, as CLIP's do, the paper's preset ranked BUT NOT better (68.2 against 54.6). Fit both on labels,
    or take a preset, if you use that mode.

    Args:
        encoder: The encoder that made the vectors.
        vectors: (n, d) unit vectors of a mixed collection.
        templates: The prompts that concepts will be scored with.

    Raises:
        CalibrationError: there are too few images, of another encoder, or their similarities are all alike.
    """
    if vectors.ndim != 2 or vectors.shape[1] != encoder.dimension:
        raise CalibrationError(
            f"image vectors of shape {vectors.shape} are not the encoder's, which have {encoder.dimension} dimensions"
        )
    if len(vectors) < FEWEST_IMAGES:
        raise CalibrationError(
            f"{len(vectors)} images are too few to calibrate without labels; take {FEWEST_IMAGES} or more of all kinds"
        )
    found = spread_calibration(vectors @ concept_vectors(encoder, COMMON_THINGS, templates=templates).T)
    return Calibration(mu=found.mu, beta=found.beta, encoder_id=encoder.encoder_id)


def spread_calibration(similarities: ArrayLike) -> Calibration:
    """μ = median + deviation and β = 1 / deviation of any table of concept similarities.

    Raises:
        CalibrationError: the table is empty, or its similarities are not finite, or all alike.
    """
    table = np.asarray(similarities, dtype=np.float64)
    if not table.size:
        raise CalibrationError("there are no similarities to calibrate by")
    middle, above = (float(value) for value in np.percentile(table, [50.0, ONE_DEVIATION]))
    deviation = above - middle
    if not np.isfinite(table).all() or deviation < 1e-6:
        raise CalibrationError(f"similarities with a spread of {deviation:g} tell nothing apart; check the encoder")
    return Calibration(mu=above, beta=1.0 / deviation)
