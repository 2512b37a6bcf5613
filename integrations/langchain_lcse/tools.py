"""A tool by which an agent searches pictures, sees them, and is told why each was found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.tools import StructuredTool, ToolException
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, create_model

from langchain_lcse.blocks import Block, PictureBudget, result_blocks
from langchain_lcse.images import image_location
from langchain_lcse.retrievers import LogicRetriever
from lcse_plugins.errors import InvalidOption, LcseError
from lcse_plugins.hosts.keywords import keywords
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation

__all__ = ["TOOL_DESCRIPTION", "logic_search_tool"]

MAX_K = 20

_PROGRAMMING_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    TypeError,
)

TOOL_DESCRIPTION = """\
Search the picture collection by what the pictures show and do not show. Returns the best pictures, each with the \
reason for its place.

Write what must be seen as short noun phrases, joined by logic:
- plain English: "a street without cars", "a dog and a cat", "a beach or a pool", "neither people nor cars"
- or explicitly: AND, OR, NOT, parentheses, quotes around phrases: "street AND NOT (car OR truck)", "dog -leash"
Name things that can be seen; avoid moods, counts and instructions. Never rephrase an exclusion into its opposite: \
say what is not wanted."""


def logic_search_tool(
    retriever: BaseRetriever,
    *,
    name: str = "search_pictures",
    description: str = TOOL_DESCRIPTION,
    max_bytes: int = 1_500_000,
    max_side: int = 768,
    locate_image: Callable[[Document], ImageLocation | None] = image_location,
    image_access: ImageAccess = DEFAULT_ACCESS,
) -> StructuredTool:
    """A tool: a query in; texts and pictures as content blocks out, the documents as artifact.

    Pictures with a URL are handed on as URLs; others are read, made small and sent inside. What goes wrong comes back
    as a tool message with status `error` that says what to do. OpenAI's models take pictures in tool messages only by
    its newer interface: `ChatOpenAI(use_responses_api=True)`.

    Args:
        retriever: A `LogicRetriever`, a store's own or any other. What it was told to fetch is what a call without `k`
            gets, at most 20; a `k` is passed on to those whose search takes one by name, and cuts what others find.
        name: What the model calls.
        description: What the model is told; the default teaches the query language.
        max_bytes: The most characters of base64 that all pictures of one call may take; 0 sends none.
        max_side: Pixels of a picture's longer side.
        locate_image: Which picture a document stands for.
        image_access: What may be read to get a picture.

    Raises:
        InvalidOption: it is given something else than a retriever, or a size is out of range.
    """
    if not isinstance(retriever, BaseRetriever):
        raise InvalidOption(f"the tool asks a retriever, not {type(retriever).__name__}; {_advice(retriever)}")
    usual = min(retriever.search_arguments().k, MAX_K) if isinstance(retriever, LogicRetriever) else None
    takes_k = isinstance(retriever, VectorStoreRetriever) or "k" in keywords(retriever._get_relevant_documents)[0]
    budget = PictureBudget(max_bytes=max_bytes, max_side=max_side, locate=locate_image, access=image_access)

    def asked(k: int | None) -> dict[str, Any]:
        return {"k": k} if takes_k and k is not None else {}

    def search(query: str, k: int | None = usual, callbacks: Callbacks = None) -> tuple[list[Block], list[Document]]:
        with _told_failures():
            documents = retriever.invoke(query, {"callbacks": callbacks}, **asked(k))[: k or MAX_K]
        return result_blocks(query, documents, budget), documents

    async def asearch(
        query: str, k: int | None = usual, callbacks: Callbacks = None
    ) -> tuple[list[Block], list[Document]]:
        with _told_failures():
            documents = (await retriever.ainvoke(query, {"callbacks": callbacks}, **asked(k)))[: k or MAX_K]
        return await asyncio.to_thread(result_blocks, query, documents, budget), documents

    return StructuredTool.from_function(
        func=search,
        coroutine=asearch,
        name=name,
        description=description,
        args_schema=_schema(usual),
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=_misused,
    )


def _schema(usual: int | None) -> type[BaseModel]:
    """What the tool is called with; the usual number also stands for none, which some models send."""
    asked = Field(description='What the pictures must show and must not show, such as "a street without cars".')
    count = Field(default=usual, ge=1, le=MAX_K, description="How many pictures to return.")
    number: Any = Annotated[int, BeforeValidator(lambda k: usual if k is None else k)] if usual else int | None
    return create_model("SearchPictures", query=(str, asked), k=(number, count))


def _advice(given: object) -> str:
    if isinstance(given, Runnable):
        return "pass the retriever itself; a filter for all of its calls goes into its search_kwargs={'filter': …}"
    return "pass LogicRetriever(source=…) for a store"


@contextmanager
def _told_failures() -> Iterator[None]:
    """What goes wrong in a search is for the model to know; a mistake in a program is not."""
    try:
        yield
    except (LcseError, ToolException) as error:
        raise ToolException(f"The search failed: {error}") from error
    except _PROGRAMMING_ERRORS:
        raise
    except Exception as error:
        raise ToolException(f"The search failed: {type(error).__name__}: {error}") from error


def _misused(error: ValidationError | Any) -> str:
    faults: Sequence[Any] = error.errors() if isinstance(error, ValidationError) else ()
    said = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
    return f"The search was called wrongly: {said or error}. Pass query, a text, and k from 1 to {MAX_K}."
