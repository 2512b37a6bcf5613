"""Query trees as data: lossless JSON, and the paper's flat `{concepts, operator}` view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from lcse_plugins.errors import QueryError, QueryNotFlat, QueryTooComplex
from lcse_plugins.query.nodes import GROUPS, MAX_DEPTH, And, Concept, Not, Or, Plain, Query
from lcse_plugins.query.tree import canonical, format_query, leaves

__all__ = ["FlatConcept", "FlatQuery", "Operator", "from_flat", "from_json", "to_flat", "to_json"]

Operator = Literal["SINGLE", "AND", "OR", "NONE"]


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
        f'{{"op": "and" | "or" | "plain", "children": […]}}, not {_shortened(data)}'
    )


class FlatConcept(TypedDict):
    """A concept of the paper's flat form."""

    text: str
    is_negated: bool


class FlatQuery(TypedDict):
    """The paper's flat form of a query."""

    concepts: list[FlatConcept]
    operator: Operator


def to_flat(query: Query, *, strict: bool = True) -> FlatQuery:
    """The paper's `{concepts, operator}` view of the canonical tree.

    Args:
        query: Any tree.
        strict: Refuse a nested tree. Otherwise list its leaves under the operator of its root.

    Raises:
        QueryNotFlat: the tree is nested and `strict` is set.
    """
    tree = canonical(query)
    operator: Operator
    match tree:
        case Concept() | Not():
            operator = "SINGLE"
        case And():
            operator = "AND"
        case Or():
            operator = "OR"
        case Plain():
            operator = "NONE"
    if strict and any(isinstance(child, And | Or | Plain) for child in getattr(tree, "children", ())):
        raise QueryNotFlat(f"{format_query(tree)} is nested and has no flat form; use to_json, or strict=False")
    return {
        "concepts": [{"text": leaf.text, "is_negated": negated} for leaf, negated in leaves(tree)],
        "operator": operator,
    }


def from_flat(flat: FlatQuery | Mapping[str, Any]) -> Query:
    """The tree of the paper's flat form.

    Raises:
        QueryError: `flat` is not of that form.
    """
    match flat:
        case {"concepts": [*items], "operator": "SINGLE" | "AND" | "OR" | "NONE" as operator}:
            children = tuple(_from_flat_concept(item) for item in items)
        case _:
            raise QueryError(f'expected {{"concepts": […], "operator": SINGLE|AND|OR|NONE}}, not {_shortened(flat)}')
    if operator == "SINGLE":
        if len(children) != 1:
            raise QueryError(f"operator SINGLE goes with one concept, not {len(children)}")
        return children[0]
    return GROUPS["plain" if operator == "NONE" else operator.lower()](children)


def _from_flat_concept(item: Any) -> Query:
    match item:
        case {"text": str(text), "is_negated": bool(negated)}:
            return Not(Concept(text)) if negated else Concept(text)
    raise QueryError(f'a flat concept is {{"text": …, "is_negated": true|false}}, not {_shortened(item)}')


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
