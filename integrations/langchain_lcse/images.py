"""Which picture a document stands for."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from langchain_core.documents import Document

from lcse_plugins.encoders.images import names_picture
from lcse_plugins.image_sources import ImageLocation

__all__ = ["IMAGE_KEYS", "image_location", "named_picture"]

IMAGE_KEYS = ("image_path", "image_url", "image")
"""Metadata keys whose value is taken as a picture whatever it looks like."""

FILE_KEYS = ("file_path", "path", "uri", "url", "source")
"""Metadata keys that name a file of any kind; taken when it is a picture's."""

_BASE64_STARTS = ("/9j/", "iVBORw0KGgo", "R0lGOD", "UklGR")  # JPEG, PNG, GIF, WebP; Chroma's `add_images` writes these


def image_location(document: Document) -> ImageLocation | None:
    """Where the picture of a document is, or None when it names none.

    Looked for in its metadata under `image_path`, `image_url`, `image`; then, if it is a picture by its suffix, under
    `file_path`, `path`, `uri`, `url`, `source`; then in the page content (a picture's path, URL, data URI or base64).
    """
    for key in IMAGE_KEYS:
        value = document.metadata.get(key)
        if value and isinstance(value, str | Path | bytes):
            return _unwrapped(value)
    for value in (*(document.metadata.get(key) for key in FILE_KEYS), document.page_content):
        if isinstance(value, str | Path) and (place := named_picture(str(value))) is not None:
            return place
    return None


def named_picture(text: str) -> ImageLocation | None:
    """The picture a text stands for: it is a path or URL with a picture's suffix, a data URI or base64; else None."""
    if text.startswith(("data:image/", *_BASE64_STARTS)):
        return _unwrapped(text)
    if len(text) > 4096 or "\n" in text:
        return None
    path = urlsplit(text).path if text.lower().startswith(("http://", "https://", "file:")) else text
    return text if names_picture(path) else None


def _unwrapped(value: str | Path | bytes) -> ImageLocation:
    return f"data:;base64,{value}" if isinstance(value, str) and value.startswith(_BASE64_STARTS) else value
