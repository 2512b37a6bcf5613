"""Bring an image index up to date with its folders: encode what is new, changed or damaged, drop what is gone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL.Image import Image

from lcse_plugins.encoders.batches import batched, map_ahead
from lcse_plugins.encoders.protocol import Encoder, FloatArray, checked
from lcse_plugins.errors import CalibrationError, ImageError, IndexFileError, InvalidOption
from lcse_plugins.images.encoding import encode_stream
from lcse_plugins.images.reading import content_hash, load_photograph, open_regular, reason_of
from lcse_plugins.images.scan import passed_over_note, scan_folder
from lcse_plugins.images.tiles import FEW_TILES, views
from lcse_plugins.index.store import (
    FileRecord,
    IndexMeta,
    IndexStore,
    Key,
    create_index,
    damaged_records,
    exclusive,
    is_index,
)
from lcse_plugins.retrieval.tiles import fit_view_scale
from lcse_plugins.scoring.arguments import check_count, has_surrogates

__all__ = ["IndexReport", "check_encoder", "resolved_folders", "update_index"]

SCALE_SAMPLE = 2_048
"""Pictures to fit the scale of tiles on at most, evenly spread over the index."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexReport:
    """What a run of `ImageIndex.build` did.

    Attributes:
        path: Where the index is.
        added: Pictures that are new in the index.
        updated: Pictures whose content had changed.
        removed: Pictures that are no longer in the folders.
        unchanged: Pictures that were left as they were.
        repaired: Pictures whose vectors were damaged, and were made again.
        broken: Every picture file that cannot be used, and every folder inside that cannot be listed, and why. Where
            reading failed, what the index knows is kept.
        passed_over: How many pictures of formats that cannot be read here there are, by suffix.
        tiles: Whether the tiles of each picture have vectors too.
    """

    path: Path
    added: int = 0
    updated: int = 0
    removed: int = 0
    unchanged: int = 0
    repaired: int = 0
    broken: tuple[ImageError, ...] = ()
    passed_over: Mapping[str, int] = field(default_factory=dict)
    tiles: bool = False

    @property
    def note(self) -> str | None:
        """One line on what was passed over and how to read it; None when nothing was."""
        return passed_over_note(self.passed_over)


def update_index(
    folders: Sequence[Path],
    place: Path,
    *,
    encoder: Encoder,
    batch_size: int,
    tiles: str | None,
    progress: Callable[[int, int], None] | None,
) -> IndexReport:
    """What `ImageIndex.build` does."""
    check_count("batch_size", batch_size)
    if tiles not in (None, "few"):
        raise InvalidOption(f"unknown tiles {tiles!r}; choose few, or None")
    encoder = checked(encoder)
    if not is_index(place):
        _check_not_empty(folders, place)  # before anything is written
    with exclusive(place):
        if not is_index(place):
            count = 1 + len(FEW_TILES) if tiles else 1
            create_index(place, IndexMeta(encoder.encoder_id, encoder.dimension, tuple(folders), views=count))
        with IndexStore(place, mend=True) as store:
            check_encoder(store, encoder)
            if tiles and store.meta.views == 1:
                raise IndexFileError(
                    f"the index {place} was built without tiles; leave them out, or make another index in a new place"
                )
            store.meta = store.meta._replace(folders=_merged(store, folders))
            store.discard_strays()
            return _Update(store, encoder).run(batch_size, progress or (lambda done, total: None))


def resolved_folders(folders: str | Path | Sequence[str | Path]) -> list[Path]:
    """Where folders of pictures are, links resolved; one that lies in another is left out."""
    given = [folders] if isinstance(folders, str | Path) else list(folders)
    if not given:
        raise InvalidOption("give at least one folder of pictures")
    found: list[Path] = []
    for folder in given:
        try:
            found.append(Path(folder).resolve())
        except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
            raise ImageError(folder, f"cannot be listed ({error})") from error
        if has_surrogates(str(found[-1])):
            raise ImageError(found[-1], "the folder's path is not valid Unicode; rename it, or the folder it is in")
    distinct = list(dict.fromkeys(found))
    return [folder for folder in distinct if not any(other in folder.parents for other in distinct)]


