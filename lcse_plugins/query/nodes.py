"""The nodes of a query tree, `Concept | Not | And | Or | Plain`, as plain values.

They are frozen, compare by value and build with `&`, `|`, `~`. Depth and size are bounded when a node is built, so that
every function over trees may simply recurse. What a tree means is told in `tree`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard, Union

from lcse_plugins.errors import QueryError, QueryTooComplex
from lcse_plugins.scoring.arguments import check_unicode

__all__ = [
    "GROUPS",
    "MAX_DEPTH",
    "MAX_NODES",
    "MAX_TEXT",
    "And",
    "Concept",
    "Group",
    "Not",
    "Or",
    "Plain",
    "Query",
    "flattened",
    "is_tree",
]

MAX_DEPTH = 100
"""Levels in a tree. People write fewer than ten; recursion in functions over it stays safe."""

MAX_NODES = 20_000
"""Nodes in a tree."""

MAX_TEXT = 10_000
"""Characters in one concept, and in a query."""


class _Combinable:
    """`&`, `|` and `~`, shared by all nodes."""

    __slots__ = ()

    def __and__(self, other: Query) -> And:
        return And((*flattened(self, And), *flattened(other, And)))

    def __or__(self, other: Query) -> Or:
        return Or((*flattened(self, Or), *flattened(other, Or)))

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
        children = (self.children,) if isinstance(self.children, _NODES) else tuple(self.children)
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
"""The groups by the name they have in JSON, in a language model's replies and in examples."""

_NODES = (Concept, Not, And, Or, Plain)


def is_tree(value: object) -> TypeGuard[Query]:
    """Whether it is a node of a query tree."""
    return isinstance(value, _NODES)


def flattened(node: Any, group: type[_Group]) -> tuple[Query, ...]:
    """The children of a group of this kind; any other node alone."""
    return node.children if isinstance(node, group) else (node,)


def _measure(node: _Group | Not, children: tuple[Query, ...]) -> None:
    for child in children:
        if not isinstance(child, _NODES):
            raise QueryError(f"{type(node).__name__} holds query nodes, not {type(child).__name__}")
    size, depth = 1 + sum(c.size for c in children), 1 + max(c.depth for c in children)
    if depth > MAX_DEPTH:
        raise QueryTooComplex(f"the query nests deeper than {MAX_DEPTH} levels; write it flatter")
    if size > MAX_NODES:
        raise QueryTooComplex(f"the query has more than {MAX_NODES} nodes; split it")
    object.__setattr__(node, "size", size)
    object.__setattr__(node, "depth", depth)
