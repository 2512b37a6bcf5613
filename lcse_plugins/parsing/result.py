"""What a parser says about a query: the tree, and how it was read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from lcse_plugins.errors import QueryError, QueryTooComplex
from lcse_plugins.query import (
    MAX_TEXT,
    Concept,
    Not,
    Query,
    canonical,
    concepts,
    describe,
    excludes,
    has_logic,
    is_tree,
    to_flat,
    to_json,
)
from lcse_plugins.scoring.arguments import check_unicode

__all__ = [
    "MAX_CONCEPTS", "DetailedParser", "Parse", "Parser", "affirmative_text", "aread_with", "check_size", "check_text",
    "read_with", "taken_whole",
]  # fmt: skip

MAX_CONCEPTS = 64
"""Concepts in a query: each is encoded and scored."""


@dataclass(frozen=True, kw_only=True)
class Parse:
    """A query that has been read.

    Attributes:
        text: the query as it was given.
        query: its tree.
        affirmative: the query without its negated part; None when nothing is affirmed.
        spans: where each concept stands in `text`, as half-open character ranges.
        notes: what a person should know, such as `contradiction: dog and not dog`.
        sure: whether the parser knows of no other way to read the text, and left no cue unread.
        parser: who answered, such as `grammar` or `openai:gpt-4.1-mini`.
        error: why the intended parser did not answer; None when it did.

    Raises:
        TypeError: the query is no tree: the parser is broken.
        QueryError: the text holds bytes that are no letters.
    """

    text: str
    query: Query
    affirmative: str | None = None
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sure: bool = True
    parser: str = "grammar"
    error: str | None = None

    def __post_init__(self) -> None:
        _check_tree(self.query)
        check_unicode(self.text)

    @cached_property
    def tree(self) -> Query:
        """The canonical tree, which is scored."""
        return canonical(self.query)

    @property
    def constrained(self) -> bool:
        """Whether the query states any logic."""
        return has_logic(self.tree)

    def to_json(self) -> dict[str, Any]:
        """The parse as JSON values, with the canonical tree."""
        tree = self.tree
        flat = to_flat(tree, strict=False)
        return {
            "query": self.text,
            "tree": to_json(tree),
            "concepts": flat["concepts"],
            "operator": flat["operator"],
            "constrained": self.constrained,
            "affirmative": self.affirmative,
            "sure": self.sure,
            "notes": list(self.notes),
            "parser": self.parser,
            "error": self.error,
        }


class Parser(Protocol):
    """Anything that turns text into a tree; `lcse_plugins.parse` is one, any such function is."""

    def __call__(self, text: str, /) -> Query:
        """The tree of `text`."""
        ...


@runtime_checkable
class DetailedParser(Parser, Protocol):
    """A parser that also says how it read the text."""

    def read(self, text: str) -> Parse:
        """The tree of `text`, and how it was read."""
        ...


def read_with(parser: Parser, text: str) -> Parse:
    """Read `text` with any parser; one that only gives a tree gets the rest derived from it."""
    if isinstance(parser, DetailedParser):
        return parser.read(text)
    query = parser(text)
    _check_tree(query)
    name = getattr(parser, "__name__", type(parser).__name__)
    return Parse(text=text, query=query, affirmative=affirmative_text(query, text), parser=name)


async def aread_with(parser: Parser, text: str) -> Parse:
    """`read_with` off the event loop; a parser with an `aread` of its own is awaited."""
    if (aread := getattr(parser, "aread", None)) is None:
        return await asyncio.to_thread(read_with, parser, text)
    parse: Parse = await aread(text)
    return parse


def taken_whole(text: str, *, note: str, error: str) -> Parse:
    """The parse of a query that could not be read: one concept without logic, and why."""
    return Parse(text=text, query=Concept(text), affirmative=text, notes=(note,), parser="holistic", error=error)


def check_text(text: object) -> None:
    """Raise `QueryError` unless this is a text to read: not blank, and not longer than is read."""
    if not isinstance(text, str):
        raise QueryError(f"a query is a text, not {type(text).__name__}")
    if not text.strip():
        raise QueryError("the query is blank; say what the images should show")
    if len(text) > MAX_TEXT:
        raise QueryTooComplex(f"the query has {len(text)} characters; at most {MAX_TEXT} are read")


def check_size(query: Query) -> None:
    """Raise `QueryTooComplex` where a tree names more concepts than are scored."""
    if (count := len(concepts(query))) > MAX_CONCEPTS:
        raise QueryTooComplex(f"the query names {count} concepts; at most {MAX_CONCEPTS} are scored")


def _check_tree(query: object) -> None:
    if not is_tree(query):
        raise TypeError(f"a parser makes a tree of concepts, not {query!r:.80}")


def affirmative_text(query: Query, text: str) -> str | None:
    """The affirmed part of `query` as text: `text` when nothing is negated, None when all is."""
    tree = canonical(query)
    if not excludes(tree):
        return text
    kept = _affirmed(tree)
    return None if kept is None else describe(kept)


def _affirmed(tree: Query) -> Query | None:
    if isinstance(tree, Concept | Not):
        return tree if isinstance(tree, Concept) else None
    kept = tuple(part for child in tree.children if (part := _affirmed(child)) is not None)
    return type(tree)(kept) if len(kept) > 1 else kept[0] if kept else None
