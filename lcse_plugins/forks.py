"""What a forked process does with what it inherits: locks that its parent's threads held, and connections in use."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Protocol

__all__ = ["Inherited", "in_forked_process", "leave_to_parent", "renew_when_forked"]


class Inherited(Protocol):
    """What must begin anew in a forked process."""

    def _begin_anew(self) -> None: ...


_alive: weakref.WeakSet[Inherited] = weakref.WeakSet()
_left: list[object] = []


def in_forked_process(work: Callable[[], object]) -> None:
    """Do `work` at the start of every process forked from this one, where processes can fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=work)


def renew_when_forked(thing: Inherited) -> None:
    """Let `thing` begin anew in every process forked from this one."""
    _alive.add(thing)


def leave_to_parent(connection: object) -> None:
    """Keep until this process ends what it must neither use nor close, since it is its parent's."""
    _left.append(connection)


def _renew() -> None:
    for thing in list(_alive):
        thing._begin_anew()


in_forked_process(_renew)
