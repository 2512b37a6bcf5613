"""Which parts of a picture are looked at beside the whole, and how they are cut out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from PIL.Image import Image

from lcse_plugins.images.reading import MIN_SIDE

__all__ = ["FEW_TILES", "MANY_TILES", "TILES", "Tile", "TileChoice", "cut", "describe_tiles", "views"]


class Tile(NamedTuple):
    """A part of a picture, by shares: of the free width left of it, of the free height above it, and its own side."""

    across: float
    down: float
    side: float


FEW_TILES = tuple(Tile(x, y, 0.6) for x, y in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.5)))
"""Four corners and the centre."""

MANY_TILES = FEW_TILES + tuple(Tile(x, y, 0.45) for y in (0.0, 0.5, 1.0) for x in (0.0, 0.5, 1.0))
"""Those, and nine smaller ones: a little better, for two and a half times the vectors."""

TileChoice: TypeAlias = Literal["few", "many"]

TILES: dict[TileChoice, tuple[Tile, ...]] = {"few": FEW_TILES, "many": MANY_TILES}
"""The choices by name."""


def describe_tiles(tiles: Sequence[Tile]) -> str:
    """What a choice of tiles is called: none, few, many, or how many there are."""
    names = [name for name, choice in TILES.items() if choice == tuple(tiles)]
    return names[0] if names else str(len(tiles)) if tiles else "none"


def cut(image: Image, tile: Tile) -> Image:
    """A tile of a picture."""
    width, height = (max(MIN_SIDE, round(tile.side * side)) for side in image.size)
    x, y = round(tile.across * (image.width - width)), round(tile.down * (image.height - height))
    return image.crop((x, y, x + width, y + height))


def views(image: Image, tiles: Sequence[Tile]) -> Iterator[Image]:
    """A picture, then its tiles."""
    yield image
    for tile in tiles:
        yield cut(image, tile)
