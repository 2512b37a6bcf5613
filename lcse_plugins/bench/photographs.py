"""What benchmarks measure on: labelled photographs, their halves, captions and vectors; texts that are read once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.encoders.batches import batched
from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource
from lcse_plugins.errors import ImageError, LabelFileError

__all__ = [
    "Half",
    "Progress",
    "RememberingEncoder",
    "captions_of",
    "half_of",
    "image_vectors",
    "take_images",
    "tracked",
]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total)."""

Half = Literal["A", "B"]

IMAGES_AT_ONCE = 32
TEXTS_AT_ONCE = 256

_T = TypeVar("_T")


def tracked(items: Sequence[_T], progress: Progress | None) -> Iterator[_T]:
    """The items in turn, with progress reported after each."""
    for done, item in enumerate(items, start=1):
        yield item
        if progress is not None:
            progress(done, len(items))


def take_images(images: LabelledImages, positions: Iterable[int]) -> LabelledImages:
    """The images at these positions."""
    chosen = [int(position) for position in positions]
    return LabelledImages(tuple(images.paths[i] for i in chosen), images.labels[chosen], images.classes)


def half_of(images: LabelledImages, which: Half) -> NDArray[np.intp]:
    """Positions of one of two fixed halves, told apart by the hash of the file name: tune on A, report on B."""
    odd = np.array([hashlib.sha256(path.stem.encode()).digest()[0] % 2 for path in images.paths], dtype=int)
    return np.flatnonzero(odd == int(which == "B"))


def captions_of(paths: Sequence[Path], source: Path, *, root: Path) -> list[list[str]]:
    """What people wrote about each picture; nothing for pictures the source does not name.

    Args:
        paths: The pictures.
        source: JSON lines with `file` and `captions`, a list of texts.
        root: The folder that the file names of the source start from.

    Raises:
        LabelFileError: the source is not of that form.
    """
    said: dict[Path, list[str]] = {}
    for number, line in enumerate(source.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            match row.get("captions", []):
                case list() as captions if all(isinstance(caption, str) for caption in captions):
                    said[root / row["file"]] = captions
                case other:
                    raise LabelFileError(source, f"captions are a list of texts, not {other!r:.80}", line=number)
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise LabelFileError(source, f"holds no captions ({error!r})", line=number) from error
    return [said.get(path, []) for path in paths]


def image_vectors(
    encoder: Encoder, paths: Sequence[Path], *, cache: Path | None = None, progress: Progress | None = None
) -> FloatArray:
    """(n, d) vectors of pictures; with a `cache` folder they are computed once for an encoder and a list of files.

    Raises:
        ImageError: a picture is not there or cannot be read.
    """
    kept = None if cache is None else cache / f"vectors-{_identity(encoder, paths)}.npy"
    if kept is not None:
        with contextlib.suppress(OSError, ValueError, EOFError):  # not there, or damaged
            return np.asarray(np.load(kept), dtype=np.float32)
    parts = list(batched(paths, IMAGES_AT_ONCE))
    rows = np.concatenate([encoder.encode_images(part) for part in tracked(parts, progress)])
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


class RememberingEncoder:
    """Passes on to another encoder and keeps every text vector it gave, so that many modes share one reading."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._kept: dict[str, FloatArray] = {}
        self.encoder_id, self.dimension, self.calibration = encoder.encoder_id, encoder.dimension, encoder.calibration

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        """(n, d) unit rows, read in large batches and never twice."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._kept]
        for part in batched(missing, TEXTS_AT_ONCE):
            self._kept.update(zip(part, self._encoder.encode_texts(part), strict=True))
        return np.array([self._kept[text] for text in texts], dtype=np.float32).reshape(len(texts), self.dimension)

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        """(n, d) unit rows of the encoder behind."""
        return self._encoder.encode_images(images, batch_size=batch_size)
