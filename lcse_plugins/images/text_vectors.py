"""Stored vectors are taken as they are, but what is to be returned is looked at: vectors of words rank nothing.

Frameworks embed the text of a record, such as the name of its file, unless they are told otherwise, and by its numbers
nobody can tell such a vector. Words like those of the query come out on top: so the first results are compared.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, LcseError
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.keys import named_picture
from lcse_plugins.images.locations import ImageAccess, ImageLocation

__all__ = ["LOOKED_AT", "PictureCheck", "Stored"]

logger = logging.getLogger(__name__)

LOOKED_AT = 20
"""Results of a query that are compared."""

LONGEST_TEXT = 2000
"""Characters of a text that are compared; encoders hear fewer."""

SAME = 0.999
"""A cosine above this says that two vectors are of one thing, stored in whatever precision."""

REMEMBERED = 4096


@dataclass(frozen=True, eq=False)
class Stored:
    """A result as it is stored: its vector, the text beside it, and the picture that it should be the vector of."""

    name: str
    vector: FloatArray
    text: str
    picture: ImageLocation | None


class PictureCheck:
    """Tells vectors of pictures from vectors of the texts stored with them. Safe between threads.

    Args:
        cache: Encodes texts and pictures.
        access: What may be read to get a picture.
        cure: What to do about vectors of texts.
    """

    def __init__(self, cache: ImageVectorCache, *, access: ImageAccess, cure: str) -> None:
        self._cache = cache
        self._access = access
        self._cure = cure
        self._known: OrderedDict[bytes, bool] = OrderedDict()
        self._lock = threading.Lock()

    def of_texts(self, results: Sequence[Stored]) -> list[int]:
        """Places of those among the first results whose vectors are those of their texts.

        Raises:
            InvalidCandidate: all vectors that could be compared are.
        """
        compared = [
            place for place, stored in enumerate(results[:LOOKED_AT]) if stored.picture is not None and _says(stored)
        ]
        verdicts = self._verdicts([results[place] for place in compared])
        found = [place for place, of_text in zip(compared, verdicts, strict=True) if of_text]
        if found and len(found) == len(compared):
            raise InvalidCandidate(self.told(results[found[0]]))
        for place in found:
            logger.warning("left out: %s", self.told(results[place]))
        return found

    def told(self, stored: Stored) -> str:
        """What is wrong with the vector, and what to do."""
        text = stored.text[:60]
        return f"the stored vector of {stored.name} is that of its text, {text!r}, not of its picture; {self._cure}"

    def _verdicts(self, results: Sequence[Stored]) -> list[bool]:
        """For each result whether its vector is that of its text; texts not met before are encoded together."""
        keys = [sha256(s.vector.tobytes() + s.text.encode(errors="replace")).digest() for s in results]
        with self._lock:
            verdicts = {key: self._known[key] for key in keys if key in self._known}
        new = {key: stored for key, stored in zip(keys, results, strict=True) if key not in verdicts}
        if new:
            heard = self._cache.encoder.encode_texts([stored.text[:LONGEST_TEXT] for stored in new.values()])
            for (key, stored), row in zip(new.items(), heard, strict=True):
                verdicts[key] = self._is_of_text(stored, row)
        with self._lock:
            for key in keys:
                self._known[key] = verdicts[key]
                self._known.move_to_end(key)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return [verdicts[key] for key in keys]

    def _is_of_text(self, stored: Stored, heard: FloatArray) -> bool:
        if stored.picture is None or not _same(stored.vector, heard):
            return False
        (shown,) = self._cache.vectors_at([stored.picture], access=self._access)
        return isinstance(shown, LcseError) or not _same(stored.vector, shown)


def _says(stored: Stored) -> bool:
    """Whether there are words; a picture written as text is none."""
    text = stored.text.strip()
    place = named_picture(text) if text else None
    return bool(text) and not (isinstance(place, str) and place.startswith("data:"))


def _same(stored: FloatArray, unit: FloatArray) -> bool:
    return len(stored) == len(unit) and bool(stored @ unit > SAME * np.linalg.norm(stored))
