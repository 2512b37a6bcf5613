"""The operands and operators of an English query, in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lcse_plugins.parsing.english.words import Word

__all__ = ["GROUPS", "NEGATIONS", "Item", "is_negation", "is_words", "negation_of", "tag_at"]

NEGATIONS = frozenset({"no", "without", "not", "neither", "not both"})
GROUPS = frozenset({"both", "either", "exactly one"})


@dataclass(slots=True)
class Item:
    """An operand or an operator.

    Attributes:
        tag: `words` for an operand, else the name of the table its cue stands in, or `comma`, `stop`, `open`, `close`.
        words: its words.
        negated: the operand is said to be absent.
        framed: the operator brought its own opening: `and with`, `but there is`.
        comma: the operator followed a comma.
        strong: the operator joins things even where each is described at length: `as well as`.
        order: the operator is a verb that asks for absence, of all that it lists: `avoid`.
        doubtful: one may doubt where the operand ends, or that it is read as it should be.
    """

    tag: str
    words: list[Word] = field(default_factory=list)
    negated: bool = False
    framed: bool = False
    comma: bool = False
    strong: bool = False
    order: bool = False
    doubtful: bool = False


def tag_at(items: Sequence[Item], at: int) -> str:
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
