"""Safe image loading: any picture file becomes upright 8-bit RGB, or an `ImageError` that names it.

Files are untrusted. Their size is checked before they are read, their dimensions before they are decoded, and only
plain raster formats are opened (never those that run another program, such as EPS).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from PIL import Image, UnidentifiedImageError

from lcse_plugins.encoders.ahead import map_ahead
from lcse_plugins.encoders.protocol import ImageSource
from lcse_plugins.errors import ImageError
from lcse_plugins.images.colours import to_rgb

__all__ = [
    "MAX_BYTES",
    "MAX_PIXELS",
    "MIN_SIDE",
    "content_hash",
    "iter_images",
    "load_image",
    "names_picture",
    "reason_of",
    "walk_images",
]

MAX_PIXELS = 89_478_485
"""Largest picture decoded: 256 MiB of RGB, where Pillow itself begins to warn of decompression bombs."""

MAX_BYTES = 512 * 1024 * 1024
"""Largest file read; an uncompressed 16-bit picture of `MAX_PIXELS` still fits."""

MIN_SIDE = 2
"""Shortest side accepted: a picture one pixel wide shows nothing, and is most often a tracking pixel."""

_FULL_JPEG_PIXELS = 24_000_000  # larger JPEGs are decoded at 1/2, 1/4 or 1/8: still far above any encoder's input
_FORMATS = frozenset("AVIF BMP DIB GIF HEIF JPEG JPEG2000 MPO PNG PPM QOI TIFF WEBP".split())
_ORIENTATION_TAG = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def load_image(source: ImageSource, *, max_pixels: int = MAX_PIXELS, max_bytes: int = MAX_BYTES) -> Image.Image:
    """The picture as upright 8-bit RGB; of an animation, its first frame.

    EXIF orientation is applied, transparency is laid over white, palettes, CMYK and deep grey are converted. A JPEG
    file of more than 24 megapixels is decoded at half, a quarter or an eighth of its size.

    Args:
        source: A path, the bytes of a file, or a PIL image (its current frame; it is not changed). URLs are not
            fetched.
        max_pixels: Refuse pictures with more pixels, before decoding them. From 89 million on Pillow warns of a
            decompression bomb, and twice that is its own limit.
        max_bytes: Refuse larger files, before reading them.

    Raises:
        ImageError: the picture is missing, not a picture, truncated, too small or too large.
    """
    name = _name(source)
    try:
        if isinstance(source, Image.Image):
            _check_size(source, name=name, max_pixels=max_pixels)
            return _decode(source)
        with _open_binary(source, name=name, max_bytes=max_bytes) as stream:
            with Image.open(stream, formats=_readable_formats()) as image:
                _check_size(image, name=name, max_pixels=max_pixels)
                _draft(image)
                return _decode(image)
    except ImageError:
        raise
    except FileNotFoundError:
        raise ImageError(name, "there is no such file") from None
    except UnidentifiedImageError as error:
        raise ImageError(name, "not a picture in a known format") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        most = min(max_pixels, 2 * MAX_PIXELS)
        raise ImageError(name, f"too many pixels to decode safely; at most {most:,} are allowed") from error
    except Exception as error:  # Pillow's decoders raise nearly every built-in exception on damaged files
        raise ImageError(name, f"cannot be decoded ({reason_of(error)})") from error


def walk_images(folder: str | Path, *, left_out: Callable[[ImageError], None] | None = None) -> Iterator[Path]:
    """Picture files under a folder, chosen by suffix, in a fixed order.

    Files of a folder come first, then its sub-folders, each in the order of their names. Hidden files and folders are
    left out; links to files are followed, links to folders are not, so the walk always ends.

    Args:
        folder: Where to begin.
        left_out: Told of each folder inside that cannot be listed; the walk then goes on without it.

    Raises:
        ImageError: the folder cannot be listed, or one inside it while there is no `left_out`.
    """
    suffixes = _picture_suffixes()

    def refuse(error: OSError) -> None:
        fault = ImageError(error.filename or folder, _why_not_listed(error))
        if left_out is None or Path(fault.source) == Path(folder):
            raise fault from error
        left_out(fault)

    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in suffixes:
                yield Path(parent, name)


def _why_not_listed(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such folder"
        case NotADirectoryError():
            return "cannot be listed: it is a file; give the folder it is in"
    return f"cannot be listed ({error})"


def names_picture(path: str | Path) -> bool:
    """Whether a path ends as the picture files that can be read do; nothing is opened."""
    return os.path.splitext(path)[1].lower() in _picture_suffixes()


def iter_images(
    images: str | Path | Iterable[str | Path], *, workers: int = 2, prefetch: int = 4, max_pixels: int = MAX_PIXELS
) -> Iterator[tuple[Path, Image.Image | ImageError]]:
    """Each picture of a folder (or of a list of paths) in order; a broken one comes as its error, and the walk goes on.

    Args:
        images: A folder to walk, or the paths themselves.
        workers: Threads that decode ahead; 0 decodes in the calling thread.
        prefetch: Most pictures decoded ahead of the consumer, so memory stays bounded.
        max_pixels: As for `load_image`.
    """
    paths = walk_images(images) if isinstance(images, str | Path) else (Path(path) for path in images)

    def load(path: Path) -> tuple[Path, Image.Image | ImageError]:
        try:
            return path, load_image(path, max_pixels=max_pixels)
        except ImageError as error:
            return path, error

    return map_ahead(load, paths, workers=workers, prefetch=prefetch)


def content_hash(source: bytes | str | Path) -> str:
    """SHA-256 of the bytes, or of the file at a path, in hexadecimal.

    Raises:
        ImageError: the file cannot be read.
    """
    digest = hashlib.sha256()
    if isinstance(source, bytes):
        digest.update(source)
        return digest.hexdigest()
    try:
        with open(source, "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise ImageError(source, f"cannot be read ({reason_of(error)})") from error
    return digest.hexdigest()


def reason_of(error: BaseException) -> str:
    """What an error says, in as few words as it can; its name if it says nothing."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _check_size(image: Image.Image, *, name: str, max_pixels: int) -> None:
    width, height = image.size
    if width * height > max_pixels:
        raise ImageError(name, f"{width} × {height} pixels are too many; at most {max_pixels:,} are decoded")
    if min(width, height) < MIN_SIDE:
        raise ImageError(name, f"{width} × {height} pixels show nothing; each side needs at least {MIN_SIDE}")


