"""Steps of a component that tracers see as its children; where nobody traces, they cost nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from langchain_core.callbacks import Callbacks
from langchain_core.runnables import RunnableLambda

__all__ = ["arun_step", "run_step"]

T = TypeVar("T")


def run_step(name: str, work: Callable[[Any], T], value: Any, callbacks: Callbacks) -> T:
    """The result of `work`; runnables inside it that are given no callbacks become its children."""
    if not _heard(callbacks):
        return work(value)
    return RunnableLambda(work, name=name).invoke(value, {"callbacks": callbacks})


async def arun_step(name: str, work: Callable[[Any], Awaitable[T]], value: Any, callbacks: Callbacks) -> T:
    """As `run_step`, awaited."""
    if not _heard(callbacks):
        return await work(value)
    found: T = await RunnableLambda(work, name=name).ainvoke(value, {"callbacks": callbacks})
    return found


def _heard(callbacks: Callbacks) -> bool:
    """Whether anybody listens; None leaves it to the context."""
    return callbacks is None or bool(callbacks if isinstance(callbacks, list) else callbacks.handlers)
