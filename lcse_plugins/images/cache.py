"""Image vectors kept by the hash of the picture's bytes: the same picture is encoded once, wherever it comes from."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain
from typing import Any, TypeGuard, TypeVar

import numpy as np
from PIL.Image import Image

from lcse_plugins.encoders.batches import batched
from lcse_plugins.encoders.lru_cache import Recent
from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.errors import EncoderError, ImageError
from lcse_plugins.images.locations import (
    DEFAULT_ACCESS,
    ImageAccess,
    ImageLocation,
    is_web_url,
    location_name,
    read_images,
)
from lcse_plugins.images.reading import content_hash, load_image
from lcse_plugins.scoring.arguments import check_count, pictures_of

__all__ = ["ImageVectorCache"]

Item = TypeVar("Item")


class ImageVectorCache:
    """Pictures to vectors of one encoder, each distinct picture encoded once. Safe between threads and tasks.

    Callers that want the same picture at the same time share one encoding. A broken picture, or a failing encoder, is
    not remembered: the next call tries again.

    Args:
        encoder: What encodes the pictures.
        capacity: Vectors kept, the least recently used dropped first; 16,384 of 512 float32 numbers are 32 MB.
        batch_size: Pictures encoded at a time, which bounds memory. They are decoded one by one, as the encoder takes
            them.
    """

    def __init__(self, encoder: Encoder, *, capacity: int = 16_384, batch_size: int = 32) -> None:
        check_count("capacity", capacity)
        check_count("batch_size", batch_size)
        self.encoder = encoder
        self._batch_size = batch_size
        self._kept: Recent[str, FloatArray] = Recent(capacity)  # by hash of a picture, or by URL
        self._flights: dict[str, Future[FloatArray | ImageError | None]] = {}
        self._lock = threading.Lock()  # of the flights

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy begins empty: what is being encoded cannot be handed over."""
        return partial(type(self), capacity=self._kept.size, batch_size=self._batch_size), (self.encoder,)

    def vectors(self, pictures: Iterable[bytes | ImageError]) -> list[FloatArray | ImageError]:
        """The (d,) vector of each picture, in order; for one that cannot be decoded, its error.

        Args:
            pictures: The bytes of each picture, as `read_images` gives them; errors among them are handed through.

        Raises:
            EncoderError: the encoder gave vectors that cannot be used.
            InvalidOption: one picture was given where a list of them is due.
        """
        checked = map(_checked, pictures_of(pictures, name="pictures"))
        return self._in_chunks((picture, None) for picture in checked)

    def vectors_at(
        self, locations: Sequence[ImageLocation], *, access: ImageAccess = DEFAULT_ACCESS
    ) -> list[FloatArray | ImageError]:
        """The (d,) vector of the picture at each location, in order; for one that cannot be had, its error.

        A URL once fetched is taken to show the same picture as long as its vector is kept. Files are read each time.
        """
        listed = list(pictures_of(locations, name="locations"))
        urls = dict.fromkeys(filter(_is_url, listed))
        others = [location for location in listed if not _is_url(location)]
        found: dict[str, FloatArray | ImageError] = {**self._kept.known(urls if access.allow_urls else ())}
        unread = [url for url in urls if url not in found]
        to_read = [*unread, *others]
        read = iter(self._in_chunks(zip(read_images(to_read, access=access), to_read, strict=True)))
        fetched = {url: next(read) for url in unread}
        self._kept.keep(_sound(fetched))
        found.update(fetched)
        return [found[location] if _is_url(location) else next(read) for location in listed]

    async def avectors(self, pictures: Iterable[bytes | ImageError]) -> list[FloatArray | ImageError]:
        """As `vectors`, off the event loop. A caller that is cancelled leaves the work it began to others, whole."""
        return await asyncio.to_thread(self.vectors, pictures)

    def _in_chunks(
        self, located: Iterable[tuple[bytes | ImageError, ImageLocation | None]]
    ) -> list[FloatArray | ImageError]:
        """The vector of each picture, or its error, which names where the picture is if that is known."""
        found: list[FloatArray | ImageError] = []
        for chunk in batched(located, self._batch_size):
            keys = [content_hash(picture) if isinstance(picture, bytes) else "" for picture, _ in chunk]
            pictures = {
                key: picture for key, (picture, _) in zip(keys, chunk, strict=True) if isinstance(picture, bytes)
            }
            vectors = self._of(pictures)
            for key, (picture, location) in zip(keys, chunk, strict=True):
                outcome = picture if isinstance(picture, ImageError) else vectors[key]
                if isinstance(outcome, ImageError) and outcome is not picture and location is not None:
                    outcome = ImageError(location_name(location), outcome.reason)
                found.append(outcome)
        return found

    def _of(self, pictures: Mapping[str, bytes]) -> dict[str, FloatArray | ImageError]:
        mine: dict[str, Future[FloatArray | ImageError | None]] = {}
        others: dict[str, Future[FloatArray | ImageError | None]] = {}
        with self._lock:
            found: dict[str, FloatArray | ImageError] = {**self._kept.known(pictures)}
            for key in [key for key in pictures if key not in found]:
                if key in self._flights:
                    others[key] = self._flights[key]
                else:
                    mine[key] = self._flights[key] = Future()
        encoded: Mapping[str, FloatArray | ImageError] = {}
        try:
            encoded = self._encode({key: pictures[key] for key in mine})
        finally:  # also when encoding failed: whoever waits is told, and does the work itself
            self._land(mine, encoded)
        found.update(encoded)
        for key, flight in others.items():  # waited for only after one's own work: no two callers can block each other
            landed = flight.result()
            found.update(self._of({key: pictures[key]}) if landed is None else {key: landed})
        return found

    def _land(
        self,
        flights: Mapping[str, Future[FloatArray | ImageError | None]],
        encoded: Mapping[str, FloatArray | ImageError],
    ) -> None:
        self._kept.keep(_sound(encoded))  # before the flight ends: whoever comes then must find it
        with self._lock:
            for key in flights:
                del self._flights[key]
        for key, flight in flights.items():
            flight.set_result(encoded.get(key))

    def _encode(self, pictures: Mapping[str, bytes]) -> dict[str, FloatArray | ImageError]:
        broken: dict[str, FloatArray | ImageError] = {}
        images = _opened(pictures, broken)
        first = next(images, None)
        if first is None:
            return broken
        taken = self.encoder.encode_images(chain([first], images), batch_size=self._batch_size)
        rows, sound = np.asarray(taken, np.float32), [key for key in pictures if key not in broken]
        if rows.shape != (len(sound), self.encoder.dimension) or not np.isfinite(rows).all():
            raise EncoderError(
                f"encoder {self.encoder.encoder_id!r} gave vectors of shape {rows.shape}, some maybe NaN, for "
                f"{len(sound)} pictures; they must be finite and {self.encoder.dimension} long"
            )
        return {**{key: _frozen(row) for key, row in zip(sound, rows, strict=True)}, **broken}


def _sound(found: Mapping[str, FloatArray | ImageError]) -> dict[str, FloatArray]:
    return {key: vector for key, vector in found.items() if not isinstance(vector, ImageError)}


def _frozen(row: FloatArray) -> FloatArray:
    """A copy of its own, lest one kept row keep a whole batch; shared by all callers, it cannot be written."""
    vector: FloatArray = np.array(row, dtype=np.float32)
    vector.flags.writeable = False
    return vector


def _checked(picture: object) -> bytes | ImageError:
    if isinstance(picture, bytes | ImageError):
        return picture
    kind = type(picture).__name__
    return ImageError(kind, f"the bytes of a picture are due, not {kind}; `vectors_at` takes paths and URLs")


def _is_url(location: ImageLocation) -> TypeGuard[str]:
    return isinstance(location, str) and is_web_url(location)


def _opened(pictures: Mapping[str, bytes], broken: dict[str, FloatArray | ImageError]) -> Iterator[Image]:
    """Each picture that can be decoded, when it is asked for; the errors of the others are put into `broken`."""
    for key, picture in pictures.items():
        try:
            yield load_image(picture)
        except ImageError as error:
            broken[key] = error
