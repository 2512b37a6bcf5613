"""Whether an index may be made or written for a folder of pictures, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import ImageError, IndexFileError
from lcse_plugins.images.reading import content_hash
from lcse_plugins.images.tiles import TILES, TileChoice, describe_tiles
from lcse_plugins.index.files import TABLE_FILE, is_own_file
from lcse_plugins.index.store import IndexStore
from lcse_plugins.index.table import FileRecord, IndexMeta
from lcse_plugins.scoring.arguments import has_surrogates

__all__ = ["RowType", "check_encoder", "check_place", "open_or_create", "resolved_folder", "why_nothing"]

RowType = Literal["float32", "float16"]


def resolved_folder(folder: str | Path) -> Path:
    """Where a folder of pictures is, links resolved.

    Raises:
        ImageError: it is a loop of links, or its path cannot be written down.
    """
    try:
        root = Path(folder).resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
        raise ImageError(folder, f"cannot be listed ({error})") from error
    if has_surrogates(str(root)):
        raise ImageError(root, "the folder's path is not valid Unicode; rename it, or the folder it is in")
    return root


def why_nothing(place: Path) -> str:
    """Why a folder without picture files is refused, and what to do where an index still holds some."""
    nothing = "there are no picture files in this folder"
    if not (place / TABLE_FILE).exists():
        return nothing
    with IndexStore(place) as store:
        count = sum(record.row is not None for record in store.records.values())
    advice = "see whether a disk is not mounted, or delete the index if they are gone"
    return f"{nothing}, yet the index {place} still holds {count} pictures; {advice}" if count else nothing


def check_place(place: Path) -> None:
    """Refuse to mix the index's files with someone else's.

    Raises:
        IndexFileError: other files are there, or a file is in its place.
    """
    if place.is_file():
        raise IndexFileError(f"an index cannot be written at {place}: it is a file; give the index a folder of its own")
    if place.is_dir() and not (place / TABLE_FILE).exists():
        foreign = [name.name for name in place.iterdir() if not is_own_file(name.name)]
        if foreign:
            raise IndexFileError(f"{place} holds other files ({foreign[0]} …); give the index a folder of its own")


def check_encoder(store: IndexStore, encoder: Encoder) -> None:
    """Refuse to mix the vectors of two encoders.

    Raises:
        IndexFileError: the index was made with another encoder.
    """
    meta = store.meta
    if (meta.encoder_id, meta.dimension) != (encoder.encoder_id, encoder.dimension):
        raise IndexFileError(
            f"the index {store.path} was made with encoder {meta.encoder_id!r} ({meta.dimension} dimensions), "
            f"not with {encoder.encoder_id!r} ({encoder.dimension}); use that encoder, or make another index"
        )


def open_or_create(
    place: Path, root: Path, encoder: Encoder, dtype: RowType | None, tiles: TileChoice | None
) -> IndexStore:
    """The index at a place, to be written; a new one if there is none.

    Raises:
        IndexFileError: the index there belongs to another encoder or folder, or was built in another way.
    """
    if not (place / TABLE_FILE).exists():
        meta = IndexMeta(
            encoder_id=encoder.encoder_id,
            dimension=encoder.dimension,
            dtype=np.dtype(dtype or "float32"),
            folder=root,
            tiles=TILES[tiles] if tiles else (),
        )
        return IndexStore.create(place, meta)
    store = IndexStore(place)
    try:
        check_encoder(store, encoder)
        _check_kind(store, dtype, tiles)
        _check_folder(store, root)
        store.discard_strays()
    except IndexFileError:
        store.close()
        raise
    return store


def _check_kind(store: IndexStore, dtype: RowType | None, tiles: TileChoice | None) -> None:
    if dtype not in (None, store.meta.dtype.name):
        raise IndexFileError(f"the index {store.path} keeps vectors as {store.meta.dtype.name}, not {dtype}")
    if tiles is not None and TILES[tiles] != store.meta.tiles:
        raise IndexFileError(
            f"the index {store.path} was built with tiles {describe_tiles(store.meta.tiles)}, not {tiles}; "
            "leave the choice of tiles out to update it as it is, or make another index in a new place"
        )


def _check_folder(store: IndexStore, root: Path) -> None:
    """Refuse another folder than the index's own, unless that has moved there: one of its pictures tells."""
    folder = store.meta.folder
    if folder == root:
        return
    if folder.is_dir():
        raise IndexFileError(f"the index {store.path} is of {folder}, not of {root}; choose another place")
    known = [record for record in store.records.values() if record.row is not None]
    if known and not any(_is_same(record, root / record.path) for record in known):
        raise IndexFileError(
            f"the index {store.path} is of {folder}, which is not there, and it knows none of the pictures of {root}; "
            "see whether a disk is not mounted, or choose another place"
        )


def _is_same(record: FileRecord, path: Path) -> bool:
    try:
        return path.stat().st_size == record.size and content_hash(path) == record.sha256
    except (OSError, ImageError):
        return False
