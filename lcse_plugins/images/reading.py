"""Safe image loading: any picture file becomes upright 8-bit RGB, or an `ImageError` that names it.

Files are untrusted. Only regular files are opened, and only as plain raster formats (never those that run another
program, such as EPS). Their size, pixels, tiles and scans are checked before anything is decoded, against the memory
that decoding would take. Large pictures come out smaller: no encoder sees more than a few hundred pixels a side.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import stat
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from PIL import Image, UnidentifiedImageError

from lcse_plugins.encoders.protocol import ImageSource
from lcse_plugins.errors import ImageError, InvalidOption

__all__ = [
    "MIN_SIDE",
    "Photograph",
    "content_hash",
    "file_fault",
    "load_image",
    "load_photograph",
    "open_regular",
    "picture_suffixes",
    "reason_of",
]

MEMORY_SETTING = "LCSE_PICTURE_MEMORY"
"""The environment variable that allows larger pictures: megabytes that reading one may take."""

if not os.environ.get(MEMORY_SETTING, "320").isdecimal():
    raise InvalidOption(f"{MEMORY_SETTING} is a number of megabytes, not {os.environ[MEMORY_SETTING]!r}")
MEMORY = int(os.environ.get(MEMORY_SETTING, "320")) * 1_000_000
MAX_BYTES = MEMORY // 2
"""Largest file read: Pillow copies what metadata a file holds."""

MAX_PIXELS = 89_478_485
"""Largest picture read in any format, where Pillow itself begins to warn of decompression bombs."""

MAX_SCANS = 100
"""Most passes over a JPEG; a progressive one has about ten, and each costs as much as decoding the whole."""

MIN_SIDE, MAX_SIDE = 2, 65_535
"""Shortest and longest side accepted: a picture one pixel wide shows nothing, and is most often a tracking pixel."""

SIDE, LARGEST = 768, 1 << 22
"""Pixels that the shorter side of a large picture keeps at least, twice what most encoders see, unless there are more
than `LARGEST` in all."""

_BYTES_PER_PIXEL = {"AVIF": 10.0, "HEIF": 6.5, "TIFF": 7.0, "WEBP": 16.0}  # as measured, HEIF so that 48 MP pass
_ONE_BY_ONE = 32_000_000  # what takes more bytes is decoded one at a time, whatever the number of threads
_LARGEST_TILE = 1 << 22  # pixels of a TIFF's tile, unless the picture itself is larger
_LONGEST_EXIF = 1 << 16  # as in a JPEG
_MOST_SEGMENTS = 10_000  # parts of a JPEG: its metadata, tables and scans
_STRIP = 64  # rows of the result that are made at a time, so that large pictures are not copied whole
_FORMATS = frozenset("AVIF BMP GIF HEIF JPEG MPO PNG PPM TIFF WEBP".split())
_TILE_WIDTH, _TILE_LENGTH = 322, 323  # tags of a TIFF file
_ORIENTATION, _CHANGED, _CAMERA, _TAKEN = 0x0112, 0x0132, 0x8769, 0x9003  # of EXIF; the last in the camera's part
_TURNS = "FLIP_LEFT_RIGHT ROTATE_180 FLIP_TOP_BOTTOM TRANSPOSE ROTATE_270 TRANSVERSE ROTATE_90".split()
_UPRIGHT = {number: Image.Transpose[name] for number, name in enumerate(_TURNS, start=2)}  # by EXIF's orientation

# Pillow warns of each damaged tag: of a hostile file, thousands of lines for one picture.
warnings.filterwarnings("ignore", module=r"PIL\.TiffImagePlugin")

_large = threading.RLock()
if hasattr(os, "register_at_fork"):  # a thread of the parent may hold it
    os.register_at_fork(after_in_child=lambda: globals().update(_large=threading.RLock()))


class Photograph(NamedTuple):
    """A picture as it is looked at, and when the camera says it was taken."""

    image: Image.Image
    taken: datetime | None


def load_image(source: ImageSource) -> Image.Image:
    """The picture as upright 8-bit RGB; of an animation, its first frame.

    EXIF orientation is applied, transparency is laid over white, palettes, CMYK and deep grey are converted. A large
    picture comes at half, a quarter or an eighth of its size.

    Args:
        source: A path, the bytes of a file, or a PIL image (its current frame; it is not changed). URLs are not
            fetched.

    Raises:
        ImageError: the picture is missing, not a picture, truncated, too small or too large.
    """
    if not isinstance(source, str | Path):
        return load_photograph(source).image
    with open_regular(source) as stream:
        return load_photograph(stream, name=str(source)).image


def load_photograph(source: bytes | Image.Image | BinaryIO, *, name: str | None = None) -> Photograph:
    """As `load_image`, of bytes, a PIL image or an open file, with the date it was taken; `name` is for messages."""
    if isinstance(source, bytes):
        name = name or f"picture of {len(source):,} bytes"
        if fault := _length_fault(len(source), MAX_BYTES):
            raise ImageError(name, fault)
        source = BytesIO(source)
    name = name or str(getattr(source, "filename", "") or type(source).__name__)
    try:
        if not isinstance(source, Image.Image) and not hasattr(source, "read"):
            raise ImageError(name, f"a picture is a path, bytes or a PIL image, not {name}")
        with _turn(0 if isinstance(source, Image.Image) else source.seek(0, os.SEEK_END)), _turn(_cost(source)):
            return _decode(source)
    except ImageError as error:
        raise ImageError(name, error.reason) from error
    except UnidentifiedImageError as error:
        raise ImageError(name, "not a picture in a known format") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(name, f"too many pixels to decode safely; at most {MAX_PIXELS:,} are allowed") from error
    except Exception as error:  # Pillow's decoders raise nearly every built-in exception on damaged files
        raise ImageError(name, f"cannot be decoded ({reason_of(error)})") from error


def file_fault(path: str | Path, *, max_bytes: int = MAX_BYTES) -> ImageError | None:
    """Why a file cannot be used, as far as its entry tells; nothing is opened."""
    cause: Exception | None = None
    try:
        status = os.stat(path)
        regular = stat.S_ISREG(status.st_mode)
        fault = _length_fault(status.st_size, max_bytes) if regular else "not a regular file"
    except FileNotFoundError:
        fault = "there is no such file"
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        cause, fault = error, f"cannot be read ({reason_of(error)})"
    if fault is None:
        return None
    found = ImageError(path, fault)
    found.__cause__ = cause
    return found


def open_regular(path: str | Path, *, max_bytes: int = MAX_BYTES, follow: bool = True) -> BinaryIO:
    """A regular file of bounded size, opened to be read; a pipe or a device is refused, never waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not follow:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    if fault := file_fault(path, max_bytes=max_bytes):  # opening alone may do something to a device
        raise fault
    try:
        stream = open(os.open(path, flags), "rb")
    except OSError as error:
        raise ImageError(path, f"cannot be read ({reason_of(error)})") from error
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):  # exchanged since
        stream.close()
        raise ImageError(path, "not a regular file")
    return stream


