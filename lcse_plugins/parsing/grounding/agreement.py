"""Does a tree contradict what the offline grammar is sure of?

Two readers seldom cut a query into the same concepts: one cuts finer, the other keeps more words. So each concept of
the grammar is known by its head, the words in front of its first preposition (`man` of `man in a park`) that no other
concept has; and only three things are compared: that the concept is named at all, whether it is wanted or excluded,
and whether `and` or `or` stands between it and its neighbour. What is wanted is wanted with all its parts: its `park`
may not be excluded either. How groups nest is left to the reader. Where the grammar is not sure, a concept must be
named, a cue used, and no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product

from lcse_plugins.errors import QueryError
from lcse_plugins.parsing.english.lexicon import lexicon
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.grounding.exclusion import leaves_open, privative
from lcse_plugins.parsing.grounding.inflection import base_forms
from lcse_plugins.parsing.grounding.operators import operators_between
from lcse_plugins.parsing.grounding.placing import PEOPLE, words_of
from lcse_plugins.parsing.grounding.signs import unused_cues
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import (
    Concept,
    Not,
    Or,
    Query,
    canonical,
    concepts,
    excludes,
    format_query,
    leaves,
    ordered,
)

__all__ = ["disagreements", "is_grammars"]

_MANY = 8
"""Concepts up to which two trees are compared image by image."""


@dataclass(frozen=True)
class _Named:
    """A concept of the grammar and its signs.

    Of its words, in base forms: those that only it has, those of its head that only it has, all of its head.
    """

    text: str
    own: frozenset[str]
    head: frozenset[str]
    first: frozenset[str]
    signs: frozenset[bool]


def is_grammars(tree: Query, text: str) -> bool:
    """Whether the canonical tree is the grammar's own."""
    reading = _reading(text)
    return reading is not None and ordered(tree) == ordered(canonical(reading.query))


def disagreements(tree: Query, text: str) -> Iterator[str]:
    """What a canonical tree leaves out of the grammar's reading, and where it says the opposite, as sentences."""
    if (reading := _reading(text)) is None:
        return
    read = canonical(reading.query)
    named = _named(read)
    sure = parse.is_sure(reading)
    yield from _left_out(tree, named, sure=sure)
    if sure:
        yield from _wrongly_excluded(tree, read, named)
        yield from _turned_round(tree, read, named)
        yield from _joined_otherwise(tree, read, named)
    else:
        yield from unused_cues(tree, text)


def _left_out(tree: Query, named: Sequence[_Named], *, sure: bool) -> Iterator[str]:
    """Concepts that the tree does not name."""
    for concept in named:
        names = concept.own if sure else concept.own | concept.first
        if all(map(privative, concept.own)):  # `hatless` by itself: its `hat` names it
            names |= {form for word in concept.own for form in base_forms(privative(word))}
        if concept.own and not _signs(tree, names) and not leaves_open(concept.text):
            yield f"the query {_verb(concept.signs)} {concept.text!r}, the tree does not name it"


def _wrongly_excluded(tree: Query, read: Query, named: Sequence[_Named]) -> Iterator[str]:
    """Nothing, where the query excludes something; or a part of what the query wants."""
    if excludes(read) and not excludes(tree):
        yield "the query excludes something, the tree nothing"
    for leaf, concept in product((leaf for leaf, negated in leaves(tree) if negated), named):
        if True not in concept.signs and _is_part(leaf.text, concept):
            yield f"the query wants {concept.text!r}, the tree excludes {leaf.text!r}"


def _turned_round(tree: Query, read: Query, named: Sequence[_Named]) -> Iterator[str]:
    """Concepts wanted instead of excluded, or the reverse; of one that is both, the trees as a whole."""
    for concept in named:
        signs = _signs(tree, concept.head)
        if len(signs) == len(concept.signs) == 1 and signs != concept.signs:
            yield f"the query {_verb(concept.signs)} {concept.text!r}, the tree {_verb(signs)} it"
    if any(len(concept.signs) == 2 for concept in named) and _mean_the_same(read, tree, named) is False:
        yield f"the query means {format_query(read)}, the tree something else"


