"""Image vectors kept by the hash of the picture's bytes: the same picture is encoded once, wherever it comes from."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from lcse_plugins.encoders.batches import batched
from lcse_plugins.encoders.protocol import Encoder, FloatArray, checked
from lcse_plugins.encoders.text_vectors import LruCache
from lcse_plugins.errors import ImageError
from lcse_plugins.images.encoding import encode_stream, load_or_error
from lcse_plugins.images.locations import (
    DEFAULT_ACCESS,
    ImageAccess,
    ImageLocation,
    is_web_url,
    location_name,
    read_images,
)
from lcse_plugins.images.reading import content_hash
from lcse_plugins.scoring.arguments import check_count, pictures_of

__all__ = ["ImageVectorCache"]


class ImageVectorCache:
    """Pictures to vectors of one encoder, each distinct picture encoded once. Safe between threads.

    One batch is encoded at a time: a caller that wants pictures another one is encoding waits, and finds them. A broken
    picture, or a failing encoder, is not remembered: the next call tries again.

    Args:
        encoder: What encodes the pictures.
        capacity: Vectors kept, the least recently used dropped first; 16,384 of 512 float32 numbers are 32 MB.
        batch_size: Pictures read and encoded at a time, which bounds memory. They are decoded one by one, as the
            encoder takes them.
    """

    def __init__(self, encoder: Encoder, *, capacity: int = 16_384, batch_size: int = 32) -> None:
        check_count("capacity", capacity)
        check_count("batch_size", batch_size)
        self.encoder = checked(encoder)
        self._batch_size = batch_size
        self._kept: LruCache[str, FloatArray] = LruCache(capacity)  # by hash of a picture, or by URL
        self._encoding = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy begins empty."""
        return partial(type(self), capacity=self._kept.size, batch_size=self._batch_size), (self.encoder,)

    def vectors_at(
        self, locations: Sequence[ImageLocation], *, access: ImageAccess = DEFAULT_ACCESS
    ) -> list[FloatArray | ImageError]:
        """The (d,) vector of the picture at each location, in order; for one that cannot be had, its error.

        A URL once fetched is taken to show the same picture as long as its vector is kept. Files are read each time.
        """
        listed = [(place if isinstance(place, Hashable) else id(place), place) for place in pictures_of(locations)]
        places = dict(listed)
        urls = [place for place in places.values() if isinstance(place, str) and is_web_url(place)]
        found: dict[Any, FloatArray | ImageError] = {**self._kept.known(urls if access.allow_urls else ())}
        new = {key: place for key, place in places.items() if key not in found}
        for key, vector in zip(new, self._vectors(list(new.values()), access), strict=True):
            found[key] = vector
            if key in urls and not isinstance(vector, ImageError):
                self._kept.keep({key: vector})
        return [found[key] for key, _ in listed]

    def _vectors(self, places: Sequence[ImageLocation], access: ImageAccess) -> Iterator[FloatArray | ImageError]:
        """The vector of each picture, or its error, which names where the picture is."""
        for chunk in batched(zip(places, read_images(places, access=access), strict=True), self._batch_size):
            keyed = [(place, "" if isinstance(data, ImageError) else content_hash(data), data) for place, data in chunk]
            vectors = self._encoded({key: data for _, key, data in keyed if isinstance(data, bytes)})
            for place, key, data in keyed:
                vector = data if isinstance(data, ImageError) else vectors[key]
                yield ImageError(location_name(place), vector.reason) if isinstance(vector, ImageError) else vector

    def _encoded(self, pictures: dict[str, bytes]) -> dict[str, FloatArray | ImageError]:
        found: dict[str, FloatArray | ImageError] = {**self._kept.known(pictures)}
        if len(found) == len(pictures):
            return found
        with self._encoding:
            found.update(self._kept.known(pictures))  # another caller may have encoded them meanwhile
            opened = ((key, load_or_error(data)) for key, data in pictures.items() if key not in found)
            for key, rows in encode_stream(self.encoder, opened, batch_size=self._batch_size):
                if isinstance(rows, np.ndarray):
                    vector: FloatArray = np.array(rows[0], dtype=np.float32)  # of its own, lest it keep a whole batch
                    vector.flags.writeable = False  # shared by all callers
                    self._kept.keep({key: vector})
                    found[key] = vector
                elif rows is not None:
                    found[key] = rows
        return found