def check_encoder(store: IndexStore, encoder: Encoder) -> None:
    """Refuse to mix the vectors of two encoders."""
    meta = store.meta
    if (meta.encoder_id, meta.dimension) != (encoder.encoder_id, encoder.dimension):
        raise IndexFileError(
            f"the index {store.path} was made with encoder {meta.encoder_id!r} ({meta.dimension} dimensions), "
            f"not with {encoder.encoder_id!r} ({encoder.dimension}); use that encoder, or make another index"
        )


def _check_not_empty(folders: Sequence[Path], place: Path) -> None:
    """Refuse folders without pictures: more often a disk is away than that someone deleted all."""
    passed_over, unlisted = Counter[str](), list[ImageError]()
    for folder in folders:
        for found in scan_folder(folder, passed_over=passed_over):
            if not isinstance(found, ImageError) or not os.path.isdir(found.source):
                return
            unlisted.append(found)
    if unlisted:
        raise unlisted[0]
    reason = "there are no picture files in this folder"
    if note := passed_over_note(passed_over):
        reason += f" that can be read here ({note})"
    if is_index(place):
        with IndexStore(place) as store:
            count = sum(record.row is not None for record in store.records.values())
        advice = "see whether a disk is not mounted, or delete the index if they are gone"
        reason += f", yet the index {place} still holds {count} pictures; {advice}" if count else ""
    raise ImageError(" or ".join(map(str, folders)), reason)


def _merged(store: IndexStore, given: Sequence[Path]) -> tuple[Path, ...]:
    """The index's folders, and those of the given ones that are new; all of the index's must be given."""
    for folder in store.meta.folders:
        if folder not in given:
            where = "" if folder.is_dir() else ", which is not there"
            raise IndexFileError(
                f"the index {store.path} is of {folder}{where}, not of {' or '.join(map(str, given))}; "
                f"name {folder} too, see whether a disk is not mounted, or choose another place"
            )
    return tuple(dict.fromkeys((*store.meta.folders, *given)))


