"""Safe image loading: any picture file becomes upright 8-bit RGB, or an `ImageError` that names it.

Files are untrusted. Only regular files are opened, and only plain raster formats (never those that run another program,
such as EPS). Size, dimensions, tiles and scans are checked before anything is decoded. Large pictures are decoded
smaller, one at a time: no encoder sees more than a few hundred pixels a side.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from contextlib import nullcontext
from datetime import datetime
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from PIL import Image, UnidentifiedImageError

from lcse_plugins.encoders.protocol import ImageSource
from lcse_plugins.errors import ImageError
from lcse_plugins.images.colours import to_rgb

__all__ = [
    "MAX_BYTES",
    "MAX_PIXELS",
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

MAX_PIXELS = 89_478_485
"""Largest picture decoded: 256 MiB of RGB, where Pillow itself begins to warn of decompression bombs."""

MAX_BYTES = 512 * 1024 * 1024
"""Largest file read; an uncompressed 16-bit picture of `MAX_PIXELS` still fits."""

MAX_SCANS = 100
"""Most passes over a JPEG; a progressive one has about ten, and each costs as much as decoding the whole."""

MIN_SIDE = 2
"""Shortest side accepted: a picture one pixel wide shows nothing, and is most often a tracking pixel."""

SIDE = 768
"""Pixels that the shorter side of a large picture keeps at least: twice what most encoders see."""

_ONE_BY_ONE = 30_000_000  # pictures of more pixels are decoded one at a time, whatever the number of threads
_LARGEST_TILE = 1 << 24  # pixels of a TIFF's tile, unless the picture itself is larger
_MOST = {"AVIF": 50_000_000, "HEIF": 50_000_000, "WEBP": 50_000_000}  # pixels; their decoders hold several copies
_FORMATS = frozenset("AVIF BMP GIF HEIF JPEG MPO PNG PPM TIFF WEBP".split())
_TILE_WIDTH, _TILE_LENGTH = 322, 323  # tags of a TIFF file
_ORIENTATION, _CHANGED, _CAMERA, _TAKEN = 0x0112, 0x0132, 0x8769, 0x9003  # of EXIF; the last in the camera's part
_TURNS = "FLIP_LEFT_RIGHT ROTATE_180 FLIP_TOP_BOTTOM TRANSPOSE ROTATE_270 TRANSVERSE ROTATE_90".split()
_UPRIGHT = {number: Image.Transpose[name] for number, name in enumerate(_TURNS, start=2)}  # by EXIF's orientation

_large = threading.Lock()
if hasattr(os, "register_at_fork"):  # a thread of the parent may hold it
    os.register_at_fork(after_in_child=lambda: globals().update(_large=threading.Lock()))


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
        if isinstance(source, Image.Image):
            _check_size(source, name=name)
            return _decode(source)
        if not hasattr(source, "read"):
            raise ImageError(name, f"a picture is a path, bytes or a PIL image, not {name}")
        with Image.open(source, formats=_formats()) as image:
            _check_size(image, name=name)
            _check_parts(image, source, name=name)
            if image.format in ("JPEG", "MPO"):
                image.draft(None, (SIDE, SIDE))  # the decoder itself makes it smaller, at next to no cost
            return _decode(image)
    except ImageError:
        raise
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
    """A regular file of bounded size, opened to be read; a pipe or a device is refused, never waited for.

    Raises:
        ImageError: it is missing, not a regular file, empty, too large, or cannot be read.
    """
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
    """SHA-256 of bytes, of the file at a path, or of an open file from its start, in hexadecimal.

    Raises:
        ImageError: the file cannot be read.
    """
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
        return f"{size:,} bytes are too many; at most {most:,} are read"
    return None if size else "the file is empty"


def _check_size(image: Image.Image, *, name: str) -> None:
    (width, height), most = image.size, _MOST.get(str(image.format), MAX_PIXELS)
    if width * height > most:
        raise ImageError(name, f"{width} × {height} pixels are too many; at most {most:,} are decoded")
    if min(width, height) < MIN_SIDE:
        raise ImageError(name, f"{width} × {height} pixels show nothing; each side needs at least {MIN_SIDE}")


def _check_parts(image: Image.Image, stream: BinaryIO, *, name: str) -> None:
    """Refuse what decodes to far more, or far longer, than the picture's size says."""
    if image.format == "TIFF":
        tags = getattr(image, "tag_v2", {})
        width, length = (int(tags.get(tag, 0)) for tag in (_TILE_WIDTH, _TILE_LENGTH))
        if width * length > max(_LARGEST_TILE, image.width * image.height):
            raise ImageError(name, f"a tile of {width} × {length} pixels is too large to decode safely")
    elif image.format in ("JPEG", "MPO"):
        position, scans, last = stream.tell(), 0, b""
        stream.seek(0)
        while block := stream.read(1 << 20):
            scans += (last + block).count(b"\xff\xda")
            last = block[-1:]
        stream.seek(position)
        if scans > MAX_SCANS:
            raise ImageError(name, f"{scans:,} scans are too many to decode safely; at most {MAX_SCANS} are")


def _decode(image: Image.Image) -> Photograph:
    with _large if image.width * image.height > _ONE_BY_ONE else nullcontext():
        image.load()
        shrink = next((n for n in (8, 4, 2) if min(image.size) >= n * SIDE), 1)
        rgb = to_rgb(image, shrink=shrink)
    orientation, taken = _told(image)
    upright = rgb if orientation not in _UPRIGHT else rgb.transpose(_UPRIGHT[orientation])
    upright.info = {}  # it would say how to turn what stands upright already
    return Photograph(upright, taken)


def _told(image: Image.Image) -> tuple[int, datetime | None]:
    """Orientation and date of a picture; damaged metadata is no reason to refuse a sound picture."""
    try:
        exif = image.getexif()
        orientation = exif.get(_ORIENTATION, 1)
        written = exif.get_ifd(_CAMERA).get(_TAKEN) or exif.get(_CHANGED)
    except Exception:
        return 1, None
    try:
        return orientation, datetime.strptime(str(written).strip("\0 ")[:19], "%Y:%m:%d %H:%M:%S")
    except ValueError:  # cameras without a clock write zeros or blanks
        return orientation, None
