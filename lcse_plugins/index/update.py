"""Bring an image index up to date with its folder: encode what is new or changed, drop what is gone."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from PIL import Image

from lcse_plugins.arguments import check_count
from lcse_plugins.encoders.images import MAX_BYTES, content_hash, load_image, map_ahead, walk_images
from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.errors import EncoderError, ImageError, IndexFileError, InvalidOption
from lcse_plugins.images.tiles import TILES, Tile, TileChoice, describe_tiles, views
from lcse_plugins.index.files import TABLE_FILE, exclusive, is_own_file
from lcse_plugins.index.scale import IndexScale, fit_index_scale
from lcse_plugins.index.store import FileRecord, IndexStore
from lcse_plugins.pool import UNIT_TOLERANCE

__all__ = ["IndexReport", "RowType", "check_encoder", "update_index"]

RowType = Literal["float32", "float16"]


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexReport:
    """What a run of `ImageIndex.build` did.

    Attributes:
        added: pictures that are new in the index.
        updated: pictures whose content had changed.
        removed: pictures that are no longer in the folder.
        unchanged: pictures that were left as they were.
        broken: every picture file of the folder that cannot be used, and every folder inside it that cannot be listed
            (what the index knows of its pictures is kept), and why.
        tiles: the parts of each picture that have vectors too; empty if none have.
    """

    added: int
    updated: int
    removed: int
    unchanged: int
    broken: tuple[ImageError, ...]
    tiles: tuple[Tile, ...] = ()


def update_index(
    folder: str | Path,
    out: str | Path,
    *,
    encoder: Encoder,
    batch_size: int,
    dtype: RowType | None,
    tiles: TileChoice | None,
    workers: int,
    progress: Callable[[int, int], None] | None,
) -> IndexReport:
    """What `ImageIndex.build` does."""
    check_count("batch_size", batch_size)
    if dtype not in (None, *get_args(RowType)):
        raise InvalidOption(f"unknown dtype {dtype!r}; choose one of {', '.join(get_args(RowType))}")
    if tiles not in (None, *TILES):
        raise InvalidOption(f"unknown tiles {tiles!r}; choose one of {', '.join(TILES)}, or None")
    root, place = Path(folder).resolve(), Path(out)
    unlisted: list[ImageError] = []
    names = sorted(path.relative_to(root).as_posix() for path in walk_images(root, left_out=unlisted.append))
    if not names:
        raise unlisted[0] if unlisted else ImageError(root, _why_nothing(place))
    _check_place(place)
    with exclusive(place), _open_or_create(place, root, encoder, dtype, tiles) as store:
        update = _Update(store, root, encoder, unlisted)
        update.broken += [
            ImageError(root / name, "its name is not valid Unicode") for name in names if not _named(name)
        ]
        return update.run([name for name in names if _named(name)], batch_size, workers, progress)


def check_encoder(store: IndexStore, encoder: Encoder) -> None:
    """Refuse to mix the vectors of two encoders.

    Raises:
        IndexFileError: the index was made with another encoder.
    """
    if (store.encoder_id, store.dimension) != (encoder.encoder_id, encoder.dimension):
        raise IndexFileError(
            f"the index {store.path} was made with encoder {store.encoder_id!r} ({store.dimension} dimensions), "
            f"not with {encoder.encoder_id!r} ({encoder.dimension}); use that encoder, or make another index"
        )


class _Update:
    """One run over a folder: what the index knows, what is met, and the batches written in between."""

    def __init__(self, store: IndexStore, root: Path, encoder: Encoder, unlisted: Sequence[ImageError]) -> None:
        self.store, self.root, self.encoder = store, root, encoder
        self.known = dict(store.records)
        self.by_content = {record.sha256: record for record in self.known.values() if record.row is not None}
        self.counts = {"added": 0, "updated": 0, "unchanged": 0}
        self.broken = list(unlisted)
        hidden = tuple(f"{Path(error.source).relative_to(root).as_posix()}/" for error in unlisted)
        self.unseen = [name for name in self.known if name.startswith(hidden)]

    def run(
        self, listed: Sequence[str], batch_size: int, workers: int, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Meet every file, then forget those that are gone."""
        done = 0
        stream = map_ahead(self._read, listed, workers=workers, prefetch=max(2 * workers, 1))
        while True:
            if progress:
                progress(done, len(listed))
            if done == len(listed):
                break
            done += self._batch(islice(stream, batch_size))
        for name in self.unseen:
            self._count(self.known[name])
        keep = sorted([*listed, *self.unseen])
        self.store.finish(folder=self.root, keep=keep, scale=self._scale(keep))
        gone = self.known.keys() - set(keep)
        removed = sum(self.known[name].row is not None for name in gone)
        return IndexReport(**self.counts, removed=removed, broken=tuple(self.broken), tiles=self.store.tiles)

    def _read(self, name: str) -> tuple[FileRecord, Image.Image | None]:
        """A file's record, and its picture when it has to be encoded; called from worker threads."""
        path, before, record = self.root / name, self.known.get(name), FileRecord(name, 0, 0)
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
                raise ImageError(path, "not a regular file")
            record = FileRecord(name, status.st_size, status.st_mtime_ns)
            # A file without a hash was never read: what stood in the way may be gone, and its time would not tell.
            if before and before.sha256 and (before.size, before.mtime_ns) == (record.size, record.mtime_ns):
                return before, None
            if record.size > MAX_BYTES:
                raise ImageError(path, f"{record.size:,} bytes are too many; at most {MAX_BYTES:,} are read")
            data = path.read_bytes()
            record = record._replace(sha256=content_hash(data))
            twin = self.by_content.get(record.sha256)
            if twin:  # touched, moved or copied: it shares the row until the rows are put in order
                return record._replace(row=twin.row, checksum=twin.checksum), None
            return record, load_image(data)
        except ImageError as error:
            return record._replace(fault=error.reason), None
        except OSError as error:
            return record._replace(fault=f"cannot be read ({error.strerror or error})"), None

    def _batch(self, stream: Iterator[tuple[FileRecord, Image.Image | None]]) -> int:
        """Encode and write the files of one batch; how many they were."""
        met: list[FileRecord] = []

        def pictures() -> Iterator[Image.Image]:
            for record, picture in stream:
                met.append(record)
                if picture is not None:
                    yield from views(picture, self.store.tiles)

        waiting = pictures()
        first = next(waiting, None)
        vectors = np.empty((0, self.store.dimension), dtype=np.float32)
        if first is not None:  # else the encoder need not even load its model
            vectors = self.encoder.encode_images(chain([first], waiting))
        fresh = sum(record.row is None and record.fault is None for record in met)
        shape = (fresh, 1 + len(self.store.tiles), self.store.dimension)
        _check_vectors(vectors, (shape[0] * shape[1], shape[2]), self.encoder)
        changed = [record for record in met if record != self.known.get(record.path)]
        if changed:
            self._save(changed, vectors.reshape(shape))
        for record in met:
            self._count(record)
        return len(met)

    def _save(self, records: Sequence[FileRecord], table: FloatArray) -> None:
        """Write a batch; the first one comes with a scale, so that an interrupted index can be searched too."""
        scale = None
        if self.store.tiles and self.store.scale is None:
            rows = range(len(table))
            scale = fit_index_scale(self.encoder, table[:, 0], table[:, 1:], rows=rows, checksums=())
        self.store.save(records, table, scale=scale)

    def _scale(self, names: Sequence[str]) -> IndexScale | None:
        if not self.store.tiles:
            return None
        records = [self.store.records[name] for name in names]
        return fit_index_scale(
            self.encoder,
            self.store.vectors(),
            self.store.regions(),
            rows=[record.row for record in records if record.row is not None],
            checksums=[record.checksum for record in records if record.row is not None],
            known=self.store.scale,
        )

    def _count(self, record: FileRecord) -> None:
        before = self.known.get(record.path)
        if record.fault is not None:
            self.broken.append(ImageError(self.root / record.path, record.fault))
        elif before is None or before.row is None:
            self.counts["added"] += 1
        else:
            self.counts["unchanged" if before.sha256 == record.sha256 else "updated"] += 1


