"""`logic_search_tool`: an agent searches pictures, sees them, and is told why each was found."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ContentBlock, ImageBlock, TextBlock
from llama_index.core.bridge.pydantic import BaseModel, Field, create_model
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools.types import AsyncBaseTool, ToolMetadata, ToolOutput

from lcse_plugins.errors import ImageError, InvalidOption, LcseError
from lcse_plugins.hosts.pictures import picture_to_send
from lcse_plugins.hosts.result_metadata import read_result_metadata
from lcse_plugins.hosts.search_tool import MAX_RESULTS, TOOL_DESCRIPTION, heading, nothing_found, result_line
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation
from lcse_plugins.images.thumbnails import SMALLEST_SIDE
from lcse_plugins.scoring.arguments import check_count, is_whole
from llama_index_lcse.nodes import picture_of
from llama_index_lcse.two_ways import AWAITING, BLOCKING, Way, run_blocking

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
) -> AsyncBaseTool:
    """A tool for agents: a query in, texts and pictures out as content blocks, the nodes as `raw_output`.

        >>> agent = FunctionAgent(tools=[logic_search_tool(LogicRetriever.from_index(index, top_n=5))], llm=llm)

    The query reaches the retriever as the model wrote it, which `RetrieverTool` does not do. What goes wrong comes back
    as an output with `is_error` that says what to do. A picture of 768 pixels costs a hosted model about 800 tokens.

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
    check_count("max_bytes", max_bytes)
    if not is_whole(max_side) or max_side < SMALLEST_SIDE:
        raise InvalidOption(f"max_side is at least {SMALLEST_SIDE} pixels, not {max_side!r}")
    asked = Field(description='What the pictures must show and must not show, such as "a street without cars".')
    count = Field(default=None, ge=1, le=MAX_RESULTS, description="How many pictures to return.")
    schema = create_model("SearchPictures", query=(str, asked), k=(int | None, count))
    about = ToolMetadata(description=description, name=name, fn_schema=schema)
    return _SearchTool(retriever, about, max_bytes if pictures else 0, max_side, image_access)


class _SearchTool(AsyncBaseTool):
    """Asks the retriever and shows what it found."""

    def __init__(
        self, retriever: BaseRetriever, metadata: ToolMetadata, max_bytes: int, max_side: int, access: ImageAccess
    ) -> None:
        self._retriever = retriever
        self._metadata = metadata
        self._max_bytes, self._max_side, self._access = max_bytes, max_side, access

    @property
    def metadata(self) -> ToolMetadata:
        """Name, description and arguments."""
        return self._metadata

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """The pictures for `query`, at most `k`."""
        return run_blocking(self._answer(BLOCKING, args, kwargs))

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """As `call`, off the event loop."""
        return await self._answer(AWAITING, args, kwargs)

    async def _answer(self, way: Way, args: tuple[Any, ...], given: dict[str, Any]) -> ToolOutput:
        name = self._metadata.get_name()
        try:
            query, k = self._arguments(args, given)
            (nodes,) = await way.retrieve([(self._retriever, QueryBundle(query))])
            blocks = await way.run(self._blocks, query, nodes[:k])
        except LcseError as error:
            said = f"The search failed: {error}"
            return ToolOutput(
                tool_name=name, content=said, raw_input=given, raw_output=[], is_error=True, exception=error
            )
        return ToolOutput(tool_name=name, blocks=blocks, raw_input=given, raw_output=nodes[:k])

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, int]:
        schema = self._metadata.fn_schema
        assert schema is not None
        named = {**dict(zip(schema.model_fields, args, strict=False)), **kwargs}
        unknown = sorted(set(named) - set(schema.model_fields))
        if unknown or len(args) > len(schema.model_fields):
            raise InvalidOption(f"the search takes query and k, not {', '.join(unknown) or f'{len(args)} arguments'}")
        try:
            checked: BaseModel = schema(**named)
        except ValueError as error:
            raise InvalidOption(f"pass query, a text, and k from 1 to {MAX_RESULTS}: {error}") from error
        return checked.query, checked.k or MAX_RESULTS  # type: ignore[attr-defined]  # the model is made above

    def _blocks(self, query: str, nodes: list[NodeWithScore]) -> list[ContentBlock]:
        told = [read_result_metadata(node.metadata) for node in nodes]
        blocks: list[ContentBlock] = [TextBlock(text=heading(query, told) if nodes else nothing_found(query))]
        left = self._max_bytes
        for place, (node, why) in enumerate(zip(nodes, told, strict=True)):
            location = picture_of(node.node, self._access)
            picture, fault = self._picture(location, left // (len(nodes) - place))
            named = location if isinstance(location, str) and not location.startswith("data:") else ""
            title = node.node.get_content() or named or node.node_id
            blocks.append(TextBlock(text=result_line(place + 1, title, why, fault)))
            if picture is not None:
                left -= len(picture)
                blocks.append(ImageBlock(image=picture, image_mimetype="image/jpeg"))
        return blocks

    def _picture(self, location: ImageLocation | None, share: int) -> tuple[bytes | None, str]:
        """A small JPEG of at most `share` bytes, or why there is none."""
        if not self._max_bytes:
            return None, ""
        if location is None:
            return None, "it has no picture"
        try:
            small = picture_to_send(location, access=self._access, max_side=self._max_side, max_bytes=share)
        except ImageError as error:
            return None, f"its picture cannot be shown: {error.reason}"
        return small, "" if small is not None else "its picture is left out, the message is full"