def content_hash(source: bytes | str | Path | BinaryIO) -> str:
    """SHA-256 of bytes, of the file at a path, or of an open file from its start, in hexadecimal."""
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    if isinstance(source, str | Path):
        with open_regular(source) as stream:
            return content_hash(stream)
    digest = hashlib.sha256()
    try:
        source.seek(0)
        while block := source.read(1 << 20):
            digest.update(block)
        source.seek(0)
    except OSError as error:
        raise ImageError(str(getattr(source, "name", "file")), f"cannot be read ({reason_of(error)})") from error
    return digest.hexdigest()


@cache
def picture_suffixes() -> frozenset[str]:
    """Endings of the files that can be read here, such as ".jpg"."""
    formats = set(_formats())
    return frozenset(suffix for suffix, name in Image.registered_extensions().items() if name in formats)


def reason_of(error: BaseException) -> str:
    """What an error says, in as few words as it can; its name if it says nothing."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


@cache
def _formats() -> tuple[str, ...]:
    try:
        from pillow_heif import register_heif_opener

        register_heif_opener()
    except ImportError:  # photographs of phones are then counted as passed over
        pass
    Image.init()
    return tuple(sorted(_FORMATS & Image.OPEN.keys()))


def _length_fault(size: int, most: int) -> str | None:
    if size > most:
        advice = f"; {MEMORY_SETTING} sets the limit" if most == MAX_BYTES else ""
        return f"{size:,} bytes are too many; at most {most:,} are read{advice}"
    return None if size else "the file is empty"


def _opened(source: Image.Image | BinaryIO) -> Image.Image:
    if isinstance(source, Image.Image):
        return source
    source.seek(0)
    return Image.open(source, formats=_formats())


def _cost(source: Image.Image | BinaryIO) -> float:
    """Bytes that decoding a picture takes; ImageError for too many, and for what decodes to more than its size says."""
    image, stream = _opened(source), None if isinstance(source, Image.Image) else source
    (width, height), each = image.size, _BYTES_PER_PIXEL.get(str(image.format), 5.0)
    pixels = width * height
    if min(width, height) < MIN_SIDE:
        raise ImageError("", f"{width} × {height} pixels show nothing; each side needs at least {MIN_SIDE}")
    if max(width, height) > MAX_SIDE:
        raise ImageError("", f"{width} × {height} pixels are too many on a side; at most {MAX_SIDE:,} are")
    if image.format == "TIFF" and stream is not None:
        tags: Any = getattr(image, "tag_v2", {})
        across, down = (int(tags.get(tag, 0)) for tag in (_TILE_WIDTH, _TILE_LENGTH))
        if across * down > max(_LARGEST_TILE, pixels):
            raise ImageError("", f"a tile of {across} × {down} pixels is too large to decode safely")
    elif image.format in ("JPEG", "MPO") and stream is not None:
        # Decoded row by row; but of several scans, all numbers are held, two bytes each, until the last is read.
        samples = [h * v for _, h, v, _ in getattr(image, "layer", [])] or [1]
        each = 1.0 + 2.0 * sum(samples) / max(samples) if _scans(stream, pixels) > 1 else 1.0
    most = min(MAX_PIXELS, int(MEMORY / each))
    if pixels > most:
        advice = f" ({MEMORY_SETTING} sets the limit)" if most < MAX_PIXELS else ""
        kind = f" of {image.format}" if image.format else ""
        raise ImageError("", f"{width} × {height} pixels are too many; at most {most:,}{kind} are decoded{advice}")
    return pixels * each


def _scans(stream: BinaryIO, pixels: int) -> int:
    """How many scans a JPEG has up to its end; ImageError for too many. Thumbnails and what follows do not count."""
    most = max(20, min(MAX_SCANS, 2_000_000_000 // pixels))
    place, segments, scans = 2, 0, 0
    while True:
        stream.seek(place)
        block = stream.read(1 << 17)
        found = re.search(rb"\xff[\x01-\xcf\xd8-\xfe]..", block, re.DOTALL)  # a marker, and how long its segment is
        if found is None and len(block) > 3:
            place += len(block) - 3
            continue
        if found is None or found[0][1] == 0xD9:  # the end of the picture
            return scans
        segments, scans = segments + 1, scans + (found[0][1] == 0xDA)
        if scans > most or segments > _MOST_SEGMENTS:
            raise ImageError("", f"more than {most} scans or {_MOST_SEGMENTS:,} parts are too many to decode safely")
        place += found.start() + 2 + int.from_bytes(found[0][2:], "big")


@contextmanager
def _turn(cost: float) -> Iterator[None]:
    """Wait until no other large picture is being read, if this is one; what it took is free before the next begins."""
    if cost <= _ONE_BY_ONE:
        yield
        return
    with _large:
        _give_memory_back()
        yield
        _give_memory_back()


def _give_memory_back() -> None:
    """The C library of Linux keeps what a thread has freed, for that thread alone."""
    with suppress(AttributeError):  # another C library
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)


def _shrink(image: Image.Image) -> int:
    """How many pixels across, and down, become one."""
    width, height = image.size
    shrink = next((n for n in (8, 4, 2) if min(width, height) >= n * SIDE), 1)
    while width * height > LARGEST * shrink**2:
        shrink *= 2
    return shrink


def _decode(source: Image.Image | BinaryIO) -> Photograph:
    image = _opened(source)
    if image is not source and image.format in ("JPEG", "MPO"):  # the decoder makes it smaller, at next to no cost
        image.draft(None, (image.width // _shrink(image), image.height // _shrink(image)))
    image.load()
    rgb = _to_rgb(image, _shrink(image))
    orientation, taken = _told(image)
    upright = rgb if orientation not in _UPRIGHT else rgb.transpose(_UPRIGHT[orientation])
    upright.info = {}  # it would say how to turn what stands upright already
    return Photograph(upright, taken)


def _told(image: Image.Image) -> tuple[int, datetime | None]:
    """Orientation and date of a picture; damaged metadata is no reason to refuse a sound picture."""
    try:
        if len(image.info.get("exif", b"")) > _LONGEST_EXIF:
            return 1, None
        exif = image.getexif()
        orientation = exif.get(_ORIENTATION, 1)
        written = exif.get_ifd(_CAMERA).get(_TAKEN) or exif.get(_CHANGED)
    except Exception:
        return 1, None
    try:
        return orientation, datetime.strptime(str(written).strip("\0 ")[:19], "%Y:%m:%d %H:%M:%S")
    except ValueError:  # cameras without a clock write zeros or blanks
        return orientation, None


def _to_rgb(image: Image.Image, shrink: int) -> Image.Image:
    """A copy as 8-bit RGB, transparency laid over white; each square of so many pixels becomes one, their mean."""
    width, height = image.width // shrink, image.height // shrink
    if image.mode[0] in "IF":
        return _from_deep_grey(image, shrink, width, height)
    smaller = Image.new("RGB", (width, height))
    for top in range(0, height, _STRIP):
        bottom = min(top + _STRIP, height)
        strip = image.crop((0, top * shrink, width * shrink, bottom * shrink))
        if strip.has_transparency_data:
            strip = Image.alpha_composite(Image.new("RGBA", strip.size, "white"), strip.convert("RGBA"))
        smaller.paste(strip.convert("RGB").reduce(shrink), (0, top))
    return smaller


def _from_deep_grey(image: Image.Image, shrink: int, width: int, height: int) -> Image.Image:
    """Grey of more than 8 bits, which Pillow would clip at 255: 8 or 16 bits as they are, else stretched."""
    values = np.empty((height, width))
    for y in range(height):  # row by row; what is not finite counts as 0
        rows = np.asarray(image.crop((0, y * shrink, width * shrink, (y + 1) * shrink)), dtype=np.float64)
        values[y] = np.nan_to_num(rows, posinf=0.0, neginf=0.0).reshape(shrink, width, shrink).mean(axis=(0, 2))
    low, high = float(values.min()), float(values.max())
    if image.mode != "F" and low >= 0 and high <= 65_535:
        low, high = 0.0, 255.0 if image.mode == "I" and high <= 255 else 65_535.0
    grey = np.rint((values - low) * (255.0 / max(high - low, 1e-12))).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")