def _joined_otherwise(tree: Query, read: Query, named: Sequence[_Named]) -> Iterator[str]:
    """Neighbours with `and` between them instead of `or`, or the reverse, and that no concept takes together."""
    for one, other in pairwise(named):
        if any(not (one.head.isdisjoint(words) or other.head.isdisjoint(words)) for words in _words_of_leaves(tree)):
            continue  # `black shoes` of `shoes, black or brown`
        said, replied = (_between(query, one.head, other.head) for query in (read, tree))
        if len(said) == len(replied) == 1 and said != replied:
            yield f"in the query {min(said)!r} joins {one.text!r} and {other.text!r}, in the tree {min(replied)!r}"


@lru_cache(maxsize=256)
def _reading(text: str) -> Parse | None:
    try:
        return parse.read(text)
    except QueryError:
        return None


def _named(tree: Query) -> list[_Named]:
    signs: dict[str, set[bool]] = {}
    for leaf, negated in leaves(tree):
        signs.setdefault(leaf.text, set()).add(negated)
    holders = Counter(form for text in signs for form in _forms(text))
    small, places, about = _small(), lexicon().words("preposition"), lexicon().words("request word")
    found = []
    for text in signs:
        row = [word.text for word in words_of(text)]
        cut = next((at for at, word in enumerate(row) if at and word in places), len(row))
        own = [word for word in row if word not in small and all(holders[form] == 1 for form in _forms(word))]
        head = [word for word in row[:cut] if word in own]
        first = [word for word in row[:cut] if word not in small]
        if False in signs[text]:  # "high quality" may be left out
            own = [word for word in own if word not in about]
        forms, heads, firsts = (_forms(" ".join(words)) for words in (own, head, first))
        found.append(_Named(text, forms, heads, firsts, frozenset(signs[text])))
    return found


@lru_cache(maxsize=1)
def _small() -> frozenset[str]:
    tables = lexicon()
    return (tables.words("english") | tables.words("preposition") | {"no", "nor"}) - tables.words("image")


def _is_part(text: str, concept: _Named) -> bool:
    """Whether every word of a text, small ones aside, is one that only the concept has."""
    words = [word.text for word in words_of(text) if word.text not in _small()]
    return bool(words) and all(not _forms(word).isdisjoint(concept.own) for word in words)


def _verb(signs: Collection[bool]) -> str:
    return "excludes" if True in signs else "wants"


def _words_of_leaves(tree: Query) -> Iterator[frozenset[str]]:
    return (_forms(leaf.text) for leaf, _ in leaves(tree))


def _signs(tree: Query, words: frozenset[str]) -> frozenset[bool]:
    """The signs of the leaves that have one of the words."""
    return frozenset(negated for leaf, negated in leaves(tree) if not _forms(leaf.text).isdisjoint(words))


@lru_cache(maxsize=4096)
def _forms(text: str) -> frozenset[str]:
    """The base forms of the words of a text; words for people have all of theirs in common."""
    forms = {form for word in words_of(text) for form in base_forms(word.text)}
    return frozenset(forms if forms.isdisjoint(PEOPLE) else forms | PEOPLE)


def _between(tree: Query, one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """The operators between leaves with words of `one` and those with words of `other`."""
    return operators_between(
        tree,
        lambda leaf: not _forms(leaf.text).isdisjoint(one),
        lambda leaf: not _forms(leaf.text).isdisjoint(other),
    )


def _mean_the_same(read: Query, tree: Query, named: Sequence[_Named]) -> bool | None:
    """Whether two trees hold for the same images; None where their concepts are not one to one, or too many to try."""
    meant = {text: text for text in concepts(read)}
    for text in concepts(tree):
        met = [concept.text for concept in named if not _forms(text).isdisjoint(concept.own)]
        if len(met) != 1 or len(named) > _MANY:
            return None
        meant[text] = met[0]
    images = (
        {concept.text for concept, shown in zip(named, row, strict=True) if shown}
        for row in product((False, True), repeat=len(named))
    )
    return all(_holds(read, shown, meant) == _holds(tree, shown, meant) for shown in images)


def _holds(tree: Query, shown: Collection[str], meant: Mapping[str, str]) -> bool:
    match tree:
        case Concept(text):
            return meant[text] in shown
        case Not(child):
            return not _holds(child, shown, meant)
        case Or(children):
            return any(_holds(child, shown, meant) for child in children)
        case _:
            return all(_holds(child, shown, meant) for child in tree.children)
