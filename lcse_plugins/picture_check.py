"""Stored vectors are taken as they are, but for one look: those of the words beside a picture rank nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, LcseError
from lcse_plugins.image_cache import ImageVectorCache
from lcse_plugins.image_sources import ImageAccess, ImageLocation

__all__ = ["PictureCheck"]

SAME = 0.999
"""A cosine above this says that two vectors are of one thing, stored in whatever precision."""


class PictureCheck:
    """Looks, until one has passed, whether a stored vector is that of a picture or that of the text stored with it.

    Frameworks embed the text of a record, such as the name of its file, unless they are told otherwise, and by their
    vectors nobody can tell. Safe between threads.

    Args:
        cache: Encodes texts and pictures.
        cure: What to do about vectors of texts.
    """

    def __init__(self, cache: ImageVectorCache, *, cure: str) -> None:
        self._cache = cache
        self._cure = cure
        self._passed = False

    def look(self, vector: ArrayLike, *, name: str, text: str, picture: ImageLocation, access: ImageAccess) -> None:
        """Compare a vector with that of the text stored with it and, where they are the same, with the picture's.

        Raises:
            InvalidCandidate: it is that of the text alone.
        """
        encoder, stored = self._cache.encoder, np.ravel(np.asarray(vector, dtype=np.float32))
        if self._passed or not text.strip() or len(stored) != encoder.dimension:
            return
        if _same(stored, encoder.encode_texts([text])[0]):
            (shown,) = self._cache.vectors_at([picture], access=access)
            if isinstance(shown, LcseError) or not _same(stored, shown):
                raise InvalidCandidate(
                    f"the stored vector of {name} is that of its text, {text[:60]!r}, not of its picture; {self._cure}"
                )
        self._passed = True


def _same(stored: FloatArray, unit: FloatArray) -> bool:
    return bool(stored @ unit > SAME * np.linalg.norm(stored))
