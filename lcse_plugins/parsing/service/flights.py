"""Questions under way: who asks the same meanwhile waits for the one answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field

from lcse_plugins.forks import renew_when_forked
from lcse_plugins.parsing.cache import CacheKey
from lcse_plugins.parsing.result import Parse

__all__ = ["Abandoned", "Flight", "Flights"]


class Abandoned(Exception):
    """Whoever was asking was cancelled; one of those who waited asks in its place."""


@dataclass(frozen=True)
class Flight:
    """One question: where its answer will be, and the event loop that must run for it to come."""

    loop: asyncio.AbstractEventLoop | None
    answer: Future[Parse] = field(default_factory=Future)

    @property
    def stands_still(self) -> bool:
        """Whether its loop has been left before the answer came, and may never run again."""
        return self.loop is not None and not self.loop.is_running()


class Flights:
    """All questions of a parser that have no answer yet; a forked process begins with none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[CacheKey, Flight] = {}
        renew_when_forked(self)

    def __len__(self) -> int:
        return len(self._under_way)

    def board(self, key: CacheKey, *, loop: asyncio.AbstractEventLoop | None) -> tuple[Flight, bool]:
        """The flight for `key`, and whether it is the caller's to fly."""
        with self._lock:
            if flight := self._under_way.get(key):
                return flight, False
            flight = self._under_way[key] = Flight(loop)
            flight.answer.set_running_or_notify_cancel()  # from now on a waiter's cancellation cannot cancel it
            return flight, True

    @contextmanager
    def flying(self, key: CacheKey, flight: Flight) -> Iterator[None]:
        """The caller's own flight: until the end newcomers board it, and an error is theirs as well."""
        try:
            yield
        except BaseException as error:
            self._end(key)
            if not flight.answer.done():
                flight.answer.set_exception(error if isinstance(error, Exception) else Abandoned())
            raise
        self._end(key)

    def _end(self, key: CacheKey) -> None:
        with self._lock:
            self._under_way.pop(key, None)

    def _begin_anew(self) -> None:
        self._lock, self._under_way = threading.Lock(), {}
