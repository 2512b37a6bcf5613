"""An encoder made of a host's embedding model, whatever length its vectors have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from PIL.Image import Image

from lcse_plugins.encoders.batches import batched
from lcse_plugins.encoders.protocol import FloatArray, ImageSource
from lcse_plugins.errors import EncoderError, InvalidOption
from lcse_plugins.images.reading import load_image
from lcse_plugins.scoring.arguments import pictures_of, texts_of
from lcse_plugins.scoring.calibration import CLIP_PRESET, SIGLIP2_PRESET, Calibration

__all__ = ["CalibrationChoice", "EmbeddingEncoderBase"]

CalibrationChoice: TypeAlias = "Literal['clip', 'siglip2'] | Calibration"
"""The paper's numbers for a family of models, or one's own (`estimate_calibration`, `fit_calibration`)."""

_PRESETS = {"clip": CLIP_PRESET, "siglip2": SIGLIP2_PRESET}


class EmbeddingEncoderBase(ABC):
    """An `Encoder` over an embedding model of some name; a host says how the model is asked."""

    def __init__(self, name: str, *, calibration: CalibrationChoice = "clip", batch_size: int = 16) -> None:
        chosen = _PRESETS.get(calibration) if isinstance(calibration, str) else calibration
        if not isinstance(chosen, Calibration):
            raise InvalidOption(f"calibration is 'clip', 'siglip2' or a Calibration, not {calibration!r:.80}")
        chosen.check(name)
        self.encoder_id, self.calibration = name, chosen
        self._batch_size, self._dimension = batch_size, 0

    @property
    def dimension(self) -> int:
        """Length of the vectors; the model is asked once."""
        if not self._dimension:
            self.encode_texts(["a photo"])
        return self._dimension

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        """(n, d) unit rows."""
        listed = texts_of(texts)
        return self._rows(self._embed_texts(listed) if listed else [], len(listed))

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        """(n, d) unit rows; pictures are decoded a batch at a time, by the rules of `load_image`."""
        parts = []
        for batch in batched(pictures_of(images), batch_size or self._batch_size):
            opened = [image if isinstance(image, Image) else load_image(image) for image in batch]
            parts.append(self._rows(self._embed_images(opened), len(opened)))
        return np.concatenate(parts) if parts else self._rows([], 0)

    @abstractmethod
    def _embed_texts(self, texts: list[str]) -> Any:
        """One vector for each text."""

    @abstractmethod
    def _embed_images(self, images: list[Image]) -> Any:
        """One vector for each picture, decoded to RGB."""

    def _rows(self, vectors: Any, count: int) -> FloatArray:
        if count == 0:
            return np.empty((0, self._dimension), dtype=np.float32)
        try:
            rows = np.asarray(vectors, dtype=np.float64).reshape(count, self._dimension or -1)
        except (ValueError, TypeError) as error:
            raise EncoderError(f"{self.encoder_id} gave no table of {count} vectors of one length: {error}") from error
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise EncoderError(f"{self.encoder_id} gave zero or NaN vectors for some of {count} inputs")
        self._dimension = rows.shape[1]
        return np.asarray(rows / lengths, dtype=np.float32)
