"""Every kind of pixel as 8-bit RGB: grey of many bits, floats, palettes, transparency."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["to_rgb"]

_BITS, _PHOTOMETRIC, _SAMPLE_FORMAT = 258, 262, 339  # tags of a TIFF file
_WHITE_IS_ZERO, _UNSIGNED = 0, 1


def to_rgb(image: Image.Image) -> Image.Image:
    """A copy of a loaded picture as 8-bit RGB, transparency laid over white."""
    if image.mode.startswith("I"):
        return Image.fromarray(_grey_of_integers(image)).convert("RGB")
    if image.mode == "F":
        values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0.0, neginf=0.0)
        return Image.fromarray(_stretched(values)).convert("RGB")
    if image.has_transparency_data:
        transparent = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", transparent.size, "white"), transparent).convert("RGB")
    return image.copy() if image.mode == "RGB" else image.convert("RGB")


def _grey_of_integers(image: Image.Image) -> NDArray[np.uint8]:
    """Grey of more than 8 bits, scaled; Pillow would clip it at 255, and reads unsigned 32 bits as signed."""
    tags = getattr(image, "tag_v2", {})
    bits = tags.get(_BITS, (16,))[0]
    values = np.asarray(image, dtype=np.int64)
    if bits == 32 and tags.get(_SAMPLE_FORMAT, (_UNSIGNED,))[0] == _UNSIGNED:
        values = values & 0xFFFF_FFFF
    white = _white(values) if image.mode == "I" else 2**bits - 1
    grey = _stretched(values) if white is None else ((values * 255 + white // 2) // white).astype(np.uint8)
    return 255 - grey if tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO else grey


def _white(values: NDArray[np.int64]) -> int | None:
    """32-bit integers hold pictures of 8 or of 16 bits as they are; others have no agreed white."""
    low, high = values.min(), values.max()
    return next((white for white in (255, 65_535) if 0 <= low and high <= white), None)


def _stretched(values: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.uint8]:
    """The range of values without an agreed white, stretched to the whole of 8 bits."""
    low, high = float(values.min()), float(values.max())
    return np.rint((values - low) * (255.0 / max(high - low, 1e-12))).astype(np.uint8)
