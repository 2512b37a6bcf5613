"""Notice stores that were filled with embeddings of the text beside a picture instead of the picture.

Frameworks embed the text of a record, such as the name of its file, unless they are told otherwise. Such a vector looks
like any other, and stands high for queries that share its words. So a few of the best results are compared with the
vectors of their texts: two of each query until enough were found sound, then one now and then. Once one was not, all
of the best are compared. Over a hundred queries that is about one text in a hundred of those encoded anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.encoders.text_vectors import LruCache
from lcse_plugins.errors import InvalidCandidate, LcseError
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.keys import holds_picture
from lcse_plugins.images.locations import ImageAccess, ImageLocation

__all__ = ["COMPARED_RESULTS", "StoredResult", "TextVectorCheck"]

logger = logging.getLogger(__name__)

COMPARED_RESULTS = 20
"""How many of the best results of a query are compared where a vector of a text was found."""

SAMPLED, ENOUGH, NOW_AND_THEN = 2, 8, 32
"""Results that a query compares while all were sound; after so many sound ones, one result in one query of so many."""

SAME = 0.999
"""Two vectors with a cosine above this are of the same text or picture, stored in whatever precision."""


@dataclass(frozen=True, eq=False)
class StoredResult:
    """A result as it is stored: its name for messages, its (d,) vector, the text beside it, and its picture."""

    name: str
    vector: FloatArray | None
    text: str
    picture: ImageLocation | None

    @property
    def comparable(self) -> bool:
        """Whether it should have a picture's vector and could have a text's."""
        text = self.text.strip()
        return self.vector is not None and self.picture is not None and bool(text) and not holds_picture(text)

    def has(self, unit: FloatArray) -> bool:
        """Whether a unit vector (d,) is the stored one."""
        vector = self.vector
        return vector is not None and len(vector) == len(unit) and bool(vector @ unit > SAME * np.linalg.norm(vector))


class TextVectorCheck:
    """Tells vectors of pictures from those of texts, and advises what to do about these. Safe between threads."""

    def __init__(self, cache: ImageVectorCache, *, access: ImageAccess, advice: str) -> None:
        self._cache, self._access, self._advice = cache, access, advice
        self._rows: LruCache[str, FloatArray] = LruCache(1024)
        self._asked = self._sound = 0
        self._alarmed = False

    def find_text_vectors(self, results: Sequence[StoredResult]) -> list[int]:
        """Places of results whose vectors are those of their texts, as far as compared; InvalidCandidate if all are."""
        self._asked += 1
        settled = self._sound >= ENOUGH and not self._alarmed
        if settled and self._asked % NOW_AND_THEN:
            return []
        places = [place for place, one in enumerate(results[:COMPARED_RESULTS]) if one.comparable]
        if not self._alarmed:
            sample = places[: 1 if settled else SAMPLED]
            self._alarmed = bool(self._of_texts(results, sample))
            if not self._alarmed:
                self._sound += len(sample)
                return []
        found = self._of_texts(results, places)
        if found and len(found) == len(places):
            raise InvalidCandidate(self.describe_fault(results[found[0]]))
        for place in found:
            logger.warning("left out: %s", self.describe_fault(results[place]))
        return found

    def describe_fault(self, result: StoredResult) -> str:
        """What is wrong with a vector that is its text's, and what to do."""
        text = result.text[:60]
        return f"the stored vector of {result.name} is that of its text, {text!r}, not of its picture; {self._advice}"

    def _of_texts(self, results: Sequence[StoredResult], places: Sequence[int]) -> list[int]:
        """Those of the places where the vector is the text's; new texts are encoded together."""
        texts = {place: results[place].text[:2000] for place in places}
        rows = self._rows.known(texts.values())
        if new := [text for text in dict.fromkeys(texts.values()) if text not in rows]:
            made = dict(zip(new, self._cache.encoder.encode_texts(new), strict=True))
            self._rows.keep(made)
            rows.update(made)
        return [i for i, text in texts.items() if results[i].has(rows[text]) and not self._is_of_picture(results[i])]

    def _is_of_picture(self, result: StoredResult) -> bool:
        assert result.picture is not None
        (vector,) = self._cache.vectors_at([result.picture], access=self._access)
        return not isinstance(vector, LcseError) and result.has(vector)
