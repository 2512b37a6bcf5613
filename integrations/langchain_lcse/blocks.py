"""Found documents as content blocks a multimodal model can read: reasons as text, pictures as pictures."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, TypeAlias

from langchain_core.documents import Document

from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.hosts.result_metadata import METADATA_KEY
from lcse_plugins.images.locations import ImageAccess, ImageLocation, is_web_url, read_image
from lcse_plugins.images.thumbnails import SMALLEST_SIDE, jpeg_thumbnail
from lcse_plugins.query import format_query, from_json

__all__ = ["Block", "PictureBudget", "result_blocks"]

Block: TypeAlias = dict[str, Any]
"""A LangChain content block, `{"type": "text", …}` or `{"type": "image", …}`."""


@dataclass(frozen=True, kw_only=True)
class PictureBudget:
    """How pictures are found and how much of a message they may take.

    Attributes:
        max_bytes: characters of base64 for all pictures of a message together; each gets an equal share of what is
            left, and is made smaller until it fits.
        max_side: pixels of a picture's longer side.
        locate: which picture a document stands for.
        access: what may be read to get it.
    """

    max_bytes: int
    max_side: int
    locate: Callable[[Document], ImageLocation | None]
    access: ImageAccess

    def __post_init__(self) -> None:
        if self.max_bytes < 0:
            raise InvalidOption(f"max_bytes is not negative, so not {self.max_bytes}")
        if self.max_side < SMALLEST_SIDE:
            raise InvalidOption(f"max_side is at least {SMALLEST_SIDE} pixels, not {self.max_side}")


def result_blocks(query: str, documents: Sequence[Document], budget: PictureBudget) -> list[Block]:
    """What was found: how the query was read, then each document's reason and picture."""
    if not documents:
        return [_text(f"No picture was found for {query!r}. Ask for less, or for something else.")]
    return [_text(_heading(query, documents)), *_pictures(documents, budget)]


def _pictures(documents: Sequence[Document], budget: PictureBudget) -> Iterator[Block]:
    left = budget.max_bytes
    for place, document in enumerate(documents):
        account = document.metadata.get(METADATA_KEY, {})
        reason = "it could not be ranked" if "missing" in account else account.get("reason", "")
        picture, fault = _picture(document, budget, left // (len(documents) - place))
        yield _text(" — ".join(filter(None, (f"{place + 1}. {_title(document)}", reason, fault))))
        if picture is not None:
            left -= len(picture.get("base64", ""))
            yield picture


def _picture(document: Document, budget: PictureBudget, share: int) -> tuple[Block | None, str]:
    """A picture block of at most `share` characters, or why there is none."""
    if not budget.max_bytes:
        return None, ""
    location = budget.locate(document)
    if location is None:
        return None, "it names no picture"
    if isinstance(location, str) and is_web_url(location):
        return {"type": "image", "url": location}, ""
    try:
        small = jpeg_thumbnail(
            read_image(location, access=budget.access), max_side=budget.max_side, max_bytes=share // 4 * 3
        )
    except ImageError as error:
        return None, f"its picture cannot be shown: {error.reason}"
    if small is None:
        return None, "its picture is left out, the message is full"
    return {"type": "image", "base64": base64.b64encode(small).decode("ascii"), "mime_type": "image/jpeg"}, ""


def _heading(query: str, documents: Sequence[Document]) -> str:
    parse = documents[0].metadata.get(METADATA_KEY, {}).get("parse")
    found = f"{len(documents)} picture{'s' * (len(documents) != 1)} for {query!r}"
    if parse is None:
        return f"{found}:"
    notes = "".join(f" ({note})" for note in parse["notes"])
    return f"{found}, read as {format_query(from_json(parse['tree']))}{notes}:"


def _title(document: Document) -> str:
    text = " ".join(document.page_content.split())
    if text and len(text) <= 200:
        return PurePath(text).name or text
    return document.id or "untitled"


def _text(text: str) -> Block:
    return {"type": "text", "text": f"{text}\n"}  # models see blocks joined without a break
