"""Query trees as data: lossless JSON, and the paper's flat `{concepts, operator}` view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lcse_plugins.errors import QueryError, QueryNotFlat, QueryTooComplex
from lcse_plugins.query.tree import (
    GROUPS,
    MAX_DEPTH,
    And,
    Concept,
    Not,
    Or,
    Plain,
    Query,
    canonical,
    format_query,
    leaves,
)

__all__ = ["from_flat", "from_json", "to_flat", "to_json"]

_OPERATORS = {"Concept": "SINGLE", "Not": "SINGLE", "And": "AND", "Or": "OR", "Plain": "NONE"}


def to_json(query: Query) -> dict[str, Any]:
    """The tree as JSON values: `{"op": "and", "children": [{"op": "concept", "text": "cat"}, …]}`."""
    match query:
        case Concept(text):
            return {"op": "concept", "text": text}
        case Not(child):
            return {"op": "not", "child": to_json(child)}
        case And(children) | Or(children) | Plain(children):
            return {"op": type(query).__name__.lower(), "children": [to_json(child) for child in children]}


def from_json(data: Mapping[str, Any]) -> Query:
    """The tree that `to_json` wrote.

    Raises:
        QueryError: `data` is not such a tree.
    """
    return _from_json(data, level=1)


def _from_json(data: Any, *, level: int) -> Query:
    if level > MAX_DEPTH:
        raise QueryTooComplex(f"the query nests deeper than {MAX_DEPTH} levels; write it flatter")
    match data:
        case {"op": "concept", "text": str(text), **rest} if not rest:
            return Concept(text)
        case {"op": "not", "child": child, **rest} if not rest:
            return Not(_from_json(child, level=level + 1))
        case {"op": "and" | "or" | "plain" as op, "children": [*children], **rest} if not rest:
            return GROUPS[op](tuple(_from_json(child, level=level + 1) for child in children))
    raise QueryError(
        'a node is {"op": "concept", "text": …}, {"op": "not", "child": …} or '
        f'{{"op": "and" | "or" | "plain", "children": […]}}, not {data!r:.80}'
    )


def to_flat(query: Query, *, strict: bool = True) -> dict[str, Any]:
    """The paper's `{concepts, operator}` view of the canonical tree; operators are SINGLE, AND, OR and NONE.

    Args:
        query: Any tree.
        strict: Refuse a nested tree. Otherwise list its leaves under the operator of its root.

    Raises:
        QueryNotFlat: the tree is nested and `strict` is set.
    """
    tree = canonical(query)
    if strict and any(isinstance(child, And | Or | Plain) for child in getattr(tree, "children", ())):
        raise QueryNotFlat(f"{format_query(tree)} is nested and has no flat form; use to_json, or strict=False")
    return {
        "concepts": [{"text": leaf.text, "is_negated": negated} for leaf, negated in leaves(tree)],
        "operator": _OPERATORS[type(tree).__name__],
    }


def from_flat(flat: Mapping[str, Any]) -> Query:
    """The tree of the paper's flat form.

    Raises:
        QueryError: `flat` is not of that form.
    """
    match flat:
        case {"concepts": [item], "operator": "SINGLE"}:
            return _from_flat_concept(item)
        case {"concepts": [*items], "operator": "AND" | "OR" | "NONE" as operator}:
            children = tuple(map(_from_flat_concept, items))
            return GROUPS["plain" if operator == "NONE" else operator.lower()](children)
    raise QueryError(
        f'expected {{"concepts": […], "operator": SINGLE|AND|OR|NONE}}, SINGLE with one concept, not {flat!r:.80}'
    )


def _from_flat_concept(item: Any) -> Query:
    match item:
        case {"text": str(text), "is_negated": bool(negated)}:
            return Not(Concept(text)) if negated else Concept(text)
    raise QueryError(f'a flat concept is {{"text": …, "is_negated": true|false}}, not {item!r:.80}')
