"""Arithmetic off the event loop, in few threads.

A loop shares the interpreter's lock with every thread that computes: each time it wakes it waits for its turn, and the
more threads compete the longer. asyncio's own pool has four threads more than there are cores, which suits waiting for
disks and networks. What only computes runs here instead; answers come no later, since no more can compute at once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import ParamSpec, TypeVar

__all__ = ["WORKERS", "compute"]

WORKERS = max(1, min(4, (os.cpu_count() or 1) // 2))
"""Threads that compute: one core in two, so that the loop finds one free, and four at most."""

P = ParamSpec("P")
T = TypeVar("T")


async def compute(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a function that only computes; one that may wait for something belongs in `asyncio.to_thread`."""
    work = partial(copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads(), work)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(WORKERS, thread_name_prefix="lcse-compute")


if hasattr(os, "register_at_fork"):  # a forked process inherits the pool without its threads
    os.register_at_fork(after_in_child=_threads.cache_clear)
