"""Labelled photographs for the benchmarks: their vectors, their captions, and two fixed halves."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.errors import EncoderError, ImageError, LabelFileError
from lcse_plugins.retrieval.tiles import encode_regions

__all__ = ["Half", "Progress", "captions_of", "half_of", "image_vectors", "take_images", "tile_vectors"]

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
    odd = np.array([hashlib.sha256(path.stem.encode()).digest()[0] % 2 for path in images.paths], dtype=int)
    return np.flatnonzero(odd == int(which == "B"))


def captions_of(paths: Sequence[Path], source: str | Path, *, root: str | Path) -> list[list[str]]:
    """What people wrote about each picture; nothing for pictures the source does not name.

    Args:
        paths: The pictures.
        source: JSON lines with `file` and `captions`.
        root: The folder that the file names of the source start from.

    Raises:
        LabelFileError: the source is not of that form.
    """
    said: dict[Path, list[str]] = {}
    try:
        for line in filter(str.strip, Path(source).read_text(encoding="utf-8-sig").split("\n")):
            row = json.loads(line)
            if not isinstance(captions := row.get("captions", []), list):
                raise LabelFileError(source, f"captions are a list of texts, not {captions!r:.80}")
            said[Path(root, row["file"])] = [str(caption) for caption in captions]
    except OSError as error:
        raise LabelFileError(source, f"cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, LabelFileError):
            raise
        raise LabelFileError(source, f"holds no captions ({error!r})") from error
    return [said.get(path, []) for path in paths]


def image_vectors(
    encoder: Encoder, paths: Sequence[Path], *, cache: str | Path | None = None, progress: Progress | None = None
) -> FloatArray:
    """(n, d) vectors of pictures; with a `cache` folder they are computed once for an encoder and a list of files.

    Raises:
        ImageError: a picture is not there or cannot be read.
        EncoderError: the encoder gave NaN or infinite values.
    """

    def encode() -> FloatArray:
        rows = np.empty((len(paths), encoder.dimension), dtype=np.float32)
        for start in range(0, len(paths), ENCODED_AT_ONCE):
            part = paths[start : start + ENCODED_AT_ONCE]
            rows[start : start + len(part)] = encoder.encode_images(part)
            if progress is not None:
                progress(start + len(part), len(paths))
        return rows

    return _kept(cache, "vectors", encoder, paths, encode)


def tile_vectors(
    encoder: Encoder, paths: Sequence[Path], *, cache: str | Path | None = None, progress: Progress | None = None
) -> FloatArray:
    """(n, r, d) vectors of the tiles of pictures, kept like `image_vectors`."""

    def report(done: int) -> None:
        if progress is not None:
            progress(done, len(paths))

    return _kept(cache, "tiles", encoder, paths, lambda: encode_regions(encoder, paths, progress=report))


def _kept(
    cache: str | Path | None, kind: str, encoder: Encoder, paths: Sequence[Path], make: Callable[[], FloatArray]
) -> FloatArray:
    """An array from the cache folder, or made and put there; only made where there is no such folder."""
    kept = None if cache is None else Path(cache, f"{kind}-{_identity(encoder, paths)}.npy")
    if kept is not None:
        with contextlib.suppress(OSError, ValueError, EOFError):  # not there, or damaged
            return np.asarray(np.load(kept), dtype=np.float32)
    rows = make()
    if not np.isfinite(rows).all():
        raise EncoderError(f"encoder {encoder.encoder_id} gave NaN or infinite values for some pictures")
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_suffix(f".{os.getpid()}")
        with open(draft, "wb") as stream:
            np.save(stream, rows)
        os.replace(draft, kept)
    return rows


def _identity(encoder: Encoder, paths: Sequence[Path]) -> str:
    """Of an encoder and of files as they are now."""
    try:
        files = [f"{path}:{(now := path.stat()).st_size}:{now.st_mtime_ns}" for path in paths]
    except OSError as error:
        raise ImageError(error.filename, "there is no such picture") from error
    return hashlib.sha256("\n".join([encoder.encoder_id, *files]).encode()).hexdigest()[:16]
