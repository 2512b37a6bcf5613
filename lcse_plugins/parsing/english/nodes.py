"""Nodes of a tree, out of parts of which some say nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lcse_plugins.parsing.english.items import Tag
from lcse_plugins.query import And, Not, Or, Query

__all__ = ["grouped", "joined", "negated", "some_not_all"]


def joined(kind: Callable[[tuple[Query, ...]], Query], parts: Sequence[Query | None]) -> Query | None:
    """One node of the parts that say anything; nested groups of its own kind become its children."""
    flat: list[Query] = []
    for part in parts:
        if part is not None:
            flat.extend(part.children if isinstance(part, And | Or) and type(part) is kind else (part,))
    return flat[0] if len(flat) == 1 else kind(tuple(flat)) if flat else None


def negated(query: Query | None) -> Query | None:
    """The negation of a part; None of one that says nothing."""
    return None if query is None else Not(query)


def some_not_all(query: Or) -> Query:
    """Some, but not all."""
    return And((query, Or(tuple(Not(child) for child in query.children))))


def grouped(tag: Tag, parts: Sequence[Query | None]) -> Query | None:
    """The tree of a list that `both`, `either`, `neither` or the like leads."""
    match tag:
        case "both":
            return joined(And, parts)
        case "either":
            return joined(Or, parts)
        case "exactly one":
            together = joined(Or, parts)
            return some_not_all(together) if isinstance(together, Or) else together
        case "neither":
            return negated(joined(Or, parts))
    return negated(joined(And, parts))