class _Update:
    """One run over the folders: what the index knows, what is met, and the batches written in between."""

    def __init__(self, store: IndexStore, encoder: Encoder) -> None:
        self.store, self.encoder = store, encoder
        self.folders, self.known, self.rows = store.meta.folders, dict(store.records), store.rows()
        self.damaged = {record.key for record in damaged_records(self.known.values(), self.rows)}
        for key in self.damaged:  # to be read and encoded as if they were new
            self.known[key] = self.known[key]._replace(row=None, checksum=None, fault="damaged")
        self.by_content = {record.sha256: record for record in self.known.values() if record.row is not None}
        self.counts, self.passed_over = Counter[str](), Counter[str]()
        self.broken: list[ImageError] = []

    def run(self, batch_size: int, tell: Callable[[int, int], None]) -> IndexReport:
        """Meet every file, then forget those that are gone."""
        listed, unseen = self._listed()
        tiled, done = self.store.meta.views > 1, 0
        read = map_ahead(self._read, listed.items())
        encoded = encode_stream(self.encoder, read, batch_size=batch_size, views=views if tiled else None)
        tell(done, len(listed))
        for batch in batched(encoded, batch_size):
            fresh = [(record, found if isinstance(found, np.ndarray) else None) for record, found in batch]
            self.store.save(item for item in fresh if item[1] is not None or item[0] != self.known.get(item[0].key))
            for record, _ in fresh:
                self._count(record)
            done += len(batch)
            tell(done, len(listed))
        for key in unseen:
            self._count(self.known[key])
        keep = [*listed, *unseen]
        self.store.finish(keep, scale=self._scale([self.store.records[key] for key in sorted(keep)]) if tiled else None)
        gone = self.known.keys() - set(keep)
        self.counts["removed"] = sum(self.known[key].row is not None or key in self.damaged for key in gone)
        return IndexReport(
            path=self.store.path,
            broken=tuple(self.broken),
            passed_over=dict(self.passed_over),
            tiles=tiled,
            **self.counts,
        )

    def _listed(self) -> tuple[dict[Key, ImageError | None], list[Key]]:
        """The picture files that are there, with their faults; and known ones in folders that cannot be listed."""
        listed, unseen = dict[Key, ImageError | None](), list[Key]()
        for number, folder in enumerate(self.folders):
            for found in scan_folder(folder, passed_over=self.passed_over):
                fault = found if isinstance(found, ImageError) else None
                path = found if isinstance(found, Path) else Path(found.source)
                name = path.relative_to(folder).as_posix()
                if fault is None or not (has_surrogates(name) or os.path.isdir(path)):
                    listed[number, name] = fault
                    continue
                self.broken.append(fault)
                unseen += [key for key in self.known if key[0] == number and key[1].startswith(f"{name}/")]
        if not listed:
            _check_not_empty(self.folders, self.store.path)
        return dict(sorted(listed.items())), unseen

    def _read(self, item: tuple[Key, ImageError | None]) -> tuple[FileRecord, Image | None]:
        """A file's record, and its picture when it has to be encoded; called from worker threads."""
        key, fault = item
        path, before, record = self.folders[key[0]] / key[1], self.known.get(key), FileRecord(*key)
        try:
            if fault is not None:
                raise fault
            status = path.stat()
            # A file's time may lie centuries away; SQLite keeps 64 bits.
            record = record._replace(size=status.st_size, mtime_ns=(status.st_mtime_ns + 2**63) % 2**64 - 2**63)
            # What made a fault may be gone, and the file's time would not tell.
            if before and not before.fault and (before.size, before.mtime_ns) == (record.size, record.mtime_ns):
                return before, None
            with open_regular(path) as stream:
                record = record._replace(sha256=content_hash(stream))
                twin = self.by_content.get(record.sha256)
                if twin and twin.row is not None:  # touched, moved or copied: it shares the row until the end
                    record = record._replace(taken=twin.taken, row=twin.row)
                    return record._replace(checksum=record.sum_of(self.rows[twin.row])), None
                picture, taken = load_photograph(stream, name=str(path))
                return record._replace(taken=None if taken is None else taken.isoformat()), picture
        except FileNotFoundError:
            return record._replace(fault="there is no such file"), None
        except (ImageError, OSError) as error:
            passing = error if isinstance(error, OSError) else error.__cause__
            reason = error.reason if isinstance(error, ImageError) else f"cannot be read ({reason_of(error)})"
            if before and before.row is not None and isinstance(passing, OSError) and passing.errno is not None:
                return before._replace(fault=f"{reason}; what the index knows of it is kept"), None
            return record._replace(fault=reason), None

    def _count(self, record: FileRecord) -> None:
        before = self.known.get(record.key)
        if record.fault is not None:
            self.broken.append(ImageError(self.folders[record.folder] / record.path, record.fault))
        elif record.key in self.damaged:
            self.counts["repaired"] += 1
        elif before is None or before.row is None:
            self.counts["added"] += 1
        else:
            self.counts["unchanged" if before.sha256 == record.sha256 else "updated"] += 1

    def _scale(self, records: Sequence[FileRecord]) -> tuple[float, float] | None:
        """The scale of tiles, fitted again when the pictures have changed."""
        rows = [record.row for record in records if record.row is not None]
        same = [record.checksum for record in records] == [self.known[key].checksum for key in sorted(self.known)]
        if not rows or (same and self.store.meta.scale is not None):
            return self.store.meta.scale
        chosen = np.asarray(rows)[np.linspace(0, len(rows) - 1, min(len(rows), SCALE_SAMPLE)).astype(np.intp)]
        table: FloatArray = self.store.rows()[chosen]
        try:
            scale = fit_view_scale(self.encoder, table[:, 0], table[:, 1:])
        except CalibrationError:  # pictures that are all alike tell no scale
            return 1.0, 0.0
        return float(scale.factor), float(scale.offset)
