"""Which parts of a picture are looked at beside the whole, and how they are cut out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from PIL.Image import Image

from lcse_plugins.images.reading import MIN_SIDE

__all__ = ["FEW_TILES", "Tile", "cut", "views"]


class Tile(NamedTuple):
    """A part of a picture, by shares: of the free width left of it, of the free height above it, and its own side."""

    across: float
    down: float
    side: float


FEW_TILES = tuple(Tile(x, y, 0.6) for x, y in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.5)))
"""Four corners and the centre: enough to find small people on a beach."""


def cut(image: Image, tile: Tile) -> Image:
    """A tile of a picture."""
    width, height = (max(MIN_SIDE, round(tile.side * side)) for side in image.size)
    x, y = round(tile.across * (image.width - width)), round(tile.down * (image.height - height))
    return image.crop((x, y, x + width, y + height))


def views(image: Image) -> Iterator[Image]:
    """A picture, then its tiles."""
    yield image
    for tile in FEW_TILES:
        yield cut(image, tile)
