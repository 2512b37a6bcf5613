"""Small copies of pictures, for pages and messages that carry them inside."""

from __future__ import annotations

from io import BytesIO

from lcse_plugins.encoders.protocol import ImageSource
from lcse_plugins.errors import InvalidOption
from lcse_plugins.images.reading import load_image

__all__ = ["SMALLEST_SIDE", "jpeg_thumbnail"]

SMALLEST_SIDE = 64
"""Pixels of the longer side below which a picture is not shrunk: it would show nothing."""

QUALITY = 85
"""JPEG quality: artefacts are hard to see, and files a fifth the size of the best quality's."""


def jpeg_thumbnail(source: ImageSource, *, max_side: int = 768, max_bytes: int | None = None) -> bytes | None:
    """The picture as a JPEG file whose longer side is at most `max_side`; upright, without metadata.

    It shrinks further, by halves, until the file has at most `max_bytes`; None if even `SMALLEST_SIDE` pixels are more.
    """
    if max_side < SMALLEST_SIDE:
        raise InvalidOption(f"max_side is at least {SMALLEST_SIDE} pixels, not {max_side}")
    picture = load_image(source)
    while True:
        picture.thumbnail((max_side, max_side))
        stream = BytesIO()
        picture.save(stream, "JPEG", quality=QUALITY, optimize=True)
        if max_bytes is None or stream.tell() <= max_bytes:
            return stream.getvalue()
        if max(picture.size) <= SMALLEST_SIDE:
            return None
        max_side = max(SMALLEST_SIDE, max(picture.size) // 2)
