"""What a retriever asks of its source, and what a source is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from langchain_core.documents import Document

from lcse_plugins.errors import InvalidOption
from lcse_plugins.search import check_limits

__all__ = ["DocumentSource", "Wanted"]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What one call asks for.

    Attributes:
        k: how many documents.
        fetch_k: how many candidates to fetch for each search vector.
        min_truth: leave out documents for which the query holds less than this.
        exact: search deeper until the result is proved or the source exhausted.
        filter: a filter in the source's own form.
        search_kwargs: more arguments for the source's own search.

    Raises:
        InvalidOption: a number is out of its range.
    """

    k: int
    fetch_k: int = 1000
    min_truth: float | None = None
    exact: bool = False
    filter: Any = None
    search_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("k", "fetch_k"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidOption(f"{name} is a positive whole number, not {value!r}")
        check_limits(None, self.min_truth)


class DocumentSource(Protocol):
    """A collection that gives the best documents of a query."""

    def search(self, query: str, wanted: Wanted) -> list[Document]:
        """The best documents, best first, each a new object with its reasons."""
        ...

    async def asearch(self, query: str, wanted: Wanted) -> list[Document]:
        """As `search`, without blocking the event loop."""
        ...
