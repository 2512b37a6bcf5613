"""An event loop in a thread of its own, for the connections of all who ask.

A connection belongs to the loop it was opened on, and a blocking read cannot be left at a deadline. Here connections
outlive the loops of those who use them, and whoever waits may leave at any moment.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from lcse_plugins.forks import in_forked_process

__all__ = ["background_loop"]

_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []
"""The last one is this process's; a forked child must neither use nor close those of its parents."""
_owner = 0


def background_loop() -> asyncio.AbstractEventLoop:
    """This process's loop; it runs as long as the process does."""
    global _owner
    with _lock:
        if _owner != os.getpid():
            loop = asyncio.new_event_loop()
            loop.set_default_executor(_DaemonThreads())
            threading.Thread(target=loop.run_forever, name="lcse-network", daemon=True).start()
            _loops.append(loop)
            _owner = os.getpid()
        return _loops[-1]


class _DaemonThreads(ThreadPoolExecutor):
    """A thread for each call of the loop's own, such as looking up a host.

    A real pool takes no more calls once the main thread has ended, though other threads may still be asking.
    """

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        answer: Future[Any] = Future()

        def work() -> None:
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(function(*args, **kwargs))
                except BaseException as error:
                    answer.set_exception(error)

        threading.Thread(target=work, name="lcse-lookup", daemon=True).start()
        return answer


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


in_forked_process(_renew_lock)
