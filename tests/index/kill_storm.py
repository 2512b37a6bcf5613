"""Kill a build of an index at every n-th file operation it makes, look at what is left, and resume.

Run as `python -m tests.index.kill_storm PHOTOS INDEX N`, a process of its own, since it forks.
It prints what each killed first build had kept, and what the index held after each killed update.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from lcse_plugins.index import ImageIndex
from tests.index.test_index import ColourEncoder, write_picture


def storm(photos: Path, out: Path, every: int, prepare: Callable[[], object]) -> list[int]:
    """What the index held after each killed build, each of them after `prepare`."""
    sizes: list[int] = []
    for fatal in itertools.count(1, every):
        prepare()
        code = build(photos, out, fatal)
        if code == 0:
            break
        assert code == -signal.SIGKILL, code
        if (out / "index.sqlite").exists():
            sizes.append(len(ImageIndex.open(out)))  # which verifies every vector
        assert build(photos, out, 0) == 0
        index = ImageIndex.open(out)
        assert index.ids == tuple(sorted(p.relative_to(photos).as_posix() for p in photos.rglob("*.png")))
        assert (index.vectors == ColourEncoder().encode_images(index.paths)).all()
        assert len(list(out.glob("vectors-*"))) == 1
    return sizes


def build(photos: Path, out: Path, fatal: int) -> int:
    """Build in a child that dies at its `fatal`-th operation on a file of the index, at none when that is 0."""
    child = os.fork()
    if not child:
        arm(out, fatal)
        ImageIndex.build(photos, out, encoder=ColourEncoder(), batch_size=6)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def arm(out: Path, fatal: int) -> None:
    count, fsync = itertools.count(1), os.fsync

    def step() -> None:
        if next(count) == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in ("open", "os.remove", "os.rename", "sqlite3.connect") and str(out) in str(arguments):
            step()

    def watched(handle: int) -> None:
        step()
        fsync(handle)
        step()

    sys.addaudithook(hook)
    os.fsync = watched  # type: ignore[assignment]


def change(photos: Path, n: int) -> None:
    """Add, change and remove pictures."""
    write_picture(photos / "trip" / f"new{n}.png", n)
    write_picture(photos / "00.png", n + 5000)
    for old in sorted(photos.glob("trip/new*"))[:-2]:
        old.unlink()


if __name__ == "__main__":
    photos, out, every = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    numbers = itertools.count(1000)
    first = storm(photos, out, every, lambda: shutil.rmtree(out, ignore_errors=True))
    print(json.dumps([first, storm(photos, out, every, lambda: change(photos, next(numbers)))]))
