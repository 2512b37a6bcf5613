"""The measurement of many searches at once: it sees a stall, and its answers are checked."""

from __future__ import annotations

import asyncio
import time

from lcse_plugins.bench.concurrency import GOAL, run, table
from lcse_plugins.bench.heartbeat import with_heartbeat


async def test_the_heartbeat_sees_what_holds_the_loop() -> None:
    async def hold() -> str:
        await asyncio.sleep(0.02)
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end:
            pass
        return "done"

    result, pulse = await with_heartbeat(hold())
    assert result == "done"
    assert pulse.longest_stall > 0.15
    assert pulse.longest_own > 0.01
    assert pulse.beats > 2


async def test_the_heartbeat_sees_no_work_where_there_is_none() -> None:
    _, pulse = await with_heartbeat(asyncio.sleep(0.1))
    assert pulse.longest_own < GOAL


def test_every_source_answers_many_calls_rightly_and_is_reported() -> None:
    told: list[str] = []
    report = run(calls=24, dimension=32, scale=0.02, progress=told.append)
    assert [row["source"] for row in report["results"]] == ["pool", "in-memory store", "qdrant, local"]
    assert len(told) == 3
    assert all(row["wrong"] == 0 and row["calls"] == 24 for row in report["results"])
    assert all(row["stall_ms"] >= 0 and row["seconds"] > 0 for row in report["results"])
    assert len(table(report).splitlines()) == 4
