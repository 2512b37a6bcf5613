"""As many vectors as wanted, with the structure of real ones.

A row is one photograph's vector, jittered by Gaussian noise with the covariance of all of them: rows lie where
photographs lie and vary in the directions in which photographs vary. `JITTER` is set by measurement: as many rows as
there were real photographs (5,832) are as far from their nearest neighbour as those were (0.71, in the median), under
the starter encoder. For more dimensions than the encoder has, its space is turned into a larger one by a random
isometry, which keeps every cosine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource
from lcse_plugins.errors import InvalidOption
from lcse_plugins.scoring.calibration import Calibration

__all__ = ["JITTER", "WidenedEncoder", "resample"]

JITTER = 0.62
"""Share of the standard deviation that is noise; the rest is a photograph's own."""

ROWS_AT_ONCE = 10_000


def resample(photographs: FloatArray, rows: int, rng: np.random.Generator) -> FloatArray:
    """(rows, d) unit vectors with the structure of (n, d) photographs: one of them each, jittered as they vary."""
    centre = photographs.mean(axis=0)
    spread = photographs - centre
    made = np.empty((rows, photographs.shape[1]), dtype=np.float32)
    for start in range(0, rows, ROWS_AT_ONCE):
        count = min(ROWS_AT_ONCE, rows - start)
        chosen = spread[rng.integers(0, len(spread), count)]
        noise = rng.standard_normal((count, len(spread)), dtype=np.float32) @ spread / np.float32(np.sqrt(len(spread)))
        made[start : start + count] = (
            centre + np.float32(np.sqrt(1.0 - JITTER**2)) * chosen + np.float32(JITTER) * noise
        )
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


class WidenedEncoder:
    """An encoder whose vectors are turned into more dimensions by a random isometry: every cosine stays."""

    def __init__(self, encoder: Encoder, dimension: int, rng: np.random.Generator) -> None:
        if dimension < encoder.dimension:
            raise InvalidOption(f"dimension is at least the encoder's {encoder.dimension}, not {dimension}")
        self._encoder = encoder
        self._turn = np.linalg.qr(rng.standard_normal((dimension, encoder.dimension)))[0].T.astype(np.float32)
        self.encoder_id, self.dimension = f"{encoder.encoder_id}/widened-{dimension}", dimension
        own = encoder.calibration  # an isometry changes no cosine
        self.calibration = None if own is None else Calibration(mu=own.mu, beta=own.beta)

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        """(n, dimension) unit rows."""
        return np.asarray(self._encoder.encode_texts(texts) @ self._turn)

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        """(n, dimension) unit rows."""
        return np.asarray(self._encoder.encode_images(images, batch_size=batch_size) @ self._turn)
