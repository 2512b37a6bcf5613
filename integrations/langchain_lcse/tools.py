"""A tool by which an agent searches pictures, sees them, and is told why each was found."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from threading import Lock
from typing import Any, TypeAlias

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import patch_config
from langchain_core.tools import StructuredTool, ToolException
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import BaseModel, ConfigDict, Field, create_model

from langchain_lcse.documents import name_of
from langchain_lcse.retrievers import LogicRetriever
from langchain_lcse.stores import MISTAKES
from lcse_plugins.encoders.text_vectors import LruCache
from lcse_plugins.errors import ImageError, InvalidOption, LcseError
from lcse_plugins.hosts.pictures import picture_to_send
from lcse_plugins.hosts.result_metadata import read_result_metadata
from lcse_plugins.hosts.search_tool import MAX_RESULTS, TOOL_DESCRIPTION, heading, nothing_found, result_line
from lcse_plugins.images.keys import find_picture
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess
from lcse_plugins.images.thumbnails import SMALLEST_SIDE
from lcse_plugins.scoring.arguments import check_limits

__all__ = ["TOOL_DESCRIPTION", "logic_search_tool"]

Block: TypeAlias = dict[str, Any]
"""A LangChain content block, `{"type": "text", …}` or `{"type": "image", …}`."""

CONVERSATIONS = 1000
"""Conversations whose pictures are counted; the one heard of longest ago is forgotten first."""


def logic_search_tool(
    retriever: Runnable[str, list[Document]],
    *,
    name: str = "search_pictures",
    description: str = TOOL_DESCRIPTION,
    filters: Mapping[str, str] | None = None,
    max_bytes: int = 1_500_000,
    max_side: int = 768,
    max_pictures: int | None = None,
    image_access: ImageAccess | None = None,
) -> StructuredTool:
    """A tool: a query in; texts and pictures as content blocks out, the documents as artifact.

    Pictures are sent inside the message as JPEG, never as URLs. Each costs what the model's vendor charges for an image
    of that size, again in every later turn. OpenAI's models take pictures in tool messages only with
    `ChatOpenAI(use_responses_api=True)`. What goes wrong comes back as a message with status `error`.

    Args:
        retriever: A `LogicRetriever` or any other, bound or not. A `k` is passed on to those whose search takes one by
            name, and cuts what others find.
        name: What the model calls.
        description: What the model is told; the default teaches the query language.
        filters: Metadata by which the model may narrow a search: key → what it means. The tool then takes a `filter`.
        max_bytes: The most characters of base64 that all pictures of one call may take; 0 sends none.
        max_side: Pixels of a picture's longer side.
        max_pictures: The most pictures sent in one conversation, which is told by the `thread_id` of the call's
            config; without one, in the life of the tool.
        image_access: What may be read to get a picture; by default what the retriever may read. Set a `root`: a path
            in a store's metadata chooses which file is sent to the model.

    Raises:
        InvalidOption: it is given something else than a retriever, or a number is out of range.
    """
    inner: Any = retriever
    while not isinstance(inner, BaseRetriever):  # inside what `bind`, `with_config` and `configurable_fields` give
        inner = getattr(inner, "bound", None) or getattr(inner, "default", None)
        if not isinstance(inner, Runnable):
            given = type(retriever).__name__
            raise InvalidOption(f"the tool asks a retriever, not {given}; pass LogicRetriever(source=…)")
    logic = inner if isinstance(inner, LogicRetriever) else None
    takes = {"k", "filter"}
    if not isinstance(inner, LogicRetriever | VectorStoreRetriever):
        takes &= signature(inner._get_relevant_documents).parameters.keys()
    if filters and "filter" not in takes:
        raise InvalidOption(f"{type(inner).__name__} takes no filter; leave filters out")
    bound = getattr(retriever, "kwargs", {})
    usual = min(bound.get("k") or logic.search_arguments().k, MAX_RESULTS) if logic else None
    access = image_access or (logic.image_access if logic else DEFAULT_ACCESS)
    sender = _Sender(max_bytes, max_side, max_pictures, access)

    def arguments(k: int | None, filter: BaseModel | None) -> dict[str, Any]:
        wanted = filter.model_dump(exclude_none=True) if filter else {}
        if wanted and "filter" in bound:
            raise InvalidOption("this retriever is bound to a filter of its own, so the search takes no other")
        return {**({"k": k} if k and "k" in takes else {}), **({"filter": wanted} if wanted else {})}

    def search(
        query: str, config: RunnableConfig, callbacks: Callbacks = None, k: int | None = None, filter: Any = None
    ) -> tuple[list[Block], list[Document]]:
        within, k = patch_config(config, callbacks=callbacks), k or usual  # type: ignore[arg-type]
        with _told_failures():
            documents = retriever.invoke(query, within, **arguments(k, filter))[: k or MAX_RESULTS]
            return sender.blocks(query, documents, config), documents

    async def asearch(
        query: str, config: RunnableConfig, callbacks: Callbacks = None, k: int | None = None, filter: Any = None
    ) -> tuple[list[Block], list[Document]]:
        within, k = patch_config(config, callbacks=callbacks), k or usual  # type: ignore[arg-type]
        with _told_failures():
            documents = (await retriever.ainvoke(query, within, **arguments(k, filter)))[: k or MAX_RESULTS]
            return await asyncio.to_thread(sender.blocks, query, documents, config), documents

    return StructuredTool.from_function(
        func=search,
        coroutine=asearch,
        name=name,
        description=description,
        args_schema=_schema(usual, filters),
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=_misused,
    )


@dataclass(frozen=True)
class _Sender:
    """Found documents as content blocks: reasons as text, pictures within their limits."""

    max_bytes: int
    max_side: int
    max_pictures: int | None
    access: ImageAccess
    sent: LruCache[str, int] = field(default_factory=lambda: LruCache(CONVERSATIONS))
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        if self.max_bytes < 0 or self.max_side < SMALLEST_SIDE:
            raise InvalidOption(f"max_bytes is not negative, and max_side at least {SMALLEST_SIDE} pixels")
        check_limits(self.max_pictures, None, name="max_pictures")

    def blocks(self, query: str, documents: Sequence[Document], config: RunnableConfig) -> list[Block]:
        """How the query was read, then each document's reason and picture."""
        if not documents:
            return [_text(nothing_found(query))]
        told = [read_result_metadata(document.metadata) for document in documents]
        blocks = [_text(heading(query, told))]
        conversation = str((config.get("configurable") or {}).get("thread_id", ""))
        left = self.max_bytes
        for place, (document, about) in enumerate(zip(documents, told, strict=True)):
            picture, fault = self._picture(document, left // (len(documents) - place), conversation)
            title = document.page_content if 0 < len(document.page_content) <= 200 else name_of(document)
            blocks.append(_text(result_line(place + 1, title, about, fault)))
            if picture:
                left -= len(picture)
                blocks.append({"type": "image", "base64": picture, "mime_type": "image/jpeg"})
        return blocks

    def _picture(self, document: Document, share: int, conversation: str) -> tuple[str, str]:
        """A picture as base64 of at most `share` characters, or why there is none."""
        if not self.max_bytes:
            return "", ""
        location = find_picture(document.metadata, document.page_content, access=self.access)
        if location is None:
            return "", "it names no picture"
        if not self._count(conversation, 1):
            return "", f"its picture is not shown: this conversation has had its {self.max_pictures}"
        try:
            small = picture_to_send(location, access=self.access, max_side=self.max_side, max_bytes=share // 4 * 3)
            fault = "" if small else "its picture is left out, the message is full"
        except ImageError as error:
            small, fault = None, f"its picture cannot be shown: {error.reason}"
        if not small:
            self._count(conversation, -1)
        return base64.b64encode(small or b"").decode("ascii"), fault

    def _count(self, conversation: str, more: int) -> bool:
        """Count pictures of a conversation, unless they would be too many; calls may run side by side."""
        with self.lock:
            sent = self.sent.known([conversation]).get(conversation, 0) + more
            if self.max_pictures is not None and sent > self.max_pictures:
                return False
            self.sent.keep({conversation: sent})
            return True


def _schema(usual: int | None, filters: Mapping[str, str] | None) -> type[BaseModel]:
    """What the tool is called with; some models send None for the usual number."""
    strict = ConfigDict(extra="forbid")
    asked = Field(description='What the pictures must show and must not show, such as "a street without cars".')
    count = Field(default=usual, ge=1, le=MAX_RESULTS, description="How many pictures to return.")
    fields: dict[str, Any] = {"query": (str, asked), "k": (int | None, count)}
    if filters:
        value = str | int | float | bool | None
        keys: Any = {key: (value, Field(default=None, description=meaning)) for key, meaning in filters.items()}
        narrowed = create_model("PictureFilter", __config__=strict, **keys)
        told = Field(default=None, description="Only pictures with exactly these values.")
        fields["filter"] = (narrowed | None, told)
    return create_model("SearchPictures", __config__=strict, **fields)


@contextmanager
def _told_failures() -> Iterator[None]:
    """What goes wrong in a search is for the model to know; a mistake in a program is not."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (AssertionError, *MISTAKES)) and not isinstance(error, LcseError):
            raise
        kind = "" if isinstance(error, LcseError | ToolException) else f"{type(error).__name__}: "
        raise ToolException(f"The search failed: {kind}{error}") from error


def _misused(error: Any) -> str:
    said = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
    return f"The search was called wrongly: {said}. Pass query, a text, and k from 1 to {MAX_RESULTS}."


def _text(text: str) -> Block:
    return {"type": "text", "text": f"{text}\n"}  # models see blocks joined without a break
