"""Arithmetic off the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

from lcse_plugins import off_loop
from lcse_plugins.off_loop import WORKERS, compute, wait

NAME: ContextVar[str] = ContextVar("NAME", default="nobody")


async def test_results_errors_and_context_come_through() -> None:
    NAME.set("somebody")
    assert await compute(NAME.get) == "somebody"
    assert await compute(sorted, [2, 1], reverse=True) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        await compute(divmod, 1, 0)


async def test_few_threads_serve_many_calls() -> None:
    running = peak = 0
    lock = threading.Lock()

    def work(number: int) -> int:
        nonlocal running, peak
        with lock:
            running += 1
            peak = max(peak, running)
        time.sleep(0.001)
        with lock:
            running -= 1
        return number

    assert await asyncio.gather(*(compute(work, number) for number in range(50))) == list(range(50))
    assert 1 <= peak <= WORKERS


@pytest.mark.parametrize(("run", "pool"), [(compute, "_threads"), (wait, "_waiting_threads")])
async def test_once_pools_take_nothing_more_the_caller_does_the_work(
    monkeypatch: pytest.MonkeyPatch, run: Any, pool: str
) -> None:
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    monkeypatch.setattr(off_loop, pool, lambda: closed)
    assert await run(threading.current_thread) is threading.current_thread()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # from Python 3.12 on; here it is what is tried
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_gets_threads_of_its_own() -> None:
    from lcse_plugins.off_loop import _threads

    asyncio.run(compute(int))
    before = _threads()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, b"1" if _threads() is not before and asyncio.run(compute(int)) == 0 else b"0")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1) == b"1"
    os.close(reader)
    os.close(writer)
