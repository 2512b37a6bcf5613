"""Which parts of a picture are looked at beside the whole, and how they are cut out."""

from __future__ import annotations

from collections.abc import Iterator

from PIL.Image import Image

from lcse_plugins.images.reading import MIN_SIDE

__all__ = ["FEW_TILES", "cut", "views"]

FEW_TILES = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.5))
"""Four corners and the centre: shares of the free width left of a tile, and of the free height above it."""

TILE_SIDE = 0.6
"""The share of a picture's width and height that a tile takes: enough to find small people on a beach."""


def cut(image: Image, tile: tuple[float, float]) -> Image:
    """A tile of a picture."""
    width, height = (max(MIN_SIDE, round(TILE_SIDE * side)) for side in image.size)
    x, y = round(tile[0] * (image.width - width)), round(tile[1] * (image.height - height))
    return image.crop((x, y, x + width, y + height))


def views(image: Image) -> Iterator[Image]:
    """A picture, then its tiles."""
    yield image
    for tile in FEW_TILES:
        yield cut(image, tile)
