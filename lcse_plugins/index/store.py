"""An image index on disk: an SQLite table of pictures, and a raw file of their vectors.

Vectors are appended and flushed to disk first; only then does one SQLite transaction make them part of the index. A
process that dies in between leaves rows nobody refers to. Rows once written are never changed, since a reader may map
them: what is no longer needed goes when the rows are put into the order of their pictures, by writing a new file and
switching to it within one transaction.

Every picture has a checksum of its vectors and of what is known of it, and so has the index as a whole: damage is told,
and mended by the next run, never served.
"""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import IndexFileError

__all__ = ["FileRecord", "IndexMeta", "IndexStore", "Key", "create_index", "damaged_records", "exclusive", "is_index"]

TABLE_FILE, LOCK_FILE = "index.sqlite", "build.lock"
FORMAT = "lcse-index-3"
BLOCK_BYTES = 32 * 1024 * 1024
_PASSING = ("locked", "full", "readonly", "unable to open", "I/O")  # SQLite's words for faults that are not damage

Key = tuple[int, str]
"""A picture of an index: the number of its folder, and its path in there."""


class FileRecord(NamedTuple):
    """What an index knows of one picture file; size and time are those when it was read."""

    folder: int
    path: str
    """Relative to the folder, with forward slashes."""
    size: int = 0
    mtime_ns: int = 0
    sha256: str = ""
    taken: str | None = None
    """When the camera says it was taken, as ISO 8601."""
    row: int | None = None
    """Where its vectors are; None for a broken file."""
    checksum: int | None = None
    fault: str | None = None
    """Why it cannot be used, or could not be read again."""

    @property
    def key(self) -> Key:
        """What tells it from other pictures."""
        return self.folder, self.path

    def sum_of(self, views: NDArray[Any]) -> int:
        """The checksum it must have with these vectors."""
        facts = repr((self.folder, self.path, self.sha256, self.taken)).encode("utf-8", "backslashreplace")
        return zlib.crc32(views.tobytes(), zlib.crc32(facts))

    def is_sound(self, folders: int) -> bool:
        """Whether every value is of its kind, and the path leads nowhere but into one of so many folders."""
        numbers = (self.folder, self.size, self.mtime_ns, self.row or 0, self.checksum or 0)
        texts = (self.path, self.sha256, self.taken or "", self.fault or "")
        if any(type(number) is not int for number in numbers) or any(type(text) is not str for text in texts):
            return False
        whole = (self.row is None) == (self.checksum is None) and (self.row is not None or self.fault is not None)
        parts = PurePosixPath(self.path).parts
        inside = bool(parts) and ".." not in parts and not self.path.startswith("/") and not Path(self.path).drive
        return whole and inside and 0 <= self.folder < folders and (self.row or 0) >= 0


class IndexMeta(NamedTuple):
    """What holds for a whole index."""

    encoder_id: str
    dimension: int
    folders: tuple[Path, ...]
    views: int = 1
    """Vectors of each picture: its own, and those of its tiles."""
    generation: int = 0
    """Which file of vectors is in use."""
    scale: tuple[float, float] | None = None
    """Factor and offset that carry the similarities of tiles over to those of whole pictures."""

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> IndexMeta:
        """Read it from the table `meta`; what is missing or not what it must be raises nearly anything."""
        facts = json.loads(values["facts"])
        if zlib.crc32(values["facts"].encode()) != int(values["checksum"]):
            raise ValueError("what it says of itself has changed")
        scale = facts.pop("scale")
        meta = cls(
            **{**facts, "folders": tuple(map(Path, facts["folders"]))}, scale=None if scale is None else (*scale,)
        )
        if (
            min(meta.dimension, meta.views, len(meta.folders), meta.generation + 1) < 1
            or not np.isfinite(meta.scale or 0.0).all()
        ):
            raise ValueError("its numbers make no vectors")
        return meta

    def to_values(self) -> list[tuple[str, str]]:
        """What stands in the table `meta`."""
        facts = json.dumps({**self._asdict(), "folders": [str(folder) for folder in self.folders]})
        return [("format", FORMAT), ("facts", facts), ("checksum", str(zlib.crc32(facts.encode())))]


