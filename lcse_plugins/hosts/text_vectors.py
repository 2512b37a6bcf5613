"""Detect stores that were filled with embeddings of the text beside a picture instead of the picture.

Frameworks embed the text of a record, such as the name of its file, unless they are told otherwise. Such a vector looks
like any other, and stands high for queries that share its words; so the best results of each query are compared with
the vectors of their texts.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from lcse_plugins.encoders.lru_cache import Recent
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, LcseError
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.keys import named_picture
from lcse_plugins.images.locations import ImageAccess, ImageLocation

__all__ = ["COMPARED_RESULTS", "StoredResult", "TextVectorCheck"]

logger = logging.getLogger(__name__)

COMPARED_RESULTS = 20
"""How many of the best results of a query are compared."""

LONGEST_TEXT = 2000
"""Characters of a text that are compared; encoders read fewer."""

SAME = 0.999
"""Two vectors with a cosine above this are of the same text or picture, stored in whatever precision."""

REMEMBERED = 4096


@dataclass(frozen=True, eq=False)
class StoredResult:
    """A result as it is stored.

    Attributes:
        name: what to call it in a message.
        vector: its (d,) vector; None where its source gives none back.
        text: the text beside it.
        picture: the picture that its vector should be of; None if it names none.
    """

    name: str
    vector: FloatArray | None
    text: str
    picture: ImageLocation | None


class TextVectorCheck:
    """Tells vectors of pictures from vectors of the texts stored with them. Safe between threads.

    Args:
        cache: Encodes texts and pictures.
        access: What may be read to get a picture.
        advice: What to do about vectors of texts, for messages.
    """

    def __init__(self, cache: ImageVectorCache, *, access: ImageAccess, advice: str) -> None:
        self._cache = cache
        self._access = access
        self._advice = advice
        self._verdicts: Recent[bytes, bool] = Recent(REMEMBERED)

    def find_text_vectors(self, results: Sequence[StoredResult]) -> list[int]:
        """Places of those among the first results whose vectors are those of their texts.

        Raises:
            InvalidCandidate: all vectors that could be compared are.
        """
        compared = {
            place: (result.text, result.vector, result.picture)
            for place, result in enumerate(results[:COMPARED_RESULTS])
            if result.vector is not None and result.picture is not None and _has_words(result.text)
        }
        verdicts = self._compare(list(compared.values()))
        found = [place for place, is_text in zip(compared, verdicts, strict=True) if is_text]
        if found and len(found) == len(compared):
            raise InvalidCandidate(self.describe_fault(results[found[0]]))
        for place in found:
            logger.warning("left out: %s", self.describe_fault(results[place]))
        return found

    def describe_fault(self, result: StoredResult) -> str:
        """What is wrong with a vector that is its text's, and what to do."""
        text = result.text[:60]
        return f"the stored vector of {result.name} is that of its text, {text!r}, not of its picture; {self._advice}"

    def _compare(self, stored: Sequence[tuple[str, FloatArray, ImageLocation]]) -> list[bool]:
        """For each text, vector and picture whether the vector is the text's; new texts are encoded together."""
        keys = [sha256(vector.tobytes() + text.encode(errors="replace")).digest() for text, vector, _ in stored]
        verdicts = self._verdicts.known(keys)
        new = {key: one for key, one in zip(keys, stored, strict=True) if key not in verdicts}
        if new:
            rows = self._cache.encoder.encode_texts([text[:LONGEST_TEXT] for text, _, _ in new.values()])
            for (key, (_, vector, picture)), text_vector in zip(new.items(), rows, strict=True):
                verdicts[key] = _same(vector, text_vector) and not self._is_of_picture(vector, picture)
        self._verdicts.keep({key: verdicts[key] for key in new})
        return [verdicts[key] for key in keys]

    def _is_of_picture(self, vector: FloatArray, picture: ImageLocation) -> bool:
        (picture_vector,) = self._cache.vectors_at([picture], access=self._access)
        return not isinstance(picture_vector, LcseError) and _same(vector, picture_vector)


def _has_words(text: str) -> bool:
    """Whether a text says something; a picture written as text does not."""
    text = text.strip()
    place = named_picture(text) if text else None
    return bool(text) and not (isinstance(place, str) and place.startswith("data:"))


def _same(stored: FloatArray, unit: FloatArray) -> bool:
    return len(stored) == len(unit) and bool(stored @ unit > SAME * np.linalg.norm(stored))
