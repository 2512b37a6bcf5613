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
        longest_stall: the most seconds a beat came late, whatever kept the loop: its own tasks, a thread of this
            process that held the interpreter's lock, or other processes that held the processor.
        longest_own: the most seconds of processor time that this process, all threads together, used between two
            beats. With the machine to itself its stalls would be about this long at most; other processes do not count.
    """

    beats: int
    longest_stall: float
    longest_own: float


async def with_heartbeat(work: Awaitable[T]) -> tuple[T, Pulse]:
    """The result of `work`, and how the loop did meanwhile."""
    late: list[float] = []
    own: list[float] = []

    async def beat() -> None:
        while True:
            wall, processor = time.perf_counter(), time.process_time()
            await asyncio.sleep(BEAT)
            late.append(time.perf_counter() - wall - BEAT)
            own.append(time.process_time() - processor)

    heart = asyncio.ensure_future(beat())
    await asyncio.sleep(0)
    try:
        result = await work
        await asyncio.sleep(2 * BEAT)  # a last beat, so that no stall goes unseen
    finally:
        heart.cancel()
    return result, Pulse(beats=len(late), longest_stall=max(late, default=0.0), longest_own=max(own, default=0.0))
