"""A bounded memory: what was used last is kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

__all__ = ["LruCache"]

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
