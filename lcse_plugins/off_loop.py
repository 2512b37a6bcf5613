"""Work off the event loop: arithmetic in few threads, waiting in threads that nobody else can fill.

A loop shares the interpreter's lock with every thread that computes: each time it wakes it waits for its turn, and the
more threads compete the longer. asyncio's own pool has four threads more than there are cores, which suits waiting for
disks and networks. What only computes runs in `compute`; answers come no later, since no more can compute at once.
Work that threads of asyncio's pool may be waiting for runs in `wait`, in threads of its own: in that pool it might wait
for a free thread while all of them wait for it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import ParamSpec, TypeVar

from lcse_plugins.forks import in_forked_process

__all__ = ["WORKERS", "compute", "wait"]

WORKERS = max(1, min(4, (os.cpu_count() or 1) // 2))
"""Threads that compute: one core in two, so that the loop finds one free, and four at most."""

_WAITERS = 32

P = ParamSpec("P")
T = TypeVar("T")


async def compute(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a function that only computes; one that may wait for something belongs in `asyncio.to_thread`."""
    return await _run(_threads(), partial(copy_context().run, function, *args, **kwargs))


async def wait(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a function that may wait for a disk or a network, and that threads of `to_thread` may wait for."""
    return await _run(_waiting_threads(), partial(copy_context().run, function, *args, **kwargs))


async def _run(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    try:
        answer = asyncio.get_running_loop().run_in_executor(pool, work)
    except RuntimeError:  # the main thread has ended, and pools take nothing more
        return work()
    return await answer


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(WORKERS, thread_name_prefix="lcse-compute")


@cache
def _waiting_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WAITERS, thread_name_prefix="lcse-wait")


in_forked_process(_threads.cache_clear)  # which inherits the pools without their threads
in_forked_process(_waiting_threads.cache_clear)
