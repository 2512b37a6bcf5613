"""The image index: a folder of pictures as vectors on disk, kept up to date, ready to be searched."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.encoders.registry import load_encoder
from lcse_plugins.errors import ImageError, IndexFileError
from lcse_plugins.images.tiles import TileChoice, describe_tiles
from lcse_plugins.index.opening import RowType, check_encoder
from lcse_plugins.index.store import IndexStore
from lcse_plugins.index.update import IndexReport, update_index
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.tiles import RegionPool
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate

__all__ = ["ImageIndex", "IndexReport"]


class ImageIndex(VectorPool):
    """A folder's pictures as vectors: a pool to pass to `LogicScorer.rank` and `LogicScorer.search`.

    Made by `ImageIndex.build`, opened by `ImageIndex.open`. Vectors are memory-mapped, never loaded as a whole. What is
    opened stays as it was, also while another process updates the index. An index built with tiles looks for the
    concepts of a query with logic in the regions of a picture too, as `RegionPool` does.

    Attributes:
        path: Where the index is.
        folder: The pictures' folder.
        encoder_id: The encoder that made the vectors.
        ids: The pictures' paths relative to the folder, with forward slashes; sorted.
        broken: Picture files that could not be used, or not be read again, and why.
        tiles: The parts of each picture that have vectors too; empty if none have.
    """

    def __init__(self, store: IndexStore, *, quantised: bool = False) -> None:
        records = [store.records[path] for path in sorted(store.records)]
        sound = [(record, record.row) for record in records if record.row is not None]
        rows = [row for _, row in sound]
        vectors = store.vectors()
        # Rows stand in the order of paths, except after an interrupted update: then they are picked into memory.
        in_order = rows == list(range(len(vectors)))
        super().__init__(vectors if in_order else vectors[rows], assume_unit=True, quantised=quantised)
        self.path = store.path
        self.folder = store.meta.folder
        self.encoder_id = store.meta.encoder_id
        self.ids = tuple(record.path for record, _ in sound)
        self.broken = tuple(ImageError(self.folder / r.path, r.fault) for r in records if r.fault is not None)
        self.tiles = store.meta.tiles
        self._checksums = tuple(record.checksum for record, _ in sound)
        self._regional: RegionPool | None = None
        if self.tiles:
            self._regional = RegionPool(
                self.vectors,
                store.regions(),
                scale=store.meta.scale and store.meta.scale.view_scale,
                rows=None if in_order else rows,
                assume_unit=True,
            )

    @classmethod
    def open(cls, path: str | Path, *, encoder: Encoder | str | None = None, quantised: bool = False) -> ImageIndex:
        """Open an index.

        Args:
            path: Where `build` put it.
            encoder: The encoder of the queries to come, or its name; refused when the vectors are another's.
            quantised: Read all vectors once for an eight-bit copy in memory; pays when many queries follow. Regions
                are scored without it.

        Raises:
            IndexFileError: there is no index, it is damaged, or it was made with another encoder.
        """
        with IndexStore(Path(path)) as store:
            if encoder is not None:
                check_encoder(store, load_encoder(encoder))
            return cls(store, quantised=quantised)

    @classmethod
    def build(
        cls,
        folder: str | Path,
        out: str | Path,
        *,
        encoder: Encoder | str,
        batch_size: int = 64,
        dtype: RowType | None = None,
        tiles: TileChoice | None = None,
        workers: int = 2,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexReport:
        """Make the index of a folder, or bring it up to date.

        New and changed pictures are encoded, vanished ones dropped, broken ones listed and tried again in each run. Of
        a known one that cannot be read at the moment, what is known is kept. Each batch is on disk before
        the next begins: an interrupted run loses at most the last one, and the next run goes on from there. A picture
        that was moved or renamed is known by its content and not encoded again. A file of the same name, size and time
        of change counts as unchanged.

        Args:
            folder: The pictures, in any depth.
            out: The folder of the index; it need not exist.
            encoder: What makes the vectors, or its name.
            batch_size: Files after which the work is written down.
            dtype: How a new index keeps its vectors: "float32" by default; "float16" takes half, at three digits.
            tiles: Also encode five ("few") or fourteen ("many") tiles of each picture, so that queries with logic find
                small things, for six or fifteen times the vectors and up to as much time; None: as the index was built,
                and none in a new one.
            workers: Threads that read and decode ahead.
            progress: Called with how many files are done, and of how many.

        Raises:
            ImageError: the folder cannot be listed or holds no picture files.
            IndexFileError: `out` is damaged, is being written, belongs to another encoder or folder, or was built
                with other tiles.
        """
        return update_index(
            folder,
            out,
            encoder=load_encoder(encoder),
            batch_size=batch_size,
            dtype=dtype,
            tiles=tiles,
            workers=workers,
            progress=progress,
        )

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The pictures' full paths, one per vector."""
        return tuple(self.folder / name for name in self.ids)

    def candidate(self, position: int) -> Candidate:
        """The picture at a position, its full path as payload."""
        name = self.ids[position]
        return Candidate(
            id=name, vector=np.asarray(self.vectors[position], dtype=np.float32), payload=self.folder / name
        )

    def top(
        self, encoded: EncodedQuery, *, limit: int | None = None, min_truth: float | None = None
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Positions and scores of the best pictures, best first; equal scores keep the order of the index."""
        if self._regional is None or encoded.edits_nothing:
            return super().top(encoded, limit=limit, min_truth=min_truth)
        return self._regional.top(encoded, limit=limit, min_truth=min_truth)

    def similarities(self, encoded: EncodedQuery, positions: slice | NDArray[np.intp]) -> FloatArray:
        """(k, 1 + m) similarities of the text and the concepts to the pictures at these positions."""
        if self._regional is None:
            return super().similarities(encoded, positions)
        return self._regional.similarities(encoded, positions)

    def part(self, positions: Sequence[int]) -> VectorPool:
        """A pool of the pictures at these positions alone, with their regions."""
        if self._regional is None:
            return super().part(positions)
        return self._regional.part(positions, candidates=[self.candidate(position) for position in positions])

    def position(self, picture: str | Path) -> int:
        """Where a picture stands, by its id or its path.

        Raises:
            ImageError: it is not in the index, or has no vector there.
        """
        path = Path(picture)
        names = [str(picture), path.as_posix()]
        with suppress(OSError, RuntimeError, ValueError):  # RuntimeError: a loop of links, before Python 3.13
            for place in (path.parent.resolve() / path.name, path.resolve()):  # a picture may itself be a link
                if place.is_relative_to(self.folder):
                    names.append(place.relative_to(self.folder).as_posix())
        for name in names:
            if name in self._positions:
                return self._positions[name]
        for error in self.broken:
            if any(Path(error.source) == self.folder / name for name in names):
                raise ImageError(picture, f"not in the index {self.path}, which left it out: {error.reason}")
        raise ImageError(picture, f"not in the index {self.path}, which holds {len(self)} pictures of {self.folder}")

    def verify(self) -> None:
        """Read every vector and compare it with its checksum.

        Raises:
            IndexFileError: a vector is damaged.
        """
        for position, expected in enumerate(self._checksums):
            checksum = zlib.crc32(self.vectors[position].tobytes())
            if self._regional is not None:
                checksum = zlib.crc32(self._regional.regions_of(slice(position, position + 1)).tobytes(), checksum)
            if checksum != expected:
                raise IndexFileError(
                    f"the image index {self.path} is damaged (the vector of {self.ids[position]} has changed); "
                    "delete it and run `lcse index` again"
                )

    def __repr__(self) -> str:
        tiles = f", tiles {describe_tiles(self.tiles)}" if self.tiles else ""
        return f"ImageIndex({str(self.path)!r}, {len(self)} pictures, encoder {self.encoder_id!r}{tiles})"

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.ids)}
