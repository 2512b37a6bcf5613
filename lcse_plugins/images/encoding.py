"""Pictures to vectors, decoded as the encoder takes them: memory stays bounded however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from PIL.Image import Image

from lcse_plugins.encoders.batches import map_ahead
from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource, checked
from lcse_plugins.errors import EncoderError, ImageError
from lcse_plugins.images.reading import load_image
from lcse_plugins.scoring.arguments import check_count

__all__ = ["encode_files", "encode_stream", "load_or_error"]

Key = TypeVar("Key")


def encode_files(
    encoder: Encoder, paths: Iterable[str | Path | ImageError], *, batch_size: int = 64
) -> Iterator[tuple[Path, FloatArray | ImageError]]:
    """Each path with the (d,) vector of its picture, or with its error, in order; a broken picture spoils no other.

    Pictures are decoded in threads ahead of the encoder, no more than a few at once and large ones smaller, so that a
    folder of any size takes the same memory.
    """
    check_count("batch_size", batch_size)

    def load(path: str | Path | ImageError) -> tuple[Path, Image | ImageError]:
        return (Path(path.source), path) if isinstance(path, ImageError) else (Path(path), load_or_error(path))

    for path, found in encode_stream(checked(encoder), map_ahead(load, paths), batch_size=batch_size):
        if found is not None:
            yield path, found if isinstance(found, ImageError) else found[0]


def encode_stream(
    encoder: Encoder,
    pictures: Iterable[tuple[Key, Image | ImageError | None]],
    *,
    batch_size: int,
    views: Callable[[Image], Iterable[Image]] | None = None,
) -> Iterator[tuple[Key, FloatArray | ImageError | None]]:
    """Each key with the (n_views, d) vectors of its picture, in order; an error or None in its place is handed on.

    Pictures are drawn one by one while the encoder works. `views` says what of a picture is encoded, as many views of
    each; by default the picture itself.
    """
    waiting = iter(pictures)
    while True:
        met: list[tuple[Key, bool, ImageError | None]] = []
        images = _views_of(islice(waiting, batch_size), met, views or (lambda image: (image,)))
        first = next(images, None)
        if not met:
            return
        rows: Iterator[FloatArray] = iter(())
        if first is not None:  # else the encoder need not even load its model
            table = encoder.encode_images(chain([first], images))
            sound = sum(encoded for _, encoded, _ in met)
            if next(images, None) is not None or len(table) % sound:
                raise EncoderError(f"encoder {encoder.encoder_id!r} gave {len(table)} vectors for {sound} pictures")
            rows = iter(table.reshape(sound, -1, table.shape[1]))
        for key, encoded, other in met:
            yield key, next(rows) if encoded else other


def _views_of(
    pictures: Iterable[tuple[Key, Image | ImageError | None]],
    met: list[tuple[Key, bool, ImageError | None]],
    views: Callable[[Image], Iterable[Image]],
) -> Iterator[Image]:
    for key, picture in pictures:
        if isinstance(picture, Image):
            met.append((key, True, None))
            yield from views(picture)
        else:
            met.append((key, False, picture))


def load_or_error(source: ImageSource) -> Image | ImageError:
    """The picture as `load_image` gives it, or why it cannot be read."""
    try:
        return load_image(source)
    except ImageError as error:
        return error
