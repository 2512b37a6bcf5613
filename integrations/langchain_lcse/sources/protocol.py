"""What a source of documents is, which arguments its search accepts, and those of one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from langchain_core.documents import Document

from lcse_plugins.errors import InvalidOption
from lcse_plugins.scoring.arguments import check_count, check_limits

__all__ = ["WORDS", "AcceptedArguments", "DocumentSource", "SearchArguments"]


@dataclass(frozen=True, kw_only=True)
class SearchArguments:
    """The arguments of one search.

    Attributes:
        k: how many documents.
        fetch_k: how many candidates to fetch for each search vector.
        min_truth: leave out documents for which the query holds less than this.
        exact: search deeper until the result is proved or the source exhausted.
        filter: a filter in the source's own form.
        search_kwargs: more arguments for the source's own search, none of which is one of the above.

    Raises:
        InvalidOption: a number is out of its range.
    """

    k: int = 4
    fetch_k: int = 1000
    min_truth: float | None = None
    exact: bool = False
    filter: Any = None
    search_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_count("k", self.k)
        check_count("fetch_k", self.fetch_k)
        check_limits(None, self.min_truth)


WORDS = {name: name for name in ("k", "fetch_k", "min_truth", "exact", "filter")}
"""What every search can be given: the name in `search_kwargs` → the name in `SearchArguments`."""


@dataclass(frozen=True, kw_only=True)
class AcceptedArguments:
    """The names that `search_kwargs` may hold for a source.

    Attributes:
        words: those that mean what every source is asked for, the source's own words for it among them.
        options: those that are handed to its search as they are; None for any.
        function_filter: whether a filter is a function of the document.
    """

    words: Mapping[str, str] = field(default_factory=lambda: WORDS)
    options: frozenset[str] | None = frozenset()
    function_filter: bool = False

    def merged(
        self, *, call: Mapping[str, Any], settings: Mapping[str, Any], search_kwargs: Mapping[str, Any]
    ) -> SearchArguments:
        """What a call asks for: its own arguments, before the retriever's settings and `search_kwargs`.

        Raises:
            InvalidOption: settings and `search_kwargs` differ, the source does not know a name, or a value is wrong.
        """
        asked, options = dict(settings), {}
        for word, value in search_kwargs.items():
            name = self.words.get(word)
            if name is None:
                options[word] = value
            elif value is not None and asked.setdefault(name, value) != value:
                raise InvalidOption(f"{name} is given twice: {asked[name]!r}, and {value!r} as search_kwargs[{word!r}]")
        self._check_names(options)
        asked.update({name: value for name, value in call.items() if value is not None})
        arguments = SearchArguments(**asked, search_kwargs=options)
        if self.function_filter and arguments.filter is not None and not callable(arguments.filter):
            raise InvalidOption(
                "this source's filter is a function of the document that says whether it may be found, "
                f"not {type(arguments.filter).__name__}"
            )
        return arguments

    def _check_names(self, options: Mapping[str, Any]) -> None:
        if self.options is not None and (unknown := sorted(set(options) - self.options)):
            known = ", ".join(sorted({*self.words, *self.options}))
            raise InvalidOption(f"this source cannot honour {', '.join(unknown)} in search_kwargs; it knows {known}")


class DocumentSource(Protocol):
    """A collection that gives the best documents of a query."""

    @property
    def accepts(self) -> AcceptedArguments:
        """What its search may be told."""
        ...

    def search(self, query: str, arguments: SearchArguments) -> list[Document]:
        """The best documents, best first, each a new object with its reasons."""
        ...

    async def asearch(self, query: str, arguments: SearchArguments) -> list[Document]:
        """As `search`, without blocking the event loop."""
        ...
