"""Which picture a document stands for."""

from __future__ import annotations

from langchain_core.documents import Document

from lcse_plugins.image_sources import ImageLocation
from lcse_plugins.picture_keys import named_picture, picture_in

__all__ = ["image_location"]


def image_location(document: Document) -> ImageLocation | None:
    """Where the picture of a document is, or None when it names none.

    Looked for in its metadata under `image_path`, `image_url`, `image`; then, if it is a picture by its suffix, under
    `file_path`, `path`, `uri`, `url`, `source`, `filename`, `file_name`, `file`; then in the page content (a picture's
    path, URL, data URI or base64).
    """
    return picture_in(document.metadata) or named_picture(document.page_content)
