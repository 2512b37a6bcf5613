"""Where a request may begin, and where a wish begins behind what is not wanted."""

from __future__ import annotations

from collections.abc import Sequence

from lcse_plugins.parsing.english.items import NEGATIONS, Item, is_words, negation_of, tag_at
from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.names import may_order
from lcse_plugins.parsing.english.orders import asks_for_absence
from lcse_plugins.parsing.english.senses import Answer
from lcse_plugins.parsing.english.words import Word

__all__ = ["asks_anew", "is_after_negation", "is_after_order", "may_begin", "orders_absence"]


def may_begin(items: Sequence[Item]) -> bool:
    """Whether a request may begin behind the items."""
    at = _last_before_order(items)
    if at < 0:
        return True
    last = items[at]
    if last.tag == "words":
        return all(word.low in ("please", "i", "you", "can", "could", "also", "then") for word in last.words)
    return last.tag in ("stop", "comma", "but", "and", "open")


def orders_absence(items: Sequence[Item], words: Sequence[Word], at: int, length: int, lexicon: Lexicon) -> Answer:
    """Whether a verb of some words at `at` asks for absence behind the items."""
    if may_begin(items):
        return "yes" if items or may_order(words, at, length, lexicon) else "maybe"
    last = _last_before_order(items)
    if not is_words(items, last):
        return "no"
    low, many = [word.low for word in words], tag_at(items, last - 1) == "and"
    return asks_for_absence(low, at, length, items[last].words, lexicon, many=many)


def _last_before_order(items: Sequence[Item]) -> int:
    """Where the last item stands, but for one that may begin an order: `do not | exclude dogs`."""
    last = len(items) - 1
    return last - 1 if tag_at(items, last) == "not" and items[last].words[0].low == "do" else last


def is_after_negation(items: Sequence[Item], lexicon: Lexicon) -> bool:
    """Whether the operand under way is a negated one: `no people | only dogs`."""
    last = len(items) - 1
    if tag_at(items, last) != "words" or negation_of(items, last) is None:
        return False
    return items[last].words[-1].low not in lexicon.words("preposition")  # "dogs with only one eye"


def is_after_order(items: Sequence[Item]) -> bool:
    """Whether a joint stands behind what a verb excludes: `hate dogs, | love cats`."""
    return tag_at(items, len(items) - 1) in ("comma", "stop", "and", "but") and any(item.order for item in items)


def asks_anew(items: Sequence[Item], low: Sequence[str], at: int, lexicon: Lexicon) -> bool:
    """Whether a request begins behind what was negated: `instead of dogs | show me cats`."""
    if low[at] not in ("show", "find", "give", "bring", "i") or not is_after_negation(items, lexicon):
        return False
    length, _ = lexicon.requests.match(low, at)
    again = any(word.low == "show" for item in items if item.tag in NEGATIONS for word in item.words)
    return at + length < len(low) and (length > 1 or (again and low[at] == "show"))
