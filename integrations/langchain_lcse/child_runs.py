"""Make what runs inside a step its child: a language model that parses the query is traced where it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from langchain_core.callbacks import Callbacks
from langchain_core.runnables.config import ensure_config, set_config_context

__all__ = ["arun_as_child", "run_as_child"]

T = TypeVar("T")


def run_as_child(callbacks: Callbacks, work: Callable[[], T]) -> T:
    """The result of `work`; runnables inside it that are given no callbacks get these."""
    with set_config_context(ensure_config({"callbacks": callbacks})) as context:
        return context.run(work)


async def arun_as_child(callbacks: Callbacks, work: Coroutine[Any, Any, T]) -> T:
    """As `run_as_child`, awaited; a cancelled caller cancels the work."""
    with set_config_context(ensure_config({"callbacks": callbacks})) as context:
        task: asyncio.Task[T] = context.run(asyncio.ensure_future, work)
        return await task
