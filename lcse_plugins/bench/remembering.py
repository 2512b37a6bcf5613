"""An encoder that reads each text once, so that many modes and many queries can be measured on one model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lcse_plugins.encoders.batches import batched
from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource
from lcse_plugins.scoring.calibration import Calibration

__all__ = ["RememberingEncoder"]

READ_AT_ONCE = 256


class RememberingEncoder:
    """Passes on to another encoder and keeps every text vector it gave.

    Args:
        encoder: The encoder to ask.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._kept: dict[str, FloatArray] = {}

    @property
    def encoder_id(self) -> str:
        """Identity of the encoder behind."""
        return self._encoder.encoder_id

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._encoder.dimension

    @property
    def calibration(self) -> Calibration | None:
        """The preset of the encoder behind."""
        return self._encoder.calibration

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        """(n, d) unit rows, read in large batches and never twice."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._kept]
        for part in batched(missing, READ_AT_ONCE):
            self._kept.update(zip(part, self._encoder.encode_texts(part), strict=True))
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.stack([self._kept[text] for text in texts])

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        """(n, d) unit rows of the encoder behind."""
        return self._encoder.encode_images(images, batch_size=batch_size)
