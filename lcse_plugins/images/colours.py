"""Every kind of pixel as 8-bit RGB, large pictures smaller: deep grey, floats, palettes, transparency."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["to_rgb"]

_STRIP = 64  # rows of the result that are converted at a time, so that large pictures are not copied whole


def to_rgb(image: Image.Image, *, shrink: int = 1) -> Image.Image:
    """A copy of a loaded picture as 8-bit RGB, transparency laid over white.

    Args:
        image: The picture, which is not changed.
        shrink: Each square of so many pixels becomes one, their mean; what is left at the edges is cut off.
    """
    if image.mode[0] in "IF":
        return Image.fromarray(_deep_grey(image, shrink)).convert("RGB")
    if shrink == 1:
        return _over_white(image)
    width, height = (side // shrink for side in image.size)
    smaller = Image.new("RGB", (width, height))
    for top in range(0, height, _STRIP):
        bottom = min(top + _STRIP, height)
        strip = _over_white(image.crop((0, top * shrink, width * shrink, bottom * shrink)))
        smaller.paste(strip.reduce(shrink), (0, top))
    return smaller


def _over_white(image: Image.Image) -> Image.Image:
    if image.has_transparency_data:
        transparent = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", transparent.size, "white"), transparent).convert("RGB")
    return image.copy() if image.mode == "RGB" else image.convert("RGB")


def _deep_grey(image: Image.Image, shrink: int) -> NDArray[np.uint8]:
    """Grey of more than 8 bits, which Pillow would clip at 255: 8 or 16 bits as they are, else stretched."""
    pixels = np.asarray(image)
    height, width = (side // shrink for side in pixels.shape)
    values = np.empty((height, width))
    for y in range(height):  # row by row; what is not finite counts as 0
        rows = pixels[y * shrink : (y + 1) * shrink, : width * shrink].astype(np.float64)
        values[y] = np.nan_to_num(rows, posinf=0.0, neginf=0.0).reshape(shrink, width, shrink).mean(axis=(0, 2))
    low, high = float(values.min()), float(values.max())
    if image.mode != "F" and low >= 0 and high <= 65_535:
        low, high = 0.0, 255.0 if image.mode == "I" and high <= 255 else 65_535.0
    return np.asarray(np.rint((values - low) * (255.0 / max(high - low, 1e-12))), dtype=np.uint8)
