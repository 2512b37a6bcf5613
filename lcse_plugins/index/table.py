"""What stands in the SQLite table of an image index, checked as it is read: it may have been damaged."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lcse_plugins.images.tiles import Tile
from lcse_plugins.index.scale import IndexScale

__all__ = ["FORMAT", "RECORD_COLUMNS", "FileRecord", "IndexMeta", "create_table", "is_known_format", "read_files"]

FORMAT = "lcse-index-1"
FORMAT_WITH_TILES = "lcse-index-1-tiles"


class FileRecord(NamedTuple):
    """What the index knows of one picture file.

    Attributes:
        path: Relative to the indexed folder, with forward slashes.
        size: Bytes, when it was read.
        mtime_ns: Time of its last change, when it was read.
        sha256: Of its content.
        row: Where its vector, and those of its tiles, are; None for a broken file.
        checksum: Of their bytes.
        fault: Why it cannot be used, or could not be read again; None for a sound file.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str = ""
    row: int | None = None
    checksum: int | None = None
    fault: str | None = None


RECORD_COLUMNS = ", ".join(FileRecord._fields)

_UNSOUND = """
    SELECT count(*) FROM files WHERE typeof(path) != 'text' OR typeof(sha256) != 'text' OR typeof(size) != 'integer'
    OR typeof(mtime_ns) != 'integer' OR typeof(ifnull(row, 0)) != 'integer' OR ifnull(row, 0) < 0
    OR typeof(ifnull(checksum, 0)) != 'integer' OR typeof(ifnull(fault, '')) != 'text'
    OR (row IS NULL) != (checksum IS NULL) OR (row IS NULL AND fault IS NULL)
"""


class IndexMeta(NamedTuple):
    """What holds for a whole index.

    Attributes:
        encoder_id: The encoder of its vectors.
        dimension: Of its vectors.
        dtype: Of their numbers.
        folder: The pictures' folder.
        vectors_file: The name of the file of vectors.
        tiles: The parts of pictures that have vectors too.
        scale: What their similarities are carried over with.
    """

    encoder_id: str
    dimension: int
    dtype: np.dtype[Any]
    folder: Path
    vectors_file: str = "vectors-0.bin"
    tiles: tuple[Tile, ...] = ()
    scale: IndexScale | None = None

    @classmethod
    def from_values(cls, values: Mapping[str, str]) -> IndexMeta:
        """Read it from the table `meta`.

        Raises:
            KeyError, TypeError, ValueError, OverflowError: a value is missing, or not what it must be.
        """
        meta = cls(
            encoder_id=values["encoder_id"],
            dimension=int(values["dimension"]),
            dtype=np.dtype(values["dtype"]),
            folder=Path(values["folder"]),
            vectors_file=values["vectors_file"],
            tiles=tuple(Tile(*map(float, shares)) for shares in json.loads(values.get("tiles", "[]"))),
            scale=IndexScale.from_json(values["scale"]) if "scale" in values else None,
        )
        if not all(isinstance(value, str) for value in values.values()):
            raise TypeError("what it says of itself is not text")
        if meta.dimension < 1 or meta.dtype.name not in ("float32", "float16"):
            raise ValueError(f"{meta.dimension} numbers of type {meta.dtype} are no vector")
        if not re.fullmatch(r"vectors-\d+\.bin", meta.vectors_file):
            raise ValueError(f"{meta.vectors_file} is no file of vectors")
        return meta

    def to_values(self) -> dict[str, str]:
        """What stands in the table `meta` of a new index."""
        values = {
            "format": FORMAT_WITH_TILES if self.tiles else FORMAT,
            "encoder_id": self.encoder_id,
            "dimension": str(self.dimension),
            "dtype": self.dtype.name,
            "folder": str(self.folder),
            "vectors_file": self.vectors_file,
        }
        return {**values, "tiles": json.dumps(self.tiles)} if self.tiles else values


def is_known_format(values: Mapping[str, str]) -> bool:
    """Whether this version can read the table."""
    return values.get("format") in (FORMAT, FORMAT_WITH_TILES)


def create_table(path: Path, meta: IndexMeta) -> None:
    """Write the table of an index without pictures."""
    with closing(sqlite3.connect(path)) as table, table:
        table.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        table.execute(
            "CREATE TABLE files (path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, "
            "sha256 TEXT NOT NULL, row INTEGER, checksum INTEGER, fault TEXT)"
        )
        table.executemany("INSERT INTO meta VALUES (?, ?)", meta.to_values().items())


def read_files(table: sqlite3.Connection) -> dict[str, FileRecord]:
    """Every file the index knows, by path.

    Raises:
        ValueError: a record holds what it cannot.
    """
    rows = table.execute(f"SELECT {RECORD_COLUMNS} FROM files ORDER BY path").fetchall()
    ((unsound,),) = table.execute(_UNSOUND)
    if unsound:
        raise ValueError(f"{unsound} records of pictures hold values of a wrong kind")
    return {row[0]: FileRecord._make(row) for row in rows}
