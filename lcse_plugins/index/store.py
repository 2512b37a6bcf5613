"""An image index on disk: an SQLite table of pictures, a raw file of vectors, and one of their regions if it has tiles.

Vectors are appended and flushed to disk first; only then does one SQLite transaction make them part of the index. A
process that dies in between leaves rows nobody refers to, which the next run writes over. Rows are put into the order
of their paths by writing new files and switching to them within one transaction.
"""

from __future__ import annotations

import json
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
from lcse_plugins.images.tiles import Tile
from lcse_plugins.index.files import TABLE_FILE, RowFile, discard, sync_folder
from lcse_plugins.index.scale import IndexScale

__all__ = ["FileRecord", "IndexStore"]

FORMAT = "lcse-index-1"
FORMAT_WITH_TILES = "lcse-index-1-tiles"
_PASSING = ("locked", "full", "readonly", "unable to open", "I/O")  # SQLite's words for faults that are not damage
_META = ("format", "encoder_id", "dimension", "dtype", "folder", "vectors_file")


class FileRecord(NamedTuple):
    """What the index knows of one picture file.

    Attributes:
        path: relative to the indexed folder, with forward slashes.
        size: bytes, when it was read.
        mtime_ns: time of its last change, when it was read.
        sha256: of its content.
        row: where its vector, and those of its tiles, are; None for a broken file.
        checksum: of their bytes.
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


class IndexStore:
    """An index's files, opened; use it as a context manager.

    Attributes:
        records: every file the index knows, by path.
        tiles: the parts of pictures that have vectors too.
        scale: what their similarities are carried over with.

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
            tiled = meta.get("format") == FORMAT_WITH_TILES
            if not (tiled or meta.get("format") == FORMAT) or not set(_META) <= meta.keys():
                raise IndexFileError(f"{path} is no index of this version ({FORMAT}); build it again in a new place")
            self.encoder_id: str = meta["encoder_id"]
            self.folder = Path(meta["folder"])
            self.dtype: np.dtype[Any] = np.dtype(meta["dtype"])
            self.dimension = int(meta["dimension"])
            self.tiles = tuple(Tile(*shares) for shares in json.loads(meta["tiles"])) if tiled else ()
            self.scale = IndexScale(*json.loads(meta["scale"])) if "scale" in meta else None
            self._files = self._row_files(meta["vectors_file"])
            self.records = {row[0]: FileRecord._make(row) for row in rows}
            self._next_row = self._count_rows()
        except IndexFileError:
            self.close()
            raise
        except (KeyError, TypeError, ValueError) as error:
            self.close()
            raise self._damaged(error) from error

    @classmethod
    def create(
        cls, path: Path, *, encoder_id: str, dimension: int, dtype: str, folder: Path, tiles: Sequence[Tile] = ()
    ) -> IndexStore:
        """Begin an empty index; the table comes last, so a crash leaves no half-made one."""
        form = FORMAT_WITH_TILES if tiles else FORMAT
        values = (form, encoder_id, str(dimension), dtype, str(folder), "vectors-0.bin")
        draft = path / f"{TABLE_FILE}.new"
        try:
            draft.unlink(missing_ok=True)
            for name in ("vectors-0.bin", "regions-0.bin")[: 2 if tiles else 1]:
                (path / name).write_bytes(b"")
            with closing(sqlite3.connect(draft)) as table, table:
                table.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
                table.execute(
                    "CREATE TABLE files (path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, "
                    "sha256 TEXT NOT NULL, row INTEGER, checksum INTEGER, fault TEXT)"
                )
                table.executemany("INSERT INTO meta VALUES (?, ?)", zip(_META, values, strict=True))
                if tiles:
                    table.execute("INSERT INTO meta VALUES ('tiles', ?)", (json.dumps(tiles),))
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
        """(n_rows, dimension) all rows on disk, memory-mapped, also those no file refers to."""
        return self._files[0].map(self._next_row)

    def regions(self) -> NDArray[Any]:
        """(n_rows, n_tiles, dimension) the vectors of the tiles, likewise; only of an index that has them."""
        return self._files[1].map(self._next_row)

    def save(self, records: Sequence[FileRecord], views: NDArray[Any], *, scale: IndexScale | None = None) -> None:
        """Write a batch so that it is in the index wholly or not at all.

        Sound records without a row take the views (n, 1 + n_tiles, dimension), the picture and its tiles, in order.
        """
        table = np.ascontiguousarray(views, dtype=self.dtype)
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
            new = ((str(folder), "folder"), (self._files[0].path.name, "vectors_file"))
            self._table.executemany("UPDATE meta SET value = ? WHERE name = ?", new)
            self._keep_scale(scale)
        self.folder, self.records, self._next_row = folder, records, len(order)
        self.discard_strays()

    def discard_strays(self) -> None:
        """Delete files of rows that an interrupted run left behind; only for the one who may write."""
        own = [file.path for file in self._files]
        for stray in (*self.path.glob("vectors-*.bin"), *self.path.glob("regions-*.bin")):
            if stray not in own:
                discard(stray)

    def _rewrite(self, rows: Sequence[int]) -> None:
        number = int(self._files[0].path.stem.partition("-")[2]) + 1
        files = self._row_files(f"vectors-{number}.bin")
        with self._faults():
            for old, new in zip(self._files, files, strict=True):
                old.copy(new.path, rows)
            sync_folder(self.path)
        self._files = files

    def _row_files(self, vectors_file: str) -> list[RowFile]:
        """The file of vectors of that name and, of the same number, that of regions."""
        files = [RowFile(self.path / vectors_file, (self.dimension,), self.dtype)]
        if self.tiles:
            name = vectors_file.replace("vectors", "regions")
            files.append(RowFile(self.path / name, (len(self.tiles), self.dimension), self.dtype))
        return files

    def _keep_scale(self, scale: IndexScale | None) -> None:
        if scale is not None and scale != self.scale:
            self._table.execute("INSERT OR REPLACE INTO meta VALUES ('scale', ?)", (json.dumps(scale),))
            self.scale = scale

    def _count_rows(self) -> int:
        """How many rows the records refer to; the files must hold them."""
        rows = max((record.row + 1 for record in self.records.values() if record.row is not None), default=0)
        for file in self._files:
            if fault := file.check(rows):
                raise self._damaged(fault)
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
