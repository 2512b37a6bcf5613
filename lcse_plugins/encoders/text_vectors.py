"""The vectors of a query's texts, each encoded once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors

__all__ = ["LruCache", "TextVectors"]

CACHED_TEXTS = 4096
"""Text vectors kept; 4096 of 512 float32 numbers are 8 MB."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """The values used last, `size` of them at most. Safe to share between threads; a copy begins empty."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[type[LruCache[Key, Value]], tuple[int]]:
        return type(self), (self.size,)  # a lock cannot be copied or pickled

    def known(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Those of the keys that are kept, with their values; they count as used."""
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            for key in found:
                self._kept.move_to_end(key)
            return found

    def keep(self, values: Mapping[Key, Value]) -> None:
        """Keep these as the ones used last, and drop what is too much."""
        with self._lock:
            for key, value in values.items():
                self._kept[key] = value
                self._kept.move_to_end(key)
            while len(self._kept) > self.size:
                self._kept.popitem(last=False)


class TextVectors:
    """Makes and remembers the vectors of texts, as they are, and of concepts, by templates.

    Args:
        encoder: The encoder.
        templates: Prompts averaged into one concept vector.
    """

    def __init__(self, encoder: Encoder, templates: tuple[str, ...]) -> None:
        self._encoder = encoder
        self._templates = {"text": ("{}",), "concept": templates}
        self._kept: LruCache[tuple[str, str], FloatArray] = LruCache(CACHED_TEXTS)

    def of(self, text: str, concepts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """The (d,) vector of a text and the (m, d) vectors of concepts."""
        wanted = [("text", text), *(("concept", concept) for concept in concepts)]
        found = self._kept.known(wanted)
        for kind, templates in self._templates.items():
            names = [name for key, name in wanted if key == kind and (key, name) not in found]
            if not names:
                continue
            rows = concept_vectors(self._encoder, names, templates=templates)
            rows.flags.writeable = False
            made = {(kind, name): row for name, row in zip(names, rows, strict=True)}
            self._kept.keep(made)
            found.update(made)
        vectors = [found[key] for key in wanted]
        return vectors[0], np.stack(vectors[1:])
