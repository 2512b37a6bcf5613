"""Do the `and` and `or` of a tree stand where its query joins things, or offers a choice?

Each of them needs a word that says so; and what an `or` of the query stands between is not joined the other way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import permutations

from lcse_plugins.parsing.english.lexicon import PhraseTable, lexicon
from lcse_plugins.parsing.english.words import split_words
from lcse_plugins.parsing.grounding.exclusion import cues_of
from lcse_plugins.parsing.grounding.languages import NO_CHOICE
from lcse_plugins.parsing.grounding.placing import ARTICLES, folded, places_of, words_of
from lcse_plugins.parsing.grounding.signs import is_led_to
from lcse_plugins.query import And, Concept, Not, Or, Plain, Query, affirms_nothing, leaves

__all__ = ["operators_between", "wrong_operators"]

_JOINS = frozenset(
    "and both with plus together alongside along well also too but yet while whereas although though including "
    "includes containing contains having has featuring all each besides accompanied".split()
)
_OFFERS = frozenset("or either any nor alternatively otherwise else one xor whichever whatever".split())
_JOIN_MARKS, _OFFER_MARKS = frozenset("&+,;:.()∧"), frozenset("/|∨")
_ONE_OF_TWO = frozenset({"exclusive", "not both", "exactly one"})
"""Cues that offer a choice."""


def wrong_operators(tree: Query, text: str) -> Iterator[str]:
    """The `and` and `or` of the canonical tree that its query does not carry, as sentences."""
    cues = cues_of(text)
    marks, lows = set(folded(text)), {word.text for word in words_of(text)}
    joins = bool(lows & _JOINS or marks & _JOIN_MARKS or _joins(text))
    offers = bool(lows & _OFFERS or marks & _OFFER_MARKS or any(cue.tag in _ONE_OF_TWO for cue in cues))
    offers |= "unless" in lows and len(cues) > 1  # "no people unless they wear hats"
    choices = [node for node in _nodes(tree) if isinstance(node, Or)]
    if not offers and not all(cues and joins and affirms_nothing(choice) for choice in choices):
        yield NO_CHOICE
    if not (cues or joins) and any(isinstance(node, And) for node in _nodes(tree)):
        yield "no word of the query joins or excludes things, so 'and' has no ground"
    yield from _joined_otherwise(tree, text)


def operators_between(
    tree: Query, is_one: Callable[[Concept], bool], is_other: Callable[[Concept], bool]
) -> frozenset[str]:
    """The operators between leaves of one kind and those of another; a plain row counts as `and`."""
    if not isinstance(tree, And | Or | Plain):
        return frozenset()
    held = [[leaf for leaf, _ in leaves(child)] for child in tree.children]
    first = [at for at, found in enumerate(held) if any(map(is_one, found))]
    second = [at for at, found in enumerate(held) if any(map(is_other, found))]
    below = frozenset[str]().union(*(operators_between(child, is_one, is_other) for child in tree.children))
    if any(a != b for a in first for b in second):
        below |= {"or" if isinstance(tree, Or) else "and"}
    return below


def _joins(text: str) -> bool:
    """Whether a phrase of the grammar's tables of joining words stands in the text."""
    return _joining().stands_in([word.low for word in split_words(text, lexicon())])


@lru_cache(maxsize=1)
def _joining() -> PhraseTable:
    return lexicon().phrases("and", "but", "both")


def _nodes(tree: Query) -> Iterator[Query]:
    yield tree
    if isinstance(tree, And | Or | Plain):
        for child in tree.children:
            yield from _nodes(child)


# ------------------------------------------------------------------------------------------ around an `or`


def _alternatives(tree: Query, text: str) -> Iterator[tuple[Concept, Concept, bool]]:
    """Concepts with nothing but `or` between them, articles aside; and whether the second is one bare word.

    The first may go on behind the second, with what they share: `red or blue cars`.
    """
    words = words_of(text)
    places = {leaf: places_of(leaf.text, words) for leaf, _ in leaves(tree)}
    found = {leaf: [words[at] for at in where[0]] for leaf, where in places.items() if len(where) == 1}
    for one, other in permutations(found, 2):
        start = found[other][0].start
        end = max((word.end for word in found[one] if word.start < start), default=start)
        between = [word.text for word in words if end <= word.start < start]
        if between[:1] == ["or"] and ARTICLES.issuperset(between[1:]):
            yield one, other, len(between) == len(found[other]) == 1


def _joined_otherwise(tree: Query, text: str) -> Iterator[str]:
    """Alternatives that are both wanted; and a choice of things that one "no" excludes."""
    signs = set(leaves(tree))
    choices = [set(node.children) for node in _nodes(tree) if isinstance(node, Or)]
    either = any(word.text == "either" for word in words_of(text))
    for one, other, bare in _alternatives(tree, text):
        operators = operators_between(tree, one.__eq__, other.__eq__)
        wanted = (one, False) in signs or (other, False) in signs
        listed = not either and is_led_to(one, text)
        if operators == {"and"} and wanted:
            yield f"the query has 'or' between {one.text!r} and {other.text!r}, the tree 'and'"
        elif operators == {"or"} and listed and not wanted:
            yield f"the query excludes both {one.text!r} and {other.text!r}, the tree one of them"
        elif listed and bare and any({Not(one), other} <= choice for choice in choices):
            yield f"the query excludes {other.text!r} with {one.text!r}, the tree wants it"