def is_index(path: str | Path) -> bool:
    """Whether an index is there."""
    try:
        return Path(path, TABLE_FILE).is_file()
    except (OSError, ValueError):  # a query is seldom a path
        return False


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the right to write the index at a path, alone; it ends with the process, however that ends."""
    if path.is_file():
        raise IndexFileError(f"an index cannot be written at {path}: it is a file; give the index a folder of its own")
    if path.is_dir() and not is_index(path):
        own = (TABLE_FILE, LOCK_FILE, "vectors-")
        if foreign := [entry.name for entry in path.iterdir() if not entry.name.startswith(own)]:
            raise IndexFileError(f"{path} holds other files ({foreign[0]} …); give the index a folder of its own")
    try:
        path.mkdir(parents=True, exist_ok=True)
        _private(path / LOCK_FILE)
        lock = sqlite3.connect(path / LOCK_FILE, isolation_level=None, timeout=0)
        lock.execute("BEGIN EXCLUSIVE")
    except (OSError, sqlite3.Error) as error:
        if "locked" in str(error):
            raise IndexFileError(f"another process is writing the index {path}; let it end first") from error
        raise IndexFileError(f"an index cannot be written at {path}: {error}") from error
    with closing(lock):
        yield


def create_index(path: Path, meta: IndexMeta) -> None:
    """Begin an empty index; the table comes last, so a crash leaves no half-made one."""
    draft = path / f"{TABLE_FILE}.new"
    try:
        draft.unlink(missing_ok=True)
        for stray in path.glob("vectors-*.bin"):  # not emptied: a reader of an index that was here may map them
            _discard(stray)
        _private(draft)
        with closing(sqlite3.connect(draft)) as table, table:
            table.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            table.execute(f"CREATE TABLE files ({', '.join(FileRecord._fields)}, PRIMARY KEY (folder, path))")
            table.executemany("INSERT INTO meta VALUES (?, ?)", meta.to_values())
        os.replace(draft, path / TABLE_FILE)
        _sync_folder(path)
    except (OSError, sqlite3.Error) as error:
        raise IndexFileError(f"an index cannot be written at {path}: {error}") from error


class IndexStore:
    """An index's files, opened; use it as a context manager.

    With `mend`, for the one who may write, vectors that are missing are damage of single pictures; else the index is
    refused.
    """

    def __init__(self, path: Path, *, mend: bool = False) -> None:
        self.path = path
        if not is_index(path):
            raise IndexFileError(
                f"there is no image index at {path}; make one with `lcse index FOLDER --out {shlex.quote(str(path))}`"
            )
        with self._faults():
            self._table = sqlite3.connect(f"{(path / TABLE_FILE).absolute().as_uri()}?mode=rw", uri=True, timeout=30)
        try:
            with self._faults():
                self._table.execute("BEGIN")  # until closed or written to, what is read belongs together
                values = dict(self._table.execute("SELECT name, value FROM meta"))
                if values.get("format") != FORMAT:
                    raise IndexFileError(f"{path} is no index of this version ({FORMAT}); build it in a new place")
                rows = self._table.execute(f"SELECT {', '.join(FileRecord._fields)} FROM files").fetchall()
            self.meta = self._written = IndexMeta.from_values(values)
            records = [FileRecord._make(row) for row in rows]
            if not all(record.is_sound(len(self.meta.folders)) for record in records):
                raise ValueError("a record of a picture holds what it cannot")
            self.records = {record.key: record for record in sorted(records, key=lambda record: record.key)}
            if mend:
                _private(self._rows_path)
            size, used = self._rows_path.stat().st_size if self._rows_path.exists() else 0, self._rows_in_use()
            if not mend and size < used * self._row_bytes:
                raise ValueError(f"{self._rows_path.name} is missing or too short")
            self._next_row = max(-(-size // self._row_bytes), used)
        except BaseException as error:
            self._table.close()
            if isinstance(error, KeyError | TypeError | ValueError | AttributeError | OverflowError | OSError):
                raise self._damaged(error) from error
            raise

    def __enter__(self) -> IndexStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self._table.close()

    def rows(self) -> FloatArray:
        """(n_rows, n_views, dimension) the rows on disk up to the last in use, memory-mapped, also unused ones."""
        size = self._rows_path.stat().st_size // self._row_bytes if self._rows_path.exists() else 0
        shape = (min(self._rows_in_use(), size), self.meta.views, self.meta.dimension)
        return np.memmap(self._rows_path, np.float32, "r", shape=shape) if shape[0] else np.empty(shape, np.float32)

    def save(self, batch: Iterable[tuple[FileRecord, FloatArray | None]]) -> None:
        """Write a batch wholly or not at all: records with vectors, or None where one keeps its row or has none."""
        written, table = list[FileRecord](), list[FloatArray]()
        for record, views in batch:
            if views is not None:
                record = record._replace(row=self._next_row + len(table), checksum=record.sum_of(views))
                table.append(views)
            written.append(record)
        with self._faults(), self._table:
            if table:
                _write(self._rows_path, self._next_row * self._row_bytes, table)
                self._next_row += len(table)
            marks = ", ".join("?" for _ in FileRecord._fields)
            self._table.executemany(f"INSERT OR REPLACE INTO files VALUES ({marks})", written)
            self._keep(self.meta)
        self.records.update({record.key: record for record in written})

    def finish(self, keep: Sequence[Key], *, scale: tuple[float, float] | None) -> None:
        """Forget every file but those to keep, and put the rows into the order of their pictures."""
        records = {key: self.records[key] for key in sorted(keep)}
        order = [(record, record.row) for record in records.values() if record.row is not None]
        rows, meta = [row for _, row in order], self.meta._replace(scale=scale)
        moved = rows != list(range(self._next_row))
        if moved:
            meta = meta._replace(generation=meta.generation + 1)
            with self._faults():
                source, place = self.rows(), self._place_of(meta)
                _discard(place)
                _private(place)
                step = max(1, BLOCK_BYTES // self._row_bytes)
                _write(place, 0, (source[rows[start : start + step]] for start in range(0, len(rows), step)))
                _sync_folder(self.path)
            records.update({record.key: record._replace(row=row) for row, (record, _) in enumerate(order)})
        with self._faults(), self._table:
            self._table.executemany("DELETE FROM files WHERE folder = ? AND path = ?", self.records.keys() - records)
            places = [(record.row, *record.key) for record in records.values()] if moved else []
            self._table.executemany("UPDATE files SET row = ? WHERE folder = ? AND path = ?", places)
            self._keep(meta)
        self.records, self._next_row = records, len(order)
        self.discard_strays()

    def discard_strays(self) -> None:
        """Delete files of vectors that an interrupted run left behind; only for the one who may write."""
        for stray in self.path.glob("vectors-*.bin"):
            if stray != self._rows_path:
                _discard(stray)

    def _keep(self, meta: IndexMeta) -> None:
        if meta != self._written:
            self._table.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta.to_values())
        self.meta = self._written = meta

    def _place_of(self, meta: IndexMeta) -> Path:
        return self.path / f"vectors-{meta.generation}.bin"

    @property
    def _rows_path(self) -> Path:
        return self._place_of(self.meta)

    @property
    def _row_bytes(self) -> int:
        return self.meta.views * self.meta.dimension * 4

    def _rows_in_use(self) -> int:
        return max((record.row + 1 for record in self.records.values() if record.row is not None), default=0)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise IndexFileError(f"the index {self.path} cannot be written: {error}") from error
        except (sqlite3.Error, MemoryError) as error:  # MemoryError: a damaged record claims to be huge
            if any(word in str(error) for word in _PASSING):
                raise IndexFileError(f"the index {self.path} cannot be used now: {error}") from error
            raise self._damaged(str(error) or "a record claims to be huge") from error

    def _damaged(self, why: object) -> IndexFileError:
        return IndexFileError(f"the image index {self.path} is damaged ({why}); delete it and run `lcse index` again")


def damaged_records(records: Iterable[FileRecord], rows: NDArray[Any]) -> list[FileRecord]:
    """Those whose vectors, or what is known of them, are not what they were when they were written."""
    return [
        record
        for record in records
        if record.row is not None and (record.row >= len(rows) or record.checksum != record.sum_of(rows[record.row]))
    ]


def _private(path: Path) -> None:
    """Make a file that only its owner can read, if it is not there; what SQLite puts beside it is as private."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _write(path: Path, start: int, blocks: Iterable[NDArray[Any]]) -> None:
    """Put vectors into a file from a place on, and flush them to disk."""
    with open(path, "r+b") as stream:
        stream.seek(start)
        for block in blocks:
            stream.write(block.tobytes())
        stream.flush()
        os.fsync(stream.fileno())


def _sync_folder(path: Path) -> None:
    """Flush a folder's list of files to disk; not on Windows, where it cannot and need not be."""
    if os.name == "posix":
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
