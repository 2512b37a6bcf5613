"""Pictures that say what they show, and an encoder that sees it: each word of a small vocabulary is a colour."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO

import numpy as np
from PIL import Image

from lcse_plugins.encoders.protocol import FloatArray, ImageSource
from lcse_plugins.images.reading import load_image
from lcse_plugins.testing import ToyEncoder

COLOURS = {
    "umbrella": (255, 0, 0), "person": (0, 255, 0), "bench": (0, 0, 255), "car": (255, 255, 0),
    "street": (0, 255, 255), "dog": (255, 0, 255), "cat": (255, 255, 255), "sofa": (0, 0, 0),
}  # fmt: skip
WORDS = {colour: word for word, colour in COLOURS.items()}

GALLERY = (
    "umbrella person", "umbrella", "person", "umbrella bench", "person bench", "car street", "street",
    "car person street", "dog person", "cat sofa", "dog cat sofa", "dog",
)  # fmt: skip
"""What the pictures of the test collection show."""


def painted(shown: str) -> bytes:
    """A PNG of one stripe for each word."""
    colours = [COLOURS[word] for word in shown.split()]
    stream = BytesIO()
    Image.fromarray(np.repeat(np.array([colours], dtype=np.uint8), 8, axis=0).repeat(8, axis=1)).save(stream, "PNG")
    return stream.getvalue()


class PaintedEncoder(ToyEncoder):
    """Sees the words of painted pictures, from paths, bytes or opened images alike."""

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        rows = []
        for image in images:
            colours = np.asarray(load_image(image))[0].tolist()
            rows.append(self._sum(" ".join(dict.fromkeys(WORDS[r, g, b] for r, g, b in colours))))
        self.images_encoded += len(rows)
        return self._rows(rows)
