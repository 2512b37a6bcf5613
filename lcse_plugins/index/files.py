"""The files of an image index, one by one: a table, a lock, and raw files of rows."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.errors import IndexFileError

__all__ = ["LOCK_FILE", "TABLE_FILE", "RowFile", "discard", "exclusive", "is_own_file", "row_files", "sync_folder"]

TABLE_FILE, LOCK_FILE = "index.sqlite", "build.lock"
BLOCK_BYTES = 32 * 1024 * 1024


def is_own_file(name: str) -> bool:
    """Whether a file of that name belongs to an index."""
    return name.startswith((TABLE_FILE, LOCK_FILE)) or re.fullmatch(r"(vectors|regions)-.*\.bin", name) is not None


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the right to write the index at a path; it ends with the process, however that ends.

    Raises:
        IndexFileError: another process holds it, or nothing can be written there.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = sqlite3.connect(path / LOCK_FILE, isolation_level=None, timeout=0)
    except (OSError, sqlite3.Error) as error:
        raise IndexFileError(f"an index cannot be written at {path}: {error}") from error
    with closing(lock):
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise IndexFileError(f"another process is writing the index {path}; let it end first") from error
            raise IndexFileError(f"an index cannot be written at {path}: {error}") from error
        yield


class RowFile:
    """A raw file of rows of one shape; rows in use are never changed.

    Args:
        path: Where it is.
        shape: Of one row.
        dtype: Of its numbers.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.path, self.shape, self.dtype = path, shape, dtype

    def check(self, rows: int) -> str | None:
        """What is wrong with the file if it must hold so many rows."""
        try:
            size = self.path.stat().st_size
        except OSError:
            return f"{self.path.name} is missing"
        short = size < rows * self._row_bytes
        return f"{self.path.name} is {size} bytes, too short for {rows} rows" if short else None

    def length(self) -> int:
        """How many rows the file takes up; one that was not written to its end counts."""
        return -(-self.path.stat().st_size // self._row_bytes)

    def map(self, rows: int) -> NDArray[Any]:
        """(rows, …) the first rows, memory-mapped."""
        if not rows:
            return np.empty((0, *self.shape), dtype=self.dtype)
        return np.memmap(self.path, self.dtype, mode="r", shape=(rows, *self.shape))

    def write(self, start: int, table: NDArray[Any]) -> None:
        """Put rows on disk from a row on; those before it stay."""
        with open(self.path, "r+b") as stream:
            stream.seek(start * self._row_bytes)
            stream.write(np.ascontiguousarray(table, dtype=self.dtype).tobytes())
            stream.flush()
            os.fsync(stream.fileno())

    def copy(self, path: Path, rows: Sequence[int]) -> None:
        """Put some of the rows, in this order, into a new file."""
        source = self.map(max(rows, default=-1) + 1)
        with open(path, "wb") as stream:
            step = max(1, BLOCK_BYTES // self._row_bytes)
            for start in range(0, len(rows), step):
                stream.write(source[rows[start : start + step]].tobytes())
            stream.flush()
            os.fsync(stream.fileno())

    @property
    def _row_bytes(self) -> int:
        return int(np.prod(self.shape)) * self.dtype.itemsize


def row_files(path: Path) -> list[Path]:
    """Every file of rows at a path, also those an interrupted run left behind."""
    return [*path.glob("vectors-*.bin"), *path.glob("regions-*.bin")]


def sync_folder(path: Path) -> None:
    """Flush a folder's list of files to disk."""
    if os.name == "posix":  # elsewhere folders cannot be flushed, and need not be
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def discard(path: Path) -> None:
    """Delete a file that is no longer needed."""
    try:
        path.unlink(missing_ok=True)
    except PermissionError:  # a reader still maps it, where that forbids deletion: the next run tries again
        pass
