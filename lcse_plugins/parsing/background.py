"""An event loop in a thread of its own, for the connections of all who ask.

A connection belongs to the loop it was opened on, and a blocking read cannot be left at a deadline. Here connections
outlive the loops of those who use them, and whoever waits may leave at any moment.
"""

from __future__ import annotations

import asyncio
import os
import threading

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
            threading.Thread(target=loop.run_forever, name="lcse-network", daemon=True).start()
            _loops.append(loop)
            _owner = os.getpid()
        return _loops[-1]


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