def _draft(image: Image.Image) -> None:
    width, height = image.size
    if image.format in ("JPEG", "MPO") and width * height > _FULL_JPEG_PIXELS:
        shrink = next((n for n in (2, 4) if width * height <= n * n * _FULL_JPEG_PIXELS), 8)
        image.draft(None, (width // shrink, height // shrink))


def _decode(image: Image.Image) -> Image.Image:
    image.load()
    rotation = _UPRIGHT.get(_orientation(image))
    rgb = to_rgb(image)
    upright = rgb if rotation is None else rgb.transpose(rotation)
    upright.info = {}  # it would say how to turn what stands upright already
    return upright


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION_TAG, 1))
    except Exception:  # damaged metadata is no reason to refuse a sound picture
        return 1


def _open_binary(source: str | Path | bytes, *, name: str, max_bytes: int) -> BinaryIO:
    if isinstance(source, bytes):
        size = len(source)
    elif isinstance(source, str | Path):
        status = os.stat(source)
        if not stat.S_ISREG(status.st_mode):
            raise ImageError(name, "not a regular file")
        size = status.st_size
    else:
        raise ImageError(name, f"a picture is a path, bytes or a PIL image, not {type(source).__name__}")
    if size > max_bytes:
        raise ImageError(name, f"{size:,} bytes are too many; at most {max_bytes:,} are read")
    if size == 0:
        raise ImageError(name, "the file is empty")
    return BytesIO(source) if isinstance(source, bytes) else open(source, "rb")


def _name(source: ImageSource) -> str:
    if isinstance(source, bytes):
        return f"picture of {len(source):,} bytes"
    if isinstance(source, Image.Image):
        return str(getattr(source, "filename", "") or "PIL image")
    return str(source) if isinstance(source, str | Path) else type(source).__name__


def _readable_formats() -> tuple[str, ...]:
    Image.init()
    return tuple(sorted(_FORMATS & Image.OPEN.keys()))


def _picture_suffixes() -> frozenset[str]:
    formats = set(_readable_formats())
    return frozenset(suffix for suffix, name in Image.registered_extensions().items() if name in formats)
