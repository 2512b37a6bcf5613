"""Which picture a record stands for: a document's metadata, a point's payload.

A record may name several places. `find_picture` takes the first that can be read; `picture_in` the first it names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lcse_plugins.errors import ImageError
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation, is_web_url, resolve_path
from lcse_plugins.images.reading import picture_suffixes

__all__ = ["FILE_KEYS", "IMAGE_KEYS", "find_picture", "holds_picture", "named_picture", "picture_in", "place_in"]

IMAGE_KEYS = ("image_path", "img_path", "image_url", "image", "image_base64", "base64", "b64")
"""Keys whose value is taken as a picture whatever it looks like."""

FILE_KEYS = ("file_path", "path", "uri", "url", "source", "filename", "file_name", "file")
"""Keys that name a file of any kind; taken when it is a picture's."""

_BASE64_KEYS = frozenset({"image_base64", "base64", "b64"})
_BASE64_STARTS = ("/9j/", "iVBORw0KGgo", "R0lGOD", "UklGR")  # JPEG, PNG, GIF, WebP; Chroma's `add_images` writes these
_DATA_URI = re.compile(r"data:[^\s,]*,")
_PICTURE_SUFFIXES = frozenset(".avif .bmp .gif .heic .heif .jpeg .jpg .jxl .png .svg .tif .tiff .webp".split())
_FIRST_BYTES = re.compile(rb"\xff\xd8\xff|\x89PNG|GIF8|RIFF....WEBP|BM|II\*\0|MM\0\*|....ftyp(hei|hev|mif|avi)", re.S)


def picture_in(record: Mapping[str, Any]) -> ImageLocation | None:
    """The first picture that a record names under one of `IMAGE_KEYS`, else under one of `FILE_KEYS`; None for none.

    Where it names none itself, a record that lies in it may.
    """
    return next(_named_in(record), None)


def find_picture(
    record: Mapping[str, Any], text: str = "", *, access: ImageAccess = DEFAULT_ACCESS
) -> ImageLocation | None:
    """The picture that a record, or the text beside it, stands for; None for none.

    Of several places the first that can be read is taken: bytes, base64, a file that is there, a URL if those are
    fetched. If none can be read it is the first named, so that reading it tells what is wrong. A file whose name has no
    suffix counts when it begins as pictures do.
    """
    beside = named_picture(text)
    named = [*_named_in(record), *([] if beside is None else [beside])]
    if not named:
        values: list[Any] = [*(record.get(key) for key in FILE_KEYS), text]
        return next((value for value in values if _is_unmarked_picture(value, access)), None)
    return next((place for place in named if _is_there(place, access)), named[0])


def _named_in(record: Mapping[str, Any]) -> Iterator[ImageLocation]:
    inner = (value for value in record.values() if isinstance(value, Mapping))
    for part in (record, *inner):
        for key in IMAGE_KEYS:
            value = part.get(key)
            if value and isinstance(value, str | Path | bytes):
                yield _unwrapped(value, base64=key in _BASE64_KEYS)
        for key in FILE_KEYS:
            value = part.get(key)
            if isinstance(value, str | Path) and (place := named_picture(str(value))) is not None:
                yield place


def place_in(record: Mapping[str, Any]) -> str | None:
    """Where the picture is that a record names, as a text to show; None when it lies in the record itself."""
    picture = picture_in(record)
    return None if picture is None or holds_picture(picture) else str(picture)


def holds_picture(value: object) -> bool:
    """Whether a value is a picture itself, as bytes, a data URI or base64, or a record with one: nothing to be read."""
    if isinstance(value, Mapping):
        return any(map(holds_picture, value.values()))
    if isinstance(value, str):
        return value.startswith(_BASE64_STARTS) or _DATA_URI.match(value) is not None
    return isinstance(value, bytes)


def named_picture(text: str) -> ImageLocation | None:
    """The picture a text stands for: it is a path or URL with a picture's suffix, a data URI or base64; else None.

    The suffix may be that of a format which cannot be read here, such as `.HEIC` or `.svg`.
    """
    if text.startswith(("data:image/", *_BASE64_STARTS)):
        return _unwrapped(text)
    if len(text) > 4096 or "\n" in text:
        return None
    path = urlsplit(text).path if is_web_url(text) or text[:5].lower() == "file:" else text
    return text if os.path.splitext(path)[1].lower() in _PICTURE_SUFFIXES | picture_suffixes() else None


def _unwrapped(value: str | Path | bytes, *, base64: bool = False) -> ImageLocation:
    if isinstance(value, str) and (value.startswith(_BASE64_STARTS) or (base64 and not value.startswith("data:"))):
        return f"data:;base64,{value}"
    return value


def _is_there(place: ImageLocation, access: ImageAccess) -> bool:
    if isinstance(place, bytes) or holds_picture(place):
        return True
    if isinstance(place, str) and is_web_url(place):
        return access.allow_urls
    return _file_at(place, access) is not None


def _is_unmarked_picture(value: object, access: ImageAccess) -> bool:
    if not isinstance(value, str | Path) or not value or len(str(value)) > 4096 or os.path.splitext(value)[1]:
        return False
    path = _file_at(value, access)
    if path is None:
        return False
    try:
        with open(path, "rb") as stream:
            return _FIRST_BYTES.match(stream.read(12)) is not None
    except OSError:
        return False


def _file_at(place: str | Path, access: ImageAccess) -> Path | None:
    """The file at a path, if it is a regular one that may be read."""
    try:
        path = resolve_path(place, access)
        return path if path.is_file() else None
    except (ImageError, OSError, ValueError):
        return None
