"""Which picture a record stands for: a document's metadata, a point's payload."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lcse_plugins.images.locations import ImageLocation, is_web_url
from lcse_plugins.images.reading import names_picture

__all__ = ["FILE_KEYS", "IMAGE_KEYS", "holds_picture", "named_picture", "picture_in", "place_in"]

IMAGE_KEYS = ("image_path", "image_url", "image")
"""Keys whose value is taken as a picture whatever it looks like."""

FILE_KEYS = ("file_path", "path", "uri", "url", "source", "filename", "file_name", "file")
"""Keys that name a file of any kind; taken when it is a picture's."""

_BASE64_STARTS = ("/9j/", "iVBORw0KGgo", "R0lGOD", "UklGR")  # JPEG, PNG, GIF, WebP; Chroma's `add_images` writes these
_DATA_URI = re.compile(r"data:[^\s,]*,")


def picture_in(record: Mapping[str, Any]) -> ImageLocation | None:
    """The picture that a record names under one of `IMAGE_KEYS`, else under one of `FILE_KEYS`; None for none.

    Where it names none itself, a record that lies in it may.
    """
    inner = (value for value in record.values() if isinstance(value, Mapping))
    return next((found for part in (record, *inner) if (found := _named_by(part)) is not None), None)


def _named_by(record: Mapping[str, Any]) -> ImageLocation | None:
    for key in IMAGE_KEYS:
        value = record.get(key)
        if value and isinstance(value, str | Path | bytes):
            return _unwrapped(value)
    for key in FILE_KEYS:
        value = record.get(key)
        if isinstance(value, str | Path) and (place := named_picture(str(value))) is not None:
            return place
    return None


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
    """The picture a text stands for: it is a path or URL with a picture's suffix, a data URI or base64; else None."""
    if text.startswith(("data:image/", *_BASE64_STARTS)):
        return _unwrapped(text)
    if len(text) > 4096 or "\n" in text:
        return None
    path = urlsplit(text).path if is_web_url(text) or text[:5].lower() == "file:" else text
    return text if names_picture(path) else None


def _unwrapped(value: str | Path | bytes) -> ImageLocation:
    return f"data:;base64,{value}" if isinstance(value, str) and value.startswith(_BASE64_STARTS) else value
