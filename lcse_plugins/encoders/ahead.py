"""Work that goes on in threads ahead of whoever takes its results, and no further than it may."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from lcse_plugins.errors import InvalidOption

__all__ = ["map_ahead"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ahead(
    function: Callable[[Item], Result], items: Iterable[Item], *, workers: int = 2, prefetch: int = 4
) -> Iterator[Result]:
    """`map` in threads that work ahead: results in order, at most `prefetch` of them waiting.

    Args:
        function: What to do with each item.
        items: Drawn only as fast as results are taken.
        workers: Threads; 0 works in the calling thread.
        prefetch: Most items taken ahead of the consumer.
    """
    if workers < 0 or prefetch < 1:
        raise InvalidOption(f"workers is at least 0 and prefetch at least 1, not {workers} and {prefetch}")
    return _map_in_threads(function, iter(items), workers, prefetch) if workers else map(function, items)


def _map_in_threads(
    function: Callable[[Item], Result], items: Iterator[Item], workers: int, prefetch: int
) -> Iterator[Result]:
    with ThreadPoolExecutor(workers, thread_name_prefix="lcse-images") as pool:
        ahead: deque[Future[Result]] = deque()
        try:
            begun = _begin(pool, function, items)
            ahead.extend(islice(begun, prefetch))
            while ahead:
                result = ahead.popleft().result()
                ahead.extend(islice(begun, 1))
                yield result
        finally:
            for future in ahead:
                future.cancel()


def _begin(
    pool: ThreadPoolExecutor, function: Callable[[Item], Result], items: Iterator[Item]
) -> Iterator[Future[Result]]:
    """Each item at work; a failure of `items` itself comes last, so that what came before it is not lost."""
    try:
        for item in items:
            yield pool.submit(function, item)
    except Exception as error:
        failed: Future[Result] = Future()
        failed.set_exception(error)
        yield failed
