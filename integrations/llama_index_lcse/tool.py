"""`logic_search_tool`: an agent searches pictures, sees them, and is told why each was found."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ContentBlock, ImageBlock, TextBlock
from llama_index.core.bridge.pydantic import Field, create_model
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import FunctionTool, ToolOutput

from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.hosts.pictures import picture_to_send
from lcse_plugins.hosts.result_metadata import read_result_metadata
from lcse_plugins.hosts.search_tool import MAX_RESULTS, TOOL_DESCRIPTION, heading, nothing_found, result_line
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation
from lcse_plugins.scoring.arguments import check_count, is_whole
from llama_index_lcse.nodes import picture_of

__all__ = ["logic_search_tool"]


def logic_search_tool(
    retriever: BaseRetriever,
    *,
    name: str = "search_pictures",
    description: str = TOOL_DESCRIPTION,
    pictures: bool = True,
    max_side: int = 768,
    max_bytes: int = 1_500_000,
    image_access: ImageAccess = DEFAULT_ACCESS,
) -> FunctionTool:
    """A tool for agents: a query in, texts and pictures out as content blocks, the nodes as `raw_output`.

        >>> agent = FunctionAgent(tools=[logic_search_tool(LogicRetriever.from_index(index, top_n=5))], llm=llm)

    The query reaches the retriever as the model wrote it, which `RetrieverTool` does not do. Errors say what to do;
    agents pass them on to the model. A picture of 768 pixels costs a hosted model about 800 tokens.

    Args:
        retriever: A `LogicRetriever`, or any other; a call returns at most what it finds.
        name: What the model calls.
        description: What the model is told; the default teaches the query language.
        pictures: Whether pictures are sent, or only names and reasons.
        max_side: Pixels of a picture's longer side.
        max_bytes: The most bytes that all pictures of one call may take.
        image_access: What may be read to get a picture, whatever the nodes say. Set a `root`.

    Raises:
        InvalidOption: it is given something else than a retriever, or a size is out of range.
    """
    if not isinstance(retriever, BaseRetriever):
        raise InvalidOption(
            f"the tool asks a retriever, not {type(retriever).__name__}; for an index, LogicRetriever.from_index(index)"
        )
    check_count("max_side", max_side)
    check_count("max_bytes", max_bytes)

    def show(query: str, nodes: list[NodeWithScore]) -> ToolOutput:
        told = [read_result_metadata(node.metadata) for node in nodes]
        blocks: list[ContentBlock] = [TextBlock(text=heading(query, told) if nodes else nothing_found(query))]
        left = max_bytes
        for place, (node, why) in enumerate(zip(nodes, told, strict=True)):
            location, picture, fault = picture_of(node.node, image_access), None, ""
            if pictures:
                picture, fault = _small_picture(location, image_access, max_side, left // (len(nodes) - place))
            named = location if isinstance(location, str) and not location.startswith("data:") else ""
            title = node.node.get_content() or named or node.node_id
            blocks.append(TextBlock(text=result_line(place + 1, title, why, fault)))
            if picture is not None:
                left -= len(picture)
                blocks.append(ImageBlock(image=picture, image_mimetype="image/jpeg"))
        return ToolOutput(tool_name=name, blocks=blocks, raw_input={"query": query}, raw_output=nodes)

    def search(query: str, k: int | None = None) -> ToolOutput:
        count = _checked_count(k)
        return show(query, retriever.retrieve(query)[:count])

    async def asearch(query: str, k: int | None = None) -> ToolOutput:
        count = _checked_count(k)
        return await asyncio.to_thread(show, query, (await retriever.aretrieve(query))[:count])

    asked = Field(description='What the pictures must show and must not show, such as "a street without cars".')
    count = Field(default=None, ge=1, le=MAX_RESULTS, description="How many pictures to return.")
    schema: Any = create_model("SearchPictures", query=(str, asked), k=(int | None, count))
    return FunctionTool.from_defaults(
        search, name, description, fn_schema=schema, async_fn=asearch, callback=lambda made: made
    )


def _checked_count(k: int | None) -> int:
    if k is not None and (not is_whole(k) or not 1 <= k <= MAX_RESULTS):  # LlamaIndex does not apply the schema
        raise InvalidOption(f"k is a whole number from 1 to {MAX_RESULTS}, not {k!r}")
    return k or MAX_RESULTS


def _small_picture(
    location: ImageLocation | None, access: ImageAccess, max_side: int, max_bytes: int
) -> tuple[bytes | None, str]:
    """A small JPEG, or why there is none."""
    if location is None:
        return None, "it has no picture"
    try:
        small = picture_to_send(location, access=access, max_side=max_side, max_bytes=max_bytes)
    except ImageError as error:
        return None, f"its picture cannot be shown: {error.reason}"
    return small, "" if small is not None else "its picture is left out, the message is full"
