"""Items in batches, and work in threads ahead of whoever takes its results; nothing is drawn before its time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["batched", "map_ahead"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` items, the last one perhaps shorter; no more is drawn than the batch that is asked for."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def map_ahead(function: Callable[[Item], Result], items: Iterable[Item], *, workers: int = 2) -> Iterator[Result]:
    """`map` in so many threads that work ahead: results in order, at most twice as many of them waiting."""
    rest, ahead = iter(items), deque[Future[Result]]()
    with ThreadPoolExecutor(workers, thread_name_prefix="lcse-images") as pool:
        try:
            while True:
                for item in islice(rest, 2 * workers - len(ahead)):
                    ahead.append(pool.submit(function, item))
                if not ahead:
                    return
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()
