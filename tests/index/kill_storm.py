"""Kill a build of an index at every file operation it makes, look at what is left, and resume."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from tests.index.test_index import write_picture

__all__ = ["kill_first_builds", "kill_updates"]

Build: TypeAlias = Callable[[], object]
Check: TypeAlias = Callable[[bool], int]
"""`Check` looks at the index, told whether it should be complete, and returns how many pictures it holds."""


def kill_first_builds(out: Path, build: Build, check: Check, *, every: int) -> list[int]:
    """What each first build had kept, killed at every n-th operation in turn."""
    return _storm(out, build, check, every, prepare=lambda: shutil.rmtree(out, ignore_errors=True))


def kill_updates(photos: Path, out: Path, build: Build, check: Check, *, every: int) -> list[int]:
    """What the index held after each killed update; before each, pictures are added, changed and removed."""
    generation = itertools.count(1000)

    def change() -> None:
        n = next(generation)
        write_picture(photos / "trip" / f"new{n}.png", n)
        write_picture(photos / "00.png", n + 5000)
        for old in sorted(photos.glob("trip/new*"))[:-2]:
            old.unlink()

    return _storm(out, build, check, every, prepare=change)


def _storm(out: Path, build: Build, check: Check, every: int, *, prepare: Callable[[], object]) -> list[int]:
    sizes: list[int] = []
    for fatal in itertools.count(1, every):
        prepare()
        code = _run(out, build, fatal)
        if code == 0:
            break
        assert code == -signal.SIGKILL, code
        if (out / "index.sqlite").exists():
            sizes.append(check(False))
        assert _run(out, build, 0) == 0
        check(True)
    return sizes


def _run(out: Path, build: Callable[[], object], fatal: int) -> int:
    child = os.fork()
    if not child:
        _arm(out, fatal)
        build()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _arm(out: Path, fatal: int) -> None:
    """Let the process die at its `fatal`-th operation on a file of the index; at none when that is 0."""
    count = itertools.count(1)

    def step() -> None:
        if next(count) == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in ("open", "os.remove", "os.rename", "sqlite3.connect") and str(out) in str(arguments):
            step()

    sys.addaudithook(hook)
    fsync = os.fsync

    def watched(handle: int) -> None:
        step()
        fsync(handle)
        step()

    os.fsync = watched  # type: ignore[assignment]
