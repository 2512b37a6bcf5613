"""The operands and operators of an English query, in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from lcse_plugins.parsing.english.words import Word

__all__ = [
    "GROUPS",
    "NEGATIONS",
    "Item",
    "Tag",
    "is_negation",
    "is_paired",
    "is_words",
    "joints_of",
    "negation_of",
    "tag_at",
]

Tag = Literal[
    "words",  # an operand: the words of a thing or a scene
    "no",  # negates the thing behind it, up to a new article: `no dogs`
    "without",  # negates all that it lists: `without a dog or a cat`
    "not",  # negates a thing, or what is said of one: `not a dog`, `is not red`
    "neither",  # negates each thing of its list: `neither … nor`, `none of`
    "not both",  # negates that the things of its list come together
    "absent",  # negates the thing in front: `is missing`
    "nor",  # goes on with a negated list
    "both",  # joins its list by AND: `both … and`, `all of`
    "either",  # joins its list by OR: `either … or`, `any of`
    "exactly one",  # wants some but not all of its list: `only one of`
    "exclusive",  # the same, said behind the list: `but not both`
    "and",
    "or",
    "but",  # an AND that ends what a negation reaches
    "weak and",  # an AND that binds less than `or`: a comma, `, and`
    "weak or",  # an OR that binds less than any AND: `, or`
    "list",  # a comma between things, with no `and` or `or` behind it
    "comma",  # a comma of which nothing is said yet
    "stop",  # the end of a sentence or clause: a full stop, a dash
    "open",  # an opening parenthesis
    "close",  # a closing one
]
"""What an item is."""

NEGATIONS: frozenset[Tag] = frozenset({"no", "without", "not", "neither", "not both"})
GROUPS: frozenset[Tag] = frozenset({"both", "either", "exactly one"})
_AND: frozenset[Tag] = frozenset({"and"})
_OR: frozenset[Tag] = frozenset({"or"})
_LOOSE: frozenset[Tag] = frozenset({"or", "nor", "and", "list"})


@dataclass(slots=True)
class Item:
    """An operand or an operator.

    Attributes:
        tag: what it is; for a cue, the name of the table that it stands in.
        words: its words.
        negated: the operand is said to be absent.
        framed: the operator brought its own opening: `and with`, `but there is`.
        comma: the operator followed a comma.
        strong: the operator joins things even where each is described at length: `as well as`.
        order: the operator is a verb that asks for absence, of all that it lists: `avoid`.
        doubtful: one may doubt where the operand ends, or that it is read as it should be.
    """

    tag: Tag
    words: list[Word] = field(default_factory=list)
    negated: bool = False
    framed: bool = False
    comma: bool = False
    strong: bool = False
    order: bool = False
    doubtful: bool = False


def tag_at(items: Sequence[Item], at: int) -> Tag | Literal[""]:
    """The tag of an item, or an empty text outside the row."""
    return items[at].tag if 0 <= at < len(items) else ""


def is_words(items: Sequence[Item], at: int) -> bool:
    """Whether an affirmed operand stands here."""
    return tag_at(items, at) == "words" and not items[at].negated


def is_negation(items: Sequence[Item], at: int) -> bool:
    """Whether a negation stands here."""
    return tag_at(items, at) in NEGATIONS or (tag_at(items, at) == "words" and items[at].negated)


def negation_of(items: Sequence[Item], at: int) -> int | None:
    """Where the negation stands that reaches the operand here over a list: `no` for the birds of `no dogs or birds`."""
    listed = False
    while tag_at(items, at - 1) in ("or", "nor") or (listed and tag_at(items, at - 1) == "comma"):
        if not is_words(items, at - 2):
            return None
        at -= 2
        listed = True
    return at - 1 if tag_at(items, at - 1) in NEGATIONS else None


def is_paired(item: Item) -> bool:
    """Whether this is the `either` of `either … or`, and not `any of`."""
    return item.tag == "either" and item.words[-1].low == "either"


def joints_of(item: Item) -> frozenset[Tag]:
    """What joins the things of a group."""
    if item.tag in ("both", "not both"):
        return _AND
    return _OR if is_paired(item) else _LOOSE