def _open_or_create(
    place: Path, root: Path, encoder: Encoder, dtype: RowType | None, tiles: TileChoice | None
) -> IndexStore:
    if not (place / TABLE_FILE).exists():
        return IndexStore.create(
            place,
            encoder_id=encoder.encoder_id,
            dimension=encoder.dimension,
            dtype=dtype or "float32",
            folder=root,
            tiles=TILES[tiles] if tiles else (),
        )
    store = IndexStore(place)
    try:
        check_encoder(store, encoder)
        if dtype not in (None, store.dtype.name):
            raise IndexFileError(f"the index {place} keeps vectors as {store.dtype.name}, not {dtype}")
        if tiles is not None and TILES[tiles] != store.tiles:
            raise IndexFileError(
                f"the index {place} was built with tiles {describe_tiles(store.tiles)}, not {tiles}; "
                "leave the choice of tiles out to update it as it is, or make another index in a new place"
            )
        if store.folder != root and store.folder.is_dir():
            raise IndexFileError(f"the index {place} is of {store.folder}, not of {root}; choose another place")
        store.discard_strays()
    except IndexFileError:
        store.close()
        raise
    return store


def _why_nothing(place: Path) -> str:
    """Why a folder without picture files is refused, and what to do where an index still holds some."""
    nothing = "there are no picture files in this folder"
    if not (place / TABLE_FILE).exists():
        return nothing
    with IndexStore(place) as store:
        count = sum(record.row is not None for record in store.records.values())
    advice = "see whether a disk is not mounted, or delete the index if they are gone"
    return f"{nothing}, yet the index {place} still holds {count} pictures; {advice}" if count else nothing


def _check_place(place: Path) -> None:
    """Refuse to mix the index's files with someone else's."""
    if place.is_dir() and not (place / TABLE_FILE).exists():
        foreign = [name.name for name in place.iterdir() if not is_own_file(name.name)]
        if foreign:
            raise IndexFileError(f"{place} holds other files ({foreign[0]} …); give the index a folder of its own")


def _named(name: str) -> bool:
    """Whether a file's name is text; on some systems it may be any bytes."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def _check_vectors(vectors: FloatArray, shape: tuple[int, int], encoder: Encoder) -> None:
    if vectors.shape != shape:
        raise EncoderError(f"encoder {encoder.encoder_id!r} gave vectors of shape {vectors.shape} where {shape} is due")
    lengths = np.linalg.norm(np.asarray(vectors, dtype=np.float64), axis=1)
    if not np.all(np.abs(lengths - 1.0) <= UNIT_TOLERANCE):
        raise EncoderError(f"encoder {encoder.encoder_id!r} gave vectors that are not of length one")
