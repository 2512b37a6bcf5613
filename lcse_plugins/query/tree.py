"""What a query tree means: functions over its nodes.

    >>> umbrella, person = Concept("umbrella"), Concept("person")
    >>> query = umbrella & ~person
    >>> format_query(query)
    '"umbrella" AND NOT "person"'

`canonical` gives the form that is scored, `format_query` the text that parses back; `exchange` has the JSON forms, and
`nodes` what a tree is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from lcse_plugins.errors import QueryError
from lcse_plugins.query.nodes import And, Concept, Group, Not, Or, Plain, Query, flattened

__all__ = [
    "affirms_nothing",
    "canonical",
    "concepts",
    "contradictions",
    "describe",
    "draw",
    "excludes",
    "fold",
    "format_query",
    "has_logic",
    "is_constrained",
    "leaves",
    "ordered",
    "shape_of",
]

Result = TypeVar("Result")

# ------------------------------------------------------------------------------------------ reading a tree


def leaves(query: Query, *, negated: bool = False) -> Iterator[tuple[Concept, bool]]:
    """Every occurrence of a concept, left to right, with whether it is under an odd number of `Not`."""
    match query:
        case Concept():
            yield query, negated
        case Not(child):
            yield from leaves(child, negated=not negated)
        case And(children) | Or(children) | Plain(children):
            for child in children:
                yield from leaves(child, negated=negated)


def fold(tree: Query, leaf: Callable[[str, bool], Result], group: Callable[[Group, list[Result]], Result]) -> Result:
    """What a canonical tree comes to, from its leaves upwards.

    Args:
        tree: Canonical query tree.
        leaf: Makes something of a concept's text, and of whether it is negated.
        group: Makes something of a group, and of what its children came to.
    """
    match tree:
        case Concept(text):
            return leaf(text, False)
        case Not(Concept(text)):
            return leaf(text, True)
        case And(children) | Or(children) | Plain(children):
            return group(tree, [fold(child, leaf, group) for child in children])
        case Not():
            raise AssertionError("negation stands at the leaves of a canonical tree")


def excludes(query: Query) -> bool:
    """Whether any concept is under an odd number of `Not`."""
    return any(negated for _, negated in leaves(query))


def affirms_nothing(query: Query) -> bool:
    """Whether every concept is under an odd number of `Not`."""
    return all(negated for _, negated in leaves(query))


def concepts(query: Query) -> tuple[str, ...]:
    """The distinct concept texts, in order of first appearance."""
    return tuple(dict.fromkeys(concept.text for concept, _ in leaves(query)))


def contradictions(query: Query) -> tuple[str, ...]:
    """Concepts that an `And` both wants and excludes, so that no image can satisfy it."""
    found: dict[str, None] = {}

    def visit(node: Query) -> None:
        if isinstance(node, And):
            wanted = {child.text for child in node.children if isinstance(child, Concept)}
            for child in node.children:
                if isinstance(child, Not) and isinstance(child.child, Concept) and child.child.text in wanted:
                    found[child.child.text] = None
        if isinstance(node, And | Or | Plain):
            for child in node.children:
                visit(child)

    visit(canonical(query))
    return tuple(found)


def is_constrained(query: Query) -> bool:
    """Whether any query, once in canonical form, states logic; without it the correction is exactly zero."""
    return has_logic(canonical(query))


def has_logic(tree: Query) -> bool:
    """Whether a canonical tree states any logic."""
    match tree:
        case Concept():
            return False
        case Plain(children):
            return any(has_logic(child) for child in children)
        case _:
            return True


# ------------------------------------------------------------------------------------------ canonical form


def canonical(query: Query) -> Query:
    """The form that is scored: negation at the leaves, groups flattened, repeated children dropped.

    Equivalent queries by De Morgan, double negation and associativity become the same tree. Children keep the
    order in which they were written; `ordered` removes that last difference.
    """
    return _canonical(query, negate=False)


def _canonical(query: Query, *, negate: bool) -> Query:
    match query:
        case Concept():
            return Not(query) if negate else query
        case Not(child):
            return _canonical(child, negate=not negate)
        case And(children):
            return _group(Or if negate else And, children, negate=negate)
        case Or(children):
            return _group(And if negate else Or, children, negate=negate)
        case Plain(children):
            return _group(Plain, children, negate=negate)
        case _:
            raise QueryError(f"a query is a tree of concepts, not {query!r:.80}; `parse` makes one of a text")


def _group(kind: type[And | Or | Plain], children: Sequence[Query], *, negate: bool) -> Query:
    distinct: dict[Query, Query] = {}
    for child in children:
        for part in flattened(_canonical(child, negate=negate), kind):
            distinct.setdefault(ordered(part), part)
    parts = tuple(distinct.values())
    return parts[0] if len(parts) == 1 else kind(parts)


def ordered(query: Query) -> Query:
    """The same tree with the children of every group sorted: one value for all ways of writing it."""
    match query:
        case Concept():
            return query
        case Not(child):
            return Not(ordered(child))
        case And(children) | Or(children) | Plain(children):
            return type(query)(tuple(sorted(map(ordered, children), key=format_query)))


def shape_of(query: Query) -> Query:
    """The same tree with its concepts numbered in their order: what queries that differ only in words share."""
    numbers = {name: str(number) for number, name in enumerate(concepts(query))}

    def numbered(part: Query) -> Query:
        match part:
            case Concept(text):
                return Concept(numbers[text])
            case Not(child):
                return Not(numbered(child))
            case And(children) | Or(children) | Plain(children):
                return type(part)(tuple(map(numbered, children)))

    return numbered(query)


# --------------------------------------------------------------------------------------------- as text


def format_query(query: Query) -> str:
    """The query in the explicit Boolean language; `parse` reads it back to the same tree."""
    match query:
        case Concept(text):
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case Not(child):
            return f"NOT {_nested(child, format_query)}"
        case And(children):
            return " AND ".join(_nested(child, format_query) for child in children)
        case Or(children):
            return " OR ".join(_nested(child, format_query) for child in children)
        case Plain(children):
            return " ".join(_nested(child, format_query) for child in children)


def _nested(query: Query, write: Callable[[Query], str]) -> str:
    leaf = isinstance(query, Concept) or (isinstance(query, Not) and isinstance(query.child, Concept))
    return write(query) if leaf else f"({write(query)})"


def describe(query: Query) -> str:
    """The query in plain English, for a text encoder or a caption: `umbrella and no person`."""
    match query:
        case Concept(text):
            return text
        case Not(child):
            return f"no {describe(child)}" if isinstance(child, Concept) else f"not ({describe(child)})"
        case And(children):
            return " and ".join(_nested(child, describe) for child in children)
        case Or(children):
            return " or ".join(_nested(child, describe) for child in children)
        case Plain(children):
            return ", ".join(_nested(child, describe) for child in children)


def draw(query: Query) -> str:
    """The tree, one node a line."""
    lines: list[str] = []

    def visit(node: Query, lead: str, branch: str, below: str) -> None:
        children: tuple[Query, ...] = ()
        match node:
            case Concept(text):
                label = text
            case Not(Concept(text)):
                label = f"NOT {text}"
            case Not(child):
                label, children = "NOT", (child,)
            case And(kids) | Or(kids) | Plain(kids):
                label, children = type(node).__name__.upper(), kids
        lines.append(lead + branch + label)
        for position, child in enumerate(children):
            last = position == len(children) - 1
            visit(child, lead + below, "└── " if last else "├── ", "    " if last else "│   ")

    visit(query, "", "", "")
    return "\n".join(lines)
