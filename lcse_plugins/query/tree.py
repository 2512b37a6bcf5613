"""The query tree, `Concept | Not | And | Or | Plain`, and what it means.

    >>> umbrella, person = Concept("umbrella"), Concept("person")
    >>> format_query(umbrella & ~person)
    '"umbrella" AND NOT "person"'

Nodes are frozen, compare by value and build with `&`, `|`, `~`. Depth and size are bounded when a node is built, so
that every function over trees may simply recurse. `canonical` gives the form that is scored, `format_query` the text
that parses back; `exchange` has the JSON forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard, TypeVar, Union

from lcse_plugins.errors import QueryError, QueryTooComplex
from lcse_plugins.scoring.arguments import check_unicode

__all__ = [
    "GROUPS", "MAX_DEPTH", "MAX_NODES", "MAX_TEXT", "And", "Concept", "Group", "Not", "Or", "Plain", "Query",
    "affirms_nothing", "canonical", "concepts", "contradictions", "describe", "draw", "excludes", "fold",
    "format_query", "has_logic", "is_constrained", "is_tree", "leaves", "ordered", "shape_of",
]  # fmt: skip

MAX_DEPTH = 100
"""Levels in a tree. People write fewer than ten; recursion in functions over it stays safe."""

MAX_NODES = 20_000
"""Nodes in a tree."""

MAX_TEXT = 10_000
"""Characters in one concept, and in a query."""

Result = TypeVar("Result")

# ---------------------------------------------------------------------------------------------- nodes


class _Combinable:
    """`&`, `|` and `~`, shared by all nodes."""

    __slots__ = ()

    def __and__(self, other: Query) -> And:
        return And((*_flattened(self, And), *_flattened(other, And)))

    def __or__(self, other: Query) -> Or:
        return Or((*_flattened(self, Or), *_flattened(other, Or)))

    def __invert__(self) -> Not:
        return Not(self)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Concept(_Combinable):
    """One thing an image may show, as the encoder will read it: `Concept("red car")`."""

    text: str
    size: int = field(default=1, init=False, repr=False, compare=False)
    depth: int = field(default=1, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise QueryError(f"a concept is a text, not {type(self.text).__name__}")
        text = " ".join(self.text.split())
        if not text:
            raise QueryError("a concept needs at least one visible character")
        if len(text) > MAX_TEXT:
            raise QueryTooComplex(f"a concept has {len(text)} characters; at most {MAX_TEXT} are read")
        check_unicode(text)
        object.__setattr__(self, "text", text)


@dataclass(frozen=True, slots=True)
class Not(_Combinable):
    """Its child does not hold."""

    child: Query
    size: int = field(default=0, init=False, repr=False, compare=False)
    depth: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _measure(self, (self.child,))


@dataclass(frozen=True, slots=True)
class _Group(_Combinable):
    children: tuple[Query, ...]
    size: int = field(default=0, init=False, repr=False, compare=False)
    depth: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        children = (self.children,) if is_tree(self.children) else tuple(self.children)
        if not children:
            raise QueryError(f"{type(self).__name__} needs at least one child")
        object.__setattr__(self, "children", children)
        _measure(self, children)


class And(_Group):
    """All children hold."""

    __slots__ = ()


class Or(_Group):
    """At least one child holds."""

    __slots__ = ()


class Plain(_Group):
    """Several concepts side by side with no connector: the paper's NONE."""

    __slots__ = ()


Query: TypeAlias = Union[Concept, Not, And, Or, Plain]  # noqa: UP007  (isinstance on Python 3.10 wants a plain union)
Group: TypeAlias = "And | Or | Plain"
GROUPS: dict[str, type[Group]] = {"and": And, "or": Or, "plain": Plain}
"""The groups by the name they have in JSON."""


def is_tree(value: object) -> TypeGuard[Query]:
    """Whether it is a node of a query tree."""
    return isinstance(value, Concept | Not | _Group)


def _flattened(node: Any, group: type[_Group]) -> tuple[Query, ...]:
    """The children of a group of this kind; any other node alone."""
    return node.children if isinstance(node, group) else (node,)


def _measure(node: _Group | Not, children: tuple[Query, ...]) -> None:
    for child in children:
        if not is_tree(child):
            raise QueryError(f"{type(node).__name__} holds query nodes, not {type(child).__name__}")
    size, depth = 1 + sum(c.size for c in children), 1 + max(c.depth for c in children)
    if depth > MAX_DEPTH:
        raise QueryTooComplex(f"the query nests deeper than {MAX_DEPTH} levels; write it flatter")
    if size > MAX_NODES:
        raise QueryTooComplex(f"the query has more than {MAX_NODES} nodes; split it")
    object.__setattr__(node, "size", size)
    object.__setattr__(node, "depth", depth)


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

    def found(node: Query) -> Iterator[str]:
        children = getattr(node, "children", ())
        if isinstance(node, And):
            yield from (child.text for child in children if isinstance(child, Concept) and Not(child) in children)
        for child in children:
            yield from found(child)

    return tuple(dict.fromkeys(found(canonical(query))))


def is_constrained(query: Query) -> bool:
    """Whether any query, once in canonical form, states logic; without it the correction is exactly zero."""
    return has_logic(canonical(query))


def has_logic(tree: Query) -> bool:
    """Whether a canonical tree states any logic."""
    if isinstance(tree, Plain):
        return any(map(has_logic, tree.children))
    return not isinstance(tree, Concept)


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


def _group(kind: type[Group], children: Sequence[Query], *, negate: bool) -> Query:
    distinct: dict[Query, Query] = {}
    for child in children:
        for part in _flattened(_canonical(child, negate=negate), kind):
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
    return _written(query, _quoted, "NOT", {And: " AND ", Or: " OR ", Plain: " "})


def describe(query: Query) -> str:
    """The query in plain English, for a text encoder or a caption: `umbrella and no person`."""
    return _written(query, str, "no", {And: " and ", Or: " or ", Plain: ", "})


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _written(query: Query, leaf: Callable[[str], str], no: str, joins: Mapping[type, str]) -> str:
    def nested(part: Query) -> str:
        text = _written(part, leaf, no, joins)
        bare = isinstance(part, Concept) or (isinstance(part, Not) and isinstance(part.child, Concept))
        return text if bare else f"({text})"

    match query:
        case Concept(text):
            return leaf(text)
        case Not(child):
            return f"{no} {nested(child)}"
        case And(children) | Or(children) | Plain(children):
            return joins[type(query)].join(map(nested, children))


def draw(query: Query) -> str:
    """The tree, one node a line."""
    return "\n".join(_drawn(query))


def _drawn(query: Query) -> list[str]:
    children: tuple[Query, ...] = ()
    match query:
        case Concept(text):
            label = text
        case Not(Concept(text)):
            label = f"NOT {text}"
        case Not(child):
            label, children = "NOT", (child,)
        case And(kids) | Or(kids) | Plain(kids):
            label, children = type(query).__name__.upper(), kids
    lines = [label]
    for number, child in enumerate(children, start=1):
        branch, below = ("└── ", "    ") if number == len(children) else ("├── ", "│   ")
        first, *rest = _drawn(child)
        lines += [branch + first, *(below + line for line in rest)]
    return lines
