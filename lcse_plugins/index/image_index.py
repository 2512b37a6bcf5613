"""The image index: folders of pictures as vectors on disk, kept up to date, ready to be searched."""

from __future__ import annotations

import hashlib
import os
from calendar import monthrange
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.encoders.registry import load_encoder
from lcse_plugins.errors import ImageError, IndexFileError, InvalidOption
from lcse_plugins.index.store import FileRecord, IndexMeta, IndexStore, damaged_records
from lcse_plugins.index.update import IndexReport, check_encoder, resolved_folders, update_index
from lcse_plugins.retrieval.pool import Found, VectorPool
from lcse_plugins.retrieval.tiles import RegionPool, ViewScale
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate

__all__ = ["ImageIndex", "IndexReport", "cache_place"]

CHECKED_WHOLE = 128 * 1024 * 1024
"""Bytes of vectors up to which all are checked when an index is opened; of larger ones, those that are returned."""


def cache_place(folders: str | Path | Sequence[str | Path], encoder: Encoder | str) -> Path:
    """Where the index of some folders goes when nobody says where: into the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    found = resolved_folders(folders)
    told = "\n".join([load_encoder(encoder).encoder_id, *sorted(map(str, found))])
    return Path(cache) / "lcse" / f"{found[0].name or 'root'}-{hashlib.sha256(told.encode()).hexdigest()[:10]}"


class ImageIndex(VectorPool):
    """Pictures of folders as vectors: a pool to pass to `LogicScorer.rank` and `LogicScorer.search`.

    Made by `ImageIndex.build`, opened by `ImageIndex.open`. Vectors are memory-mapped, never loaded as a whole. What is
    opened stays as it was, also while another process updates the index. An index built with tiles looks for the
    concepts of a query with logic in the regions of a picture too, as `RegionPool` does.

    Vectors are compared with their checksums: all of them when a small index is opened, those that are returned in any
    case. A damaged one is an error, which `lcse index` mends.

    Attributes:
        path: Where the index is.
        folders: The pictures' folders.
        encoder_id: The encoder that made the vectors.
        ids: The pictures' paths with forward slashes: relative to the folder or, of several folders, to what they have
            in common.
        paths: The pictures' full paths.
        dates: When each picture was taken: by its camera or, where that says nothing, when its file was last changed.
        broken: Picture files that could not be used, or not be read again, and why.
        tiles: Whether tiles of each picture have vectors too.
    """

    def __init__(self, path: Path, meta: IndexMeta, records: Sequence[FileRecord], table: NDArray[Any]) -> None:
        self._meta, self._table = meta, table
        self._records = [record for record in records if record.row is not None]
        rows = [record.row for record in self._records if record.row is not None]
        # Rows stand in the order of pictures, except after an interrupted update: then they are picked into memory.
        in_order = rows == list(range(len(self._table)))
        super().__init__(self._table[:, 0] if in_order else self._table[np.asarray(rows, np.intp), 0], assume_unit=True)
        self.path, self.folders = path, meta.folders
        self.encoder_id, self.tiles = meta.encoder_id, meta.views > 1
        self.paths = tuple(self._place(record) for record in self._records)
        base = Path(os.path.commonpath(self.folders))
        self.ids = tuple(path.relative_to(base).as_posix() for path in self.paths)
        faults = [(self._place(record), record.fault) for record in records]
        self.broken = tuple(ImageError(place, fault) for place, fault in faults if fault is not None)
        self._regional: RegionPool | None = None
        if self.tiles:
            self._regional = RegionPool(
                self.vectors,
                self._table[:, 1:],
                scale=meta.scale and ViewScale(*meta.scale),
                rows=None if in_order else rows,
                assume_unit=True,
            )

    @classmethod
    def open(cls, path: str | Path, *, encoder: Encoder | str | None = None) -> ImageIndex:
        """Open an index.

        Args:
            path: Where `build` put it.
            encoder: The encoder of the queries to come, or its name; refused when the vectors are another's.

        Raises:
            IndexFileError: there is no index, it is damaged, or it was made with another encoder.
        """
        with IndexStore(Path(path)) as store:
            if encoder is not None:
                check_encoder(store, load_encoder(encoder))
            index = cls(store.path, store.meta, list(store.records.values()), store.rows())
        if index._table.nbytes <= CHECKED_WHOLE:
            index.verify()
        return index

    @classmethod
    def build(
        cls,
        folders: str | Path | Sequence[str | Path],
        out: str | Path | None = None,
        *,
        encoder: Encoder | str,
        batch_size: int = 64,
        tiles: Literal["few"] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexReport:
        """Make the index of one or more folders, or bring it up to date.

        New and changed pictures are encoded, vanished ones dropped, damaged vectors made again, broken pictures listed
        and tried again in each run. An interrupted run loses at most the last batch. A picture that was moved or
        renamed is known by its content. A file of the same name, size and time of change counts as unchanged.

        Args:
            folders: The pictures, in any depth. A later run may name more folders; those of the index stay.
            out: The folder of the index; it need not exist. By default one in the user's cache folder: the report
                says where.
            encoder: What makes the vectors, or its name.
            batch_size: Files after which the work is written down.
            tiles: "few" also encodes five tiles of each picture, so that queries with logic find small things, for six
                times the vectors and up to as much time; None: as the index was built, and none in a new one.
            progress: Called with how many files are done, and of how many.

        Raises:
            ImageError: a folder cannot be listed, or there are no picture files.
            IndexFileError: `out` is damaged, is being written, belongs to another encoder or folder, or was built
                without tiles.
        """
        encoder, found = load_encoder(encoder), resolved_folders(folders)
        place = cache_place(found, encoder) if out is None else Path(out)
        return update_index(found, place, encoder=encoder, batch_size=batch_size, tiles=tiles, progress=progress)

    def between(self, since: date | str | None = None, until: date | str | None = None) -> ImageIndex:
        """The pictures taken from one day or moment to another, both included; None is no limit.

        Args:
            since: A `date` or `datetime`, or one as ISO 8601: "2024", "2024-05", "2024-05-01", "2024-05-01T18:30".
            until: Likewise; "2024" includes its last second.

        Raises:
            InvalidOption: what was given is not a date.
        """
        first, last = _moment(since, end=False), _moment(until, end=True)
        chosen = [record for record in self._records if first <= _date_of(record) <= last]
        return ImageIndex(self.path, self._meta, chosen, self._table)

    @cached_property
    def dates(self) -> tuple[datetime, ...]:
        """When each picture was taken."""
        return tuple(_date_of(record) for record in self._records)

    def candidate(self, position: int) -> Candidate:
        """The picture at a position, its full path as payload."""
        vector = np.asarray(self.vectors[position], dtype=np.float32)
        return Candidate(id=self.ids[position], vector=vector, payload=self.paths[position])

    def best(self, encoded: EncodedQuery, *, limit: int | None = None, min_truth: float | None = None) -> Found:
        """The best pictures, best first; equal scores keep the order of the index. IndexFileError where damaged."""
        best = super().best if self._regional is None or encoded.edits_nothing else self._regional.best
        found = best(encoded, limit=limit, min_truth=min_truth)
        self._check(found.positions.tolist())
        expected = len(self) if limit is None else min(limit, len(self))
        if not np.isfinite(found.scores).all() or (min_truth is None and len(found.positions) < expected):
            self.verify()  # what is not a number has no place in an order
        return found

    def similarities(self, encoded: EncodedQuery, positions: slice | NDArray[np.intp]) -> FloatArray:
        """(k, 1 + m) similarities of the text and the concepts to the pictures at these positions."""
        if self._regional is None:
            return super().similarities(encoded, positions)
        return self._regional.similarities(encoded, positions)

    def part(self, positions: Sequence[int]) -> VectorPool:
        """A pool of the pictures at these positions alone, with their regions."""
        self._check(positions)
        if self._regional is None:
            return super().part(positions)
        return self._regional.part(positions, candidates=[self.candidate(position) for position in positions])

    def position(self, picture: str | Path) -> int:
        """Where a picture stands, by its id or its path."""
        path = Path(picture)
        places: list[str | Path] = [str(picture), *(folder / path for folder in self.folders)]
        with suppress(OSError, RuntimeError, ValueError):  # RuntimeError: a loop of links, before Python 3.13
            places += [path.parent.resolve() / path.name, path.resolve()]  # a picture may itself be a link
        for place in places:
            if place in self._positions:
                return self._positions[place]
        reasons = [f"which left it out: {error.reason}" for error in self.broken if Path(error.source) in places]
        held = f"which holds {len(self)} pictures of {', '.join(map(str, self.folders))}"
        raise ImageError(picture, f"not in the index {self.path}, {(reasons or [held])[0]}")

    def verify(self) -> None:
        """Read every vector and compare it with its checksum; IndexFileError where some are damaged."""
        self._check(range(len(self)))

    def __repr__(self) -> str:
        tiles = ", tiles" if self.tiles else ""
        return f"ImageIndex({str(self.path)!r}, {len(self)} pictures, encoder {self.encoder_id!r}{tiles})"

    def _check(self, positions: Iterable[int]) -> None:
        damaged = damaged_records((self._records[position] for position in positions), self._table)
        if damaged:
            more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
            raise IndexFileError(
                f"the image index {self.path} is damaged (the vectors of {damaged[0].path}{more} have changed); "
                "run `lcse index` again to mend it"
            )

    def _place(self, record: FileRecord) -> Path:
        return self.folders[record.folder] / record.path

    @cached_property
    def _positions(self) -> dict[str | Path, int]:
        """By path, and by id."""
        return {name: position for position, pair in enumerate(zip(self.paths, self.ids, strict=True)) for name in pair}


def _date_of(record: FileRecord) -> datetime:
    with suppress(ValueError):
        if record.taken is not None:
            return datetime.fromisoformat(record.taken)
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(record.mtime_ns / 1e9)
    return datetime.min


def _moment(given: date | str | None, *, end: bool) -> datetime:
    """The first or last moment of what was given."""
    if given is None:
        return datetime.max if end else datetime.min
    if isinstance(given, str):
        written = given.strip()
        try:
            if len(written) == 4:
                written += "-12" if end else "-01"
            if len(written) == 7:
                written += f"-{monthrange(int(written[:4]), int(written[5:]))[1] if end else 1:02}"
            given = date.fromisoformat(written) if len(written) == 10 else datetime.fromisoformat(written)
        except (ValueError, IndexError) as error:
            raise InvalidOption(f"a date is written as 2024, 2024-05 or 2024-05-01, not {given!r}") from error
    if isinstance(given, datetime):
        return given.replace(tzinfo=None)
    return datetime.combine(given, time.max if end else time.min)
