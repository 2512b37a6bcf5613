"""How long an event loop was kept from its work, seen from inside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["BEAT", "Pulse", "with_heartbeat"]

BEAT = 0.002
"""Seconds between two beats."""

T = TypeVar("T")


@dataclass(frozen=True)
class Pulse:
    """What the beats showed.

    Attributes:
        beats: how many there were.
        longest_stall: the most seconds a beat came late; whatever kept the loop, this process or another.
        longest_work: the most seconds of processor time that the loop's own thread used between two beats: what its
            tasks kept it busy with at one go. Other threads and other processes do not count.
    """

    beats: int
    longest_stall: float
    longest_work: float


async def with_heartbeat(work: Awaitable[T]) -> tuple[T, Pulse]:
    """The result of `work`, and how the loop did meanwhile."""
    late: list[float] = []
    busy: list[float] = []

    async def beat() -> None:
        while True:
            wall, own = time.perf_counter(), time.thread_time()
            await asyncio.sleep(BEAT)
            late.append(time.perf_counter() - wall - BEAT)
            busy.append(time.thread_time() - own)

    heart = asyncio.ensure_future(beat())
    await asyncio.sleep(0)
    try:
        result = await work
        await asyncio.sleep(2 * BEAT)  # a last beat, so that no stall goes unseen
    finally:
        heart.cancel()
    return result, Pulse(beats=len(late), longest_stall=max(late, default=0.0), longest_work=max(busy, default=0.0))
