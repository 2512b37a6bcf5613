"""Labelled photographs for the benchmarks: their vectors, their captions, and two fixed halves."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.calibrating.labelled import LabelledImages, names_by_id
from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.errors import EncoderError, ImageError, InvalidOption, LabelFileError
from lcse_plugins.retrieval.tiles import MANY_TILES, encode_regions

__all__ = ["Half", "Progress", "captions_of", "half_of", "image_vectors", "names_of", "region_vectors", "take_images"]

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


def names_of(paths: Sequence[Path], root: str | Path | None = None) -> list[str]:
    """Each path relative to `root`, by default the folder they have in common; as it is where it lies elsewhere."""
    if root is None:
        paths = [path.absolute() for path in paths]
        root = os.path.commonpath([path.parent for path in paths]) if paths else ""
    return [(path.relative_to(root) if path.is_relative_to(root) else path).as_posix() for path in paths]


def captions_of(
    paths: Sequence[Path], source: str | Path, *, root: str | Path | None = None
) -> tuple[tuple[str, ...], ...]:
    """What people wrote about each picture; nothing for pictures the source does not name.

    Args:
        paths: The pictures.
        source: `.jsonl` with `file` and `captions` on each line, or COCO's `captions_*.json`.
        root: The folder that the file names of the source start from; by default the one the pictures have in common.

    Raises:
        LabelFileError: the source is not of that form.
    """
    source = Path(source)
    said: dict[str, list[str]] = defaultdict(list)
    try:
        text = source.read_text(encoding="utf-8-sig")
        if source.suffix.lower() == ".jsonl":
            for line in filter(str.strip, text.split("\n")):
                row = json.loads(line)
                if not isinstance(captions := row.get("captions", []), list):
                    raise LabelFileError(source, f"captions are a list of texts, not {captions!r:.80}")
                said[_under(root, row["file"])].extend(map(str, captions))
        else:
            data: dict[str, Any] = json.loads(text)
            names = names_by_id(source, "image", data["images"], "file_name")
            for annotation in data["annotations"]:
                said[_under(root, names[annotation["image_id"]])].append(str(annotation["caption"]))
    except OSError as error:
        raise LabelFileError(source, f"cannot be read ({error.strerror or error})") from error
    except LabelFileError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LabelFileError(source, f"holds no captions ({error!r})") from error
    return tuple(tuple(said[name]) for name in names_of(paths, root))


def _under(root: str | Path | None, file: str) -> str:
    return Path(file).as_posix() if root is None else names_of([Path(root, file)], root)[0]


def image_vectors(
    encoder: Encoder, paths: Sequence[Path], *, cache: str | Path | None = None, progress: Progress | None = None
) -> FloatArray:
    """(n, d) vectors of pictures; with a `cache` folder they are computed once for an encoder and a list of files.

    Raises:
        ImageError: a picture is not there or cannot be read.
        EncoderError: the encoder gave NaN or infinite values.
        InvalidOption: the cache cannot be written to.
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


def region_vectors(
    encoder: Encoder, paths: Sequence[Path], *, cache: str | Path | None = None, progress: Progress | None = None
) -> FloatArray:
    """(n, r, d) vectors of the regions of pictures (`MANY_TILES`), kept like `image_vectors`."""

    def report(done: int) -> None:
        if progress is not None:
            progress(done, len(paths))

    return _kept(
        cache,
        f"regions-{len(MANY_TILES)}",
        encoder,
        paths,
        lambda: encode_regions(encoder, paths, tiles=MANY_TILES, progress=report),
    )


def _kept(
    cache: str | Path | None, kind: str, encoder: Encoder, paths: Sequence[Path], make: Callable[[], FloatArray]
) -> FloatArray:
    """An array from the cache folder, or made and put there; only made where there is no such folder."""
    name = f"{kind}-{_identity(encoder, paths)}"
    if cache is None:
        return _finite(encoder, make())
    kept, draft = Path(cache, f"{name}.npy"), Path(cache, f"{name}.{os.getpid()}")
    with contextlib.suppress(OSError, ValueError, EOFError, EncoderError):  # not there, or damaged
        return _finite(encoder, np.asarray(np.load(kept), dtype=np.float32))
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft.touch()
    except OSError as error:
        raise InvalidOption(f"cannot keep vectors in {cache}: {error}") from error
    try:
        rows = _finite(encoder, make())
        with open(draft, "wb") as stream:
            np.save(stream, rows)
        os.replace(draft, kept)
    finally:
        draft.unlink(missing_ok=True)
    return rows


def _finite(encoder: Encoder, rows: FloatArray) -> FloatArray:
    if not np.isfinite(rows).all():
        raise EncoderError(f"encoder {encoder.encoder_id} gave NaN or infinite values for some pictures")
    return rows


def _identity(encoder: Encoder, paths: Sequence[Path]) -> str:
    """Of an encoder and of files as they are now."""
    missing = [path for path in paths if not os.path.isfile(path)]
    if missing:
        raise ImageError(missing[0], f"there is no such picture ({len(missing)} of {len(paths)} are not there)")
    found = [path.stat() for path in paths]
    files = (f"{path}:{now.st_size}:{now.st_mtime_ns}" for path, now in zip(paths, found, strict=True))
    return hashlib.sha256("\n".join([encoder.encoder_id, *files]).encode()).hexdigest()[:16]
