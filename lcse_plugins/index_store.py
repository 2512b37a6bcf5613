"""The files of an image index: an SQLite table of pictures and one raw file of vectors.

Vectors are appended and flushed to disk first; only then does one SQLite transaction make them part of the index. A
process that dies in between leaves rows nobody refers to, which the next run writes over. Rows are put into the order
of their paths by writing a new vectors file and switching to it within one transaction.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.errors import IndexFileError

__all__ = ["FileRecord", "IndexStore", "exclusive", "is_own_file"]

TABLE_FILE, LOCK_FILE = "index.sqlite", "build.lock"
FORMAT = "lcse-index-1"
BLOCK = 16_384
_PASSING = ("locked", "full", "readonly", "unable to open", "I/O")  # SQLite's words for faults that are not damage
_META = ("format", "encoder_id", "dimension", "dtype", "folder", "vectors_file")


class FileRecord(NamedTuple):
    """What the index knows of one picture file.

    Attributes:
        path: relative to the indexed folder, with forward slashes.
        size: bytes, when it was read.
        mtime_ns: time of its last change, when it was read.
        sha256: of its content.
        row: where its vector is; None for a broken file.
        checksum: of the vector's bytes.
        fault: why it cannot be used; None for a sound file.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str = ""
    row: int | None = None
    checksum: int | None = None
    fault: str | None = None


_COLUMNS = ", ".join(FileRecord._fields)


def is_own_file(name: str) -> bool:
    """Whether a file of that name belongs to an index."""
    return name.startswith((TABLE_FILE, LOCK_FILE)) or (name.startswith("vectors-") and name.endswith(".bin"))


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


