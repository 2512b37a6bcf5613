"""What is made from a component's settings on first use, and kept beside them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["MadeOnce"]

T = TypeVar("T")


class MadeOnce(Generic[T]):
    """Holds what was made from some settings; made anew when they change. Copies and pickles begin empty."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: tuple[Any, T] | None = None

    def get(self, settings: Any, make: Callable[[], T]) -> T:
        """What `make` gave for these settings; threads that come together wait for one of them to make it."""
        with self._lock:
            if self._made is None or self._made[0] != settings:
                self._made = (settings, make())
            return self._made[1]

    def __reduce__(self) -> tuple[type[MadeOnce[T]], tuple[()]]:
        return type(self), ()
