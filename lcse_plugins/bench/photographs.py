"""Labelled photographs for the benchmarks: their vectors, their captions, and two fixed halves."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.errors import InvalidOption, LabelFileError
from lcse_plugins.labelled import LabelledImages
from lcse_plugins.regions import MANY_TILES, encode_regions

__all__ = ["Half", "Progress", "captions_of", "half_of", "image_vectors", "region_vectors", "take_images"]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total)."""

Half = Literal["A", "B"]

ENCODED_AT_ONCE = 32


def take_images(images: LabelledImages, positions: Sequence[int] | NDArray[np.intp]) -> LabelledImages:
    """The images at these positions."""
    chosen = [int(position) for position in positions]
    return LabelledImages(
        paths=tuple(images.paths[i] for i in chosen), labels=images.labels[chosen], classes=images.classes
    )


def half_of(images: LabelledImages, which: Half) -> NDArray[np.intp]:
    """Positions of one of two fixed halves, told apart by the hash of the file name: tune on A, report on B."""
    if which not in ("A", "B"):
        raise InvalidOption(f"there are halves A and B, not {which!r}")
    odd = np.array([hashlib.sha256(path.stem.encode()).digest()[0] % 2 for path in images.paths], dtype=int)
    return np.flatnonzero(odd == int(which == "B"))


def captions_of(paths: Sequence[Path], source: str | Path) -> tuple[tuple[str, ...], ...]:
    """What people wrote about each picture; nothing for pictures the source does not name.

    Args:
        paths: The pictures, found by their file names.
        source: `.jsonl` with `file` and `captions` on each line, or COCO's `captions_*.json`.

    Raises:
        LabelFileError: the source is not of that form.
    """
    source = Path(source)
    said: dict[str, list[str]] = defaultdict(list)
    try:
        text = source.read_text(encoding="utf-8")
        if source.suffix == ".jsonl":
            for line in filter(str.strip, text.splitlines()):
                row = json.loads(line)
                said[Path(row["file"]).name].extend(map(str, row.get("captions", ())))
        else:
            data: dict[str, Any] = json.loads(text)
            names = {image["id"]: Path(image["file_name"]).name for image in data["images"]}
            for annotation in data["annotations"]:
                said[names[annotation["image_id"]]].append(str(annotation["caption"]))
    except OSError as error:
        raise LabelFileError(source, f"cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabelFileError(source, f"holds no captions ({error!r})") from error
    return tuple(tuple(said[path.name]) for path in paths)


def image_vectors(
    encoder: Encoder, paths: Sequence[Path], *, cache: str | Path | None = None, progress: Progress | None = None
) -> FloatArray:
    """(n, d) vectors of pictures; with a `cache` folder they are computed once for an encoder and a list of files."""

    def encode() -> FloatArray:
        rows = np.empty((len(paths), encoder.dimension), dtype=np.float32)
        for start in range(0, len(paths), ENCODED_AT_ONCE):
            part = paths[start : start + ENCODED_AT_ONCE]
            rows[start : start + len(part)] = encoder.encode_images(part)
            if progress is not None:
                progress(start + len(part), len(paths))
        return rows

    return _kept(cache, f"vectors-{_identity(encoder, paths)}", encode)


def region_vectors(
    encoder: Encoder, paths: Sequence[Path], *, cache: str | Path | None = None, progress: Progress | None = None
) -> FloatArray:
    """(n, r, d) vectors of the regions of pictures (`MANY_TILES`), kept like `image_vectors`."""

    def report(done: int) -> None:
        if progress is not None:
            progress(done, len(paths))

    return _kept(
        cache,
        f"regions-{len(MANY_TILES)}-{_identity(encoder, paths)}",
        lambda: encode_regions(encoder, paths, tiles=MANY_TILES, progress=report),
    )


def _kept(cache: str | Path | None, name: str, make: Callable[[], FloatArray]) -> FloatArray:
    """An array from the cache folder, or made and put there; only made where there is no such folder."""
    if cache is None:
        return make()
    kept = Path(cache) / f"{name}.npy"
    if kept.is_file():
        return np.asarray(np.load(kept), dtype=np.float32)
    rows = make()
    kept.parent.mkdir(parents=True, exist_ok=True)
    np.save(kept, rows)
    return rows


def _identity(encoder: Encoder, paths: Sequence[Path]) -> str:
    parts = [encoder.encoder_id, *(f"{path}:{path.stat().st_size}" for path in paths)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