class IndexStore:
    """An index's files, opened; use it as a context manager.

    Attributes:
        records: every file the index knows, by path.

    Raises:
        IndexFileError: there is no index, or its files are damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / TABLE_FILE).is_file():
            raise IndexFileError(f"there is no image index at {path}; make one with `lcse index FOLDER --out {path}`")
        with self._faults():
            self._table = sqlite3.connect(f"{(path / TABLE_FILE).absolute().as_uri()}?mode=rw", uri=True, timeout=30)
        try:
            with self._faults():
                self._table.execute("BEGIN")  # until closed or written to, what is read belongs together
                meta = dict(self._table.execute("SELECT name, value FROM meta"))
                rows = self._table.execute(f"SELECT {_COLUMNS} FROM files ORDER BY path").fetchall()
            if meta.get("format") != FORMAT or not set(_META) <= meta.keys():
                raise IndexFileError(f"{path} is no index of this version ({FORMAT}); build it again in a new place")
            self.encoder_id: str = meta["encoder_id"]
            self.folder = Path(meta["folder"])
            self.dtype: np.dtype[Any] = np.dtype(meta["dtype"])
            self.dimension = int(meta["dimension"])
            self.vectors_file = path / meta["vectors_file"]
            self.records = {row[0]: FileRecord._make(row) for row in rows}
            self._next_row = self._count_rows()
        except IndexFileError:
            self.close()
            raise
        except (TypeError, ValueError) as error:
            self.close()
            raise self._damaged(error) from error

    @classmethod
    def create(cls, path: Path, *, encoder_id: str, dimension: int, dtype: str, folder: Path) -> IndexStore:
        """Begin an empty index; the table comes last, so a crash leaves no half-made one."""
        values = (FORMAT, encoder_id, str(dimension), dtype, str(folder), "vectors-0.bin")
        draft = path / f"{TABLE_FILE}.new"
        try:
            draft.unlink(missing_ok=True)
            (path / "vectors-0.bin").write_bytes(b"")
            with closing(sqlite3.connect(draft)) as table, table:
                table.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
                table.execute(
                    "CREATE TABLE files (path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, "
                    "sha256 TEXT NOT NULL, row INTEGER, checksum INTEGER, fault TEXT)"
                )
                table.executemany("INSERT INTO meta VALUES (?, ?)", zip(_META, values, strict=True))
            os.replace(draft, path / TABLE_FILE)
            _sync_folder(path)
        except (OSError, sqlite3.Error) as error:
            raise IndexFileError(f"an index cannot be written at {path}: {error}") from error
        return cls(path)

    def close(self) -> None:
        """Let go of the files."""
        self._table.close()

    def __enter__(self) -> IndexStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def vectors(self) -> NDArray[Any]:
        """(n_rows, dimension) all rows on disk, memory-mapped, also those no file refers to."""
        if not self._next_row:
            return np.empty((0, self.dimension), dtype=self.dtype)
        return np.memmap(self.vectors_file, self.dtype, mode="r", shape=(self._next_row, self.dimension))

    def save(self, records: Sequence[FileRecord], vectors: NDArray[Any]) -> None:
        """Write a batch so that it is in the index wholly or not at all.

        Sound records without a row take the vectors in order.
        """
        table = np.ascontiguousarray(vectors, dtype=self.dtype)
        with self._faults(), open(self.vectors_file, "r+b") as stream:
            stream.seek(self._next_row * self.dimension * self.dtype.itemsize)
            stream.write(table.tobytes())
            stream.flush()
            os.fsync(stream.fileno())
        lines, written = iter(table), []
        for record in records:
            if record.row is None and record.fault is None:
                record = record._replace(row=self._next_row, checksum=zlib.crc32(next(lines).tobytes()))
                self._next_row += 1
            written.append(record)
        with self._faults(), self._table:
            marks = ", ".join("?" for _ in FileRecord._fields)
            self._table.executemany(f"INSERT OR REPLACE INTO files VALUES ({marks})", written)
        self.records.update({record.path: record for record in written})

    def finish(self, *, folder: Path, keep: Sequence[str]) -> None:
        """Forget every file but those to keep, and put the rows into the order of their paths."""
        records = {path: self.records[path] for path in sorted(keep)}
        order = [record for record in records.values() if record.row is not None]
        moved = [record.row for record in order] != list(range(self._next_row))
        if moved:
            self._rewrite([int(record.row or 0) for record in order])
            records.update({record.path: record._replace(row=row) for row, record in enumerate(order)})
        rows = [(record.row, record.path) for record in records.values()] if moved else []
        gone = [(path,) for path in self.records.keys() - records.keys()]
        with self._faults(), self._table:
            self._table.executemany("DELETE FROM files WHERE path = ?", gone)
            self._table.executemany("UPDATE files SET row = ? WHERE path = ?", rows)
            new = ((str(folder), "folder"), (self.vectors_file.name, "vectors_file"))
            self._table.executemany("UPDATE meta SET value = ? WHERE name = ?", new)
        self.folder, self.records, self._next_row = folder, records, len(order)
        self.discard_strays()

    def discard_strays(self) -> None:
        """Delete vectors files that an interrupted run left behind; only for the one who may write."""
        for stray in self.path.glob("vectors-*.bin"):
            if stray != self.vectors_file:
                _discard(stray)

    def _rewrite(self, rows: Sequence[int]) -> None:
        source = self.vectors()
        target = self.path / f"vectors-{int(self.vectors_file.stem.partition('-')[2]) + 1}.bin"
        with self._faults(), open(target, "wb") as stream:
            for start in range(0, len(rows), BLOCK):
                stream.write(source[rows[start : start + BLOCK]].tobytes())
            stream.flush()
            os.fsync(stream.fileno())
        _sync_folder(self.path)
        self.vectors_file = target

    def _count_rows(self) -> int:
        """How many rows the records refer to; the file must hold them."""
        rows = max((record.row + 1 for record in self.records.values() if record.row is not None), default=0)
        try:
            size = self.vectors_file.stat().st_size
        except OSError as error:
            raise self._damaged(f"{self.vectors_file.name} is missing") from error
        if size < rows * self.dimension * self.dtype.itemsize:
            raise self._damaged(f"{self.vectors_file.name} is {size} bytes, too short for {rows} vectors")
        return rows

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise IndexFileError(f"the index {self.path} cannot be written: {error}") from error
        except sqlite3.Error as error:
            if any(word in str(error) for word in _PASSING):
                raise IndexFileError(f"the index {self.path} cannot be used now: {error}") from error
            raise self._damaged(error) from error

    def _damaged(self, why: object) -> IndexFileError:
        return IndexFileError(f"the image index {self.path} is damaged ({why}); delete it and run `lcse index` again")


def _sync_folder(path: Path) -> None:
    if os.name == "posix":  # elsewhere folders cannot be flushed, and need not be
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _discard(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except PermissionError:  # a reader still maps it, where that forbids deletion: the next run tries again
        pass
