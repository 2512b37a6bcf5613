"""Bring an image index up to date with its folder: encode what is new or changed, drop what is gone."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import get_args

import numpy as np
from PIL import Image

from lcse_plugins.encoders.ahead import map_ahead
from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.errors import EncoderError, ImageError, InvalidOption
from lcse_plugins.images.reading import MAX_BYTES, content_hash, load_image, reason_of, walk_images
from lcse_plugins.images.tiles import TILES, Tile, TileChoice, views
from lcse_plugins.index.files import exclusive
from lcse_plugins.index.opening import RowType, check_place, open_or_create, resolved_folder, why_nothing
from lcse_plugins.index.scale import IndexScale, fit_index_scale
from lcse_plugins.index.store import IndexStore
from lcse_plugins.index.table import FileRecord
from lcse_plugins.retrieval.tables import UNIT_TOLERANCE
from lcse_plugins.scoring.arguments import check_count, has_surrogates

__all__ = ["IndexReport", "update_index"]


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexReport:
    """What a run of `ImageIndex.build` did.

    Attributes:
        added: Pictures that are new in the index.
        updated: Pictures whose content had changed.
        removed: Pictures that are no longer in the folder.
        unchanged: Pictures that were left as they were.
        broken: Every picture file of the folder that cannot be used, and every folder inside it that cannot be listed,
            and why. Where reading failed, what the index knows is kept.
        tiles: The parts of each picture that have vectors too; empty if none have.
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
    root, place = resolved_folder(folder), Path(out)
    _pictures(root, place, [])  # refused before anything is written
    check_place(place)
    with exclusive(place), open_or_create(place, root, encoder, dtype, tiles) as store:
        unlisted: list[ImageError] = []
        names = sorted(path.relative_to(root).as_posix() for path in _pictures(root, place, unlisted))
        update = _Update(store, root, encoder, unlisted)
        update.broken += [
            ImageError(root / name, "its name is not valid Unicode") for name in names if has_surrogates(name)
        ]
        return update.run([name for name in names if not has_surrogates(name)], batch_size, workers, progress)


def _pictures(root: Path, place: Path, unlisted: list[ImageError]) -> Iterator[Path]:
    """The picture files of a folder, listed as they are taken; one without any is refused at once."""
    paths = walk_images(root, left_out=unlisted.append)
    first = next(paths, None)
    if first is None:
        raise unlisted[0] if unlisted else ImageError(root, why_nothing(place))
    return chain([first], paths)


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
        return IndexReport(**self.counts, removed=removed, broken=tuple(self.broken), tiles=self.store.meta.tiles)

    def _read(self, name: str) -> tuple[FileRecord, Image.Image | None]:
        """A file's record, and its picture when it has to be encoded; called from worker threads."""
        path, before, record = self.root / name, self.known.get(name), FileRecord(name, 0, 0)
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
                raise ImageError(path, "not a regular file")
            record = FileRecord(name, status.st_size, _in_64_bits(status.st_mtime_ns))
            # What made a fault may be gone, and the file's time would not tell.
            if before and not before.fault and (before.size, before.mtime_ns) == (record.size, record.mtime_ns):
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
            fault = f"cannot be read ({reason_of(error)})"
            if before is None or before.row is None or isinstance(error, FileNotFoundError):
                return record._replace(fault=fault), None
            return before._replace(fault=f"{fault}; what the index knows of it is kept"), None

    def _batch(self, stream: Iterator[tuple[FileRecord, Image.Image | None]]) -> int:
        """Encode and write the files of one batch; how many they were."""
        met: list[FileRecord] = []

        def pictures() -> Iterator[Image.Image]:
            for record, picture in stream:
                met.append(record)
                if picture is not None:
                    yield from views(picture, self.store.meta.tiles)

        waiting = pictures()
        first = next(waiting, None)
        vectors = np.empty((0, self.store.meta.dimension), dtype=np.float32)
        if first is not None:  # else the encoder need not even load its model
            vectors = self.encoder.encode_images(chain([first], waiting))
        fresh = sum(record.row is None and record.fault is None for record in met)
        shape = (fresh, 1 + len(self.store.meta.tiles), self.store.meta.dimension)
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
        if self.store.meta.tiles and self.store.meta.scale is None:
            rows = range(len(table))
            scale = fit_index_scale(self.encoder, table[:, 0], table[:, 1:], rows=rows, checksums=())
        self.store.save(records, table, scale=scale)

    def _scale(self, names: Sequence[str]) -> IndexScale | None:
        if not self.store.meta.tiles:
            return None
        records = [self.store.records[name] for name in names]
        return fit_index_scale(
            self.encoder,
            self.store.vectors(),
            self.store.regions(),
            rows=[record.row for record in records if record.row is not None],
            checksums=[record.checksum for record in records if record.row is not None],
            known=self.store.meta.scale,
        )

    def _count(self, record: FileRecord) -> None:
        before = self.known.get(record.path)
        if record.fault is not None:
            self.broken.append(ImageError(self.root / record.path, record.fault))
        elif before is None or before.row is None:
            self.counts["added"] += 1
        else:
            self.counts["unchanged" if before.sha256 == record.sha256 else "updated"] += 1


def _in_64_bits(number: int) -> int:
    """A number as SQLite can keep it; a file's time may lie centuries away."""
    return (number + 2**63) % 2**64 - 2**63


def _check_vectors(vectors: FloatArray, shape: tuple[int, int], encoder: Encoder) -> None:
    if vectors.shape != shape:
        raise EncoderError(f"encoder {encoder.encoder_id!r} gave vectors of shape {vectors.shape} where {shape} is due")
    lengths = np.linalg.norm(np.asarray(vectors, dtype=np.float64), axis=1)
    if not np.all(np.abs(lengths - 1.0) <= UNIT_TOLERANCE):
        raise EncoderError(f"encoder {encoder.encoder_id!r} gave vectors that are not of length one")
