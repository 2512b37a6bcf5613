"""An image index on disk: an SQLite table of pictures, a raw file of vectors, and one of their regions if it has tiles.

Vectors are appended and flushed to disk first; only then does one SQLite transaction make them part of the index. A
process that dies in between leaves rows nobody refers to. Rows once written are never changed, since a reader may map
them: what is no longer needed goes when the rows are put into the order of their paths, by writing new files and
switching to them within one transaction.
"""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.errors import IndexFileError
from lcse_plugins.index.files import TABLE_FILE, RowFile, discard, row_files, sync_folder
from lcse_plugins.index.scale import IndexScale
from lcse_plugins.index.table import FORMAT, FileRecord, IndexMeta, create_table, is_known_format, read_files

__all__ = ["IndexStore"]

_PASSING = ("locked", "full", "readonly", "unable to open", "I/O")  # SQLite's words for faults that are not damage


class IndexStore:
    """An index's files, opened; use it as a context manager.

    Attributes:
        meta: What holds for the whole index.
        records: Every file the index knows, by path.

    Raises:
        IndexFileError: there is no index, or its files are damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / TABLE_FILE).is_file():
            raise IndexFileError(
                f"there is no image index at {path}; make one with `lcse index FOLDER --out {shlex.quote(str(path))}`"
            )
        with self._faults():
            self._table = sqlite3.connect(f"{(path / TABLE_FILE).absolute().as_uri()}?mode=rw", uri=True, timeout=30)
        try:
            with self._faults():
                self._table.execute("BEGIN")  # until closed or written to, what is read belongs together
                values = dict(self._table.execute("SELECT name, value FROM meta"))
                if not is_known_format(values):
                    raise IndexFileError(
                        f"{path} is no index of this version ({FORMAT}); build it again in a new place"
                    )
                self.records = read_files(self._table)
            self.meta = IndexMeta.from_values(values)
            self._files = _row_files(path, self.meta)
            for file in self._files:
                if fault := file.check(self._rows()):
                    raise self._damaged(fault)
            self._next_row = max(file.length() for file in self._files)
        except IndexFileError:
            self.close()
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            self.close()
            raise self._damaged(error) from error

    @classmethod
    def create(cls, path: Path, meta: IndexMeta) -> IndexStore:
        """Begin an empty index; the table comes last, so a crash leaves no half-made one."""
        draft = path / f"{TABLE_FILE}.new"
        try:
            draft.unlink(missing_ok=True)
            for stray in row_files(path):  # not emptied: a reader of an index that was here may map them
                discard(stray)
            for file in _row_files(path, meta):
                file.path.write_bytes(b"")
            create_table(draft, meta)
            os.replace(draft, path / TABLE_FILE)
            sync_folder(path)
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
        """(n_rows, dimension) the rows on disk up to the last in use, memory-mapped, also unused ones amid them."""
        return self._files[0].map(self._rows())

    def regions(self) -> NDArray[Any]:
        """(n_rows, n_tiles, dimension) the vectors of the tiles, likewise; only of an index that has them."""
        return self._files[1].map(self._rows())

    def save(self, records: Sequence[FileRecord], views: NDArray[Any], *, scale: IndexScale | None = None) -> None:
        """Write a batch so that it is in the index wholly or not at all.

        Sound records without a row take the views (n, 1 + n_tiles, dimension), the picture and its tiles, in order.
        """
        table = np.ascontiguousarray(views, dtype=self.meta.dtype)
        for file, part in zip(self._files, (table[:, 0], table[:, 1:]), strict=False):
            with self._faults():
                file.write(self._next_row, part)
        lines, written = iter(table), []
        for record in records:
            if record.row is None and record.fault is None:
                record = record._replace(row=self._next_row, checksum=zlib.crc32(next(lines).tobytes()))
                self._next_row += 1
            written.append(record)
        with self._faults(), self._table:
            marks = ", ".join("?" for _ in FileRecord._fields)
            self._table.executemany(f"INSERT OR REPLACE INTO files VALUES ({marks})", written)
            self._keep_scale(scale)
        self.records.update({record.path: record for record in written})

    def finish(self, *, folder: Path, keep: Sequence[str], scale: IndexScale | None = None) -> None:
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
            new = ((str(folder), "folder"), (self.meta.vectors_file, "vectors_file"))
            self._table.executemany("UPDATE meta SET value = ? WHERE name = ?", new)
            self._keep_scale(scale)
        self.meta = self.meta._replace(folder=folder)
        self.records, self._next_row = records, len(order)
        self.discard_strays()

    def discard_strays(self) -> None:
        """Delete files of rows that an interrupted run left behind; only for the one who may write."""
        own = [file.path for file in self._files]
        for stray in row_files(self.path):
            if stray not in own:
                discard(stray)

    def _rewrite(self, rows: Sequence[int]) -> None:
        number = int(Path(self.meta.vectors_file).stem.partition("-")[2]) + 1
        meta = self.meta._replace(vectors_file=f"vectors-{number}.bin")
        files = _row_files(self.path, meta)
        with self._faults():
            for old, new in zip(self._files, files, strict=True):
                old.copy(new.path, rows)
            sync_folder(self.path)
        self.meta, self._files = meta, files

    def _keep_scale(self, scale: IndexScale | None) -> None:
        if scale is not None and scale != self.meta.scale:
            self._table.execute("INSERT OR REPLACE INTO meta VALUES ('scale', ?)", (json.dumps(scale),))
            self.meta = self.meta._replace(scale=scale)

    def _rows(self) -> int:
        """How many rows the records refer to."""
        return max((record.row + 1 for record in self.records.values() if record.row is not None), default=0)

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


def _row_files(path: Path, meta: IndexMeta) -> list[RowFile]:
    """The file of vectors and, of the same number, that of regions if there are tiles."""
    files = [RowFile(path / meta.vectors_file, (meta.dimension,), meta.dtype)]
    if meta.tiles:
        name = meta.vectors_file.replace("vectors", "regions")
        files.append(RowFile(path / name, (len(meta.tiles), meta.dimension), meta.dtype))
    return files
