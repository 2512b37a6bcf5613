"""As many vectors as wanted, with the structure of real ones.

A row is one photograph's vector, moved by half the difference of two others (so that it varies as photographs do) and
jittered by Gaussian noise of length `NOISE`. For more dimensions than the encoder has, its space is turned into a
larger one by a random isometry, which keeps every cosine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lcse_plugins.calibrate import Calibration
from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource
from lcse_plugins.errors import InvalidOption

__all__ = ["NOISE", "WidenedEncoder", "resample"]

NOISE = 0.45
"""Length of the jitter, beside photographs of length one."""


def resample(photographs: FloatArray, rows: int, rng: np.random.Generator) -> FloatArray:
    """(rows, d) unit vectors with the structure of (n, d) photographs: one of them, moved and jittered."""
    chosen, towards, away = (rng.integers(0, len(photographs), rows) for _ in range(3))
    vectors = photographs[chosen] + 0.5 * (photographs[towards] - photographs[away]) / np.float32(np.sqrt(2.0))
    dimension = photographs.shape[1]
    vectors += (NOISE / np.sqrt(dimension)) * rng.standard_normal(vectors.shape, dtype=np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


class WidenedEncoder:
    """An encoder whose vectors are turned into more dimensions by a random isometry: every cosine stays."""

    def __init__(self, encoder: Encoder, dimension: int, rng: np.random.Generator) -> None:
        if dimension < encoder.dimension:
            raise InvalidOption(f"dimension is at least the encoder's {encoder.dimension}, not {dimension}")
        self._encoder = encoder
        self._turn = np.linalg.qr(rng.standard_normal((dimension, encoder.dimension)))[0].T.astype(np.float32)

    @property
    def encoder_id(self) -> str:
        """That of the encoder, and the width."""
        return f"{self._encoder.encoder_id}/widened-{self.dimension}"

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(self._turn.shape[1])

    @property
    def calibration(self) -> Calibration | None:
        """That of the encoder: an isometry changes no cosine."""
        own = self._encoder.calibration
        return None if own is None else Calibration(mu=own.mu, beta=own.beta)

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        """(n, dimension) unit rows."""
        return np.asarray(self._encoder.encode_texts(texts) @ self._turn)

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        """(n, dimension) unit rows."""
        return np.asarray(self._encoder.encode_images(images, batch_size=batch_size) @ self._turn)
