"""Which picture a document stands for."""

from __future__ import annotations

from langchain_core.documents import Document

from lcse_plugins.images.keys import named_picture, picture_in
from lcse_plugins.images.locations import ImageLocation

__all__ = ["image_location"]


def image_location(document: Document) -> ImageLocation | None:
    """Where the picture of a document is, or None when it names none.

    Looked for in its metadata under one of `IMAGE_KEYS` of `lcse_plugins.images.keys`; then, if it is a picture by its
    suffix, under one of `FILE_KEYS`; then in the page content (a picture's path, URL, data URI or base64).
    """
    return picture_in(document.metadata) or named_picture(document.page_content)
