"""Is each concept wanted or excluded as the cues of its query have it?

A negated concept has a cue that can reach it; one that a cue excludes in every reading, as a "no" right in front of it
or the ending of `treeless` does, is negated; and no cue is left without anything it could have excluded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

from lcse_plugins.parsing.english.lexicon import lexicon
from lcse_plugins.parsing.grounding.exclusion import RARE, Cue, cues_of
from lcse_plugins.parsing.grounding.placing import ARTICLES, Place, places_of, words_of
from lcse_plugins.query import Concept, Query, leaves

__all__ = ["is_led_to", "unused_cues", "wrong_signs"]

_FILLERS = ARTICLES | {"any", "one", "single", "some", "visible", "other"}
"""What may stand between a cue and what it leads to."""
_APART = frozenset({"and", "or", "nor", "but"})
_RIGHT_BEHIND = frozenset({"no", "without", "neither", "nor", "rare leading"})
"""Cues that exclude what they lead to."""
_MAY_JOIN = frozenset({"rare ahead"})
"""Cues that need not exclude anything: `besides a cat, a dog`."""


@dataclass(frozen=True)
class _Said:
    """The words and cues of a query, and where its `but` and `whose` begin."""

    text: str
    words: tuple[Place, ...]
    cues: tuple[Cue, ...]
    buts: tuple[int, ...]
    owners: tuple[int, ...]

    def places(self, leaf: Concept) -> list[list[Place]]:
        """The words of the concept, once for every place they may be read from."""
        return _places(leaf.text, self.text)

    def between(self, start: int, end: int) -> list[str]:
        """The words between two places."""
        low, high = (bisect_left(self.words, place, key=attrgetter("start")) for place in (start, end))
        return [word.text for word in self.words[low:high]]

    def joins(self, start: int, end: int) -> bool:
        """Whether an `and` or the like stands between two places."""
        return not _APART.isdisjoint(self.between(start, end))

    def parts(self, start: int, end: int) -> bool:
        """Whether it does, or a comma."""
        return self.joins(start, end) or any(mark in self.text[start:end] for mark in ",;.")


@lru_cache(maxsize=64)
def _places(concept: str, text: str) -> list[list[Place]]:
    words = words_of(text)
    return [[words[at] for at in place] for place in places_of(concept, words)]


@lru_cache(maxsize=256)
def _said(text: str) -> _Said:
    words, cues = words_of(text), tuple(sorted(cues_of(text), key=lambda cue: cue.start))
    buts = (word.start for word in words if word.text == "but" and not any(c.start <= word.start < c.end for c in cues))
    return _Said(text, words, cues, tuple(buts), tuple(word.start for word in words if word.text == "whose"))


def wrong_signs(tree: Query, text: str) -> Iterator[str]:
    """Concepts of the canonical tree that are negated without a cue, or wanted in spite of one, as sentences."""
    said = _said(text)
    excluded = {leaf for leaf, negated in leaves(tree) if negated}
    for leaf, negated in leaves(tree):
        if negated and not any(_negates(cue, leaf, said) for cue in said.cues):
            yield f"nothing in the query negates {leaf.text!r}"
        elif leaf not in excluded and _must_be_negated(leaf, said):
            yield f"the query excludes {leaf.text!r}, the tree wants it"
    if len(said.cues) == 1:
        yield from _excluded_on_both_sides(tree, said.cues[0], said)


def _excluded_on_both_sides(tree: Query, cue: Cue, said: _Said) -> Iterator[str]:
    """What stands in front of the only cue, where that excludes what stands behind it: `girl` of `girl not tall`."""
    front: dict[bool, list[str]] = {True: [], False: []}
    behind = False
    for leaf, negated in leaves(tree):
        for found in said.places(leaf)[:1]:
            if found[0].start < cue.start:
                front[negated].append(leaf.text)
            behind |= negated and cue.end <= found[0].start and not said.parts(cue.end, found[0].start)
    if behind and not front[False]:
        yield from (f"the query wants {text!r}, the tree excludes it" for text in front[True])


def unused_cues(tree: Query, text: str) -> Iterator[str]:
    """Cues that negate no concept of the canonical tree, stand in none, and cannot undo each other, as sentences."""
    said = _said(text)
    for at, cue in enumerate(said.cues):
        used = any(_uses(cue, leaf, said, negated=negated) for leaf, negated in leaves(tree))
        if not used and cue.tag not in _MAY_JOIN and not _may_be_undone(at, said):
            yield f"{_words_of_cue(cue, said)!r} in the query excludes something, the tree nothing that it could mean"


def _uses(cue: Cue, leaf: Concept, said: _Said, *, negated: bool) -> bool:
    """Whether the cue negates the concept, or is itself a part of it: `cloudless sky`, `sign that says no`."""
    if negated and _negates(cue, leaf, said):
        return True
    return bool(cues_of(leaf.text)) and any(
        word.start < cue.end and cue.start < word.end for place in said.places(leaf) for word in place
    )


def _may_be_undone(at: int, said: _Said) -> bool:
    """Whether the cue may undo, or be undone by, its neighbours or a `but`: `nothing in it but a chair`."""
    if said.cues[at].tag in RARE and any(said.cues[at].end <= but for but in said.buts):
        return True
    return not all(_is_apart(other, said) for other in (at, at + 1) if other < len(said.cues))


def _words_of_cue(cue: Cue, said: _Said) -> str:
    """The cue as it is written, with the word that it ends."""
    start = min((word.start for word in said.words if word.start <= cue.start < word.end), default=cue.start)
    return said.text[start : cue.end].strip()


# --------------------------------------------------------------------------------------- may it be negated?


def _negates(cue: Cue, leaf: Concept, said: _Said) -> bool:
    """Whether the cue reaches the concept somewhere; none reaches over a `but`."""
    for found in said.places(leaf):
        low, high = sorted((found[0].start, cue.start))
        if _reaches(cue, leaf, found, said) and not any(low < but < high for but in said.buts):
            return True
    return False


def _reaches(cue: Cue, leaf: Concept, found: list[Place], said: _Said) -> bool:
    start, end = found[0].start, found[-1].end
    if cue.tag == "privative":  # only what it is glued to
        return cue.start <= end <= cue.end and all(own.tag != "privative" for own in cues_of(leaf.text))
    if cue.after and cue.start < start:  # it may take the concept's verb with it: `not wearing` a hat
        return cue.end <= end
    if cue.after and cue.end <= found[-1].start:  # it may part the concept: a woman who is `not` smiling
        return not any(cue.start <= word.start < cue.end for word in found)
    if any(end <= owner < cue.start for owner in said.owners):  # "a bike whose chain is missing"
        return False
    return cue.before and start < cue.start and end <= cue.end


# -------------------------------------------------------------------------------------- must it be negated?


def is_led_to(leaf: Concept, text: str) -> bool:
    """Whether a "no", "without" or the like stands right in front of the concept, and excludes it for sure."""
    said = _said(text)
    return any(_is_led_to(found, said) for found in said.places(leaf))


def _must_be_negated(leaf: Concept, said: _Said) -> bool:
    """Whether a cue excludes the concept wherever it stands."""
    places = said.places(leaf)
    return bool(places) and all(_is_led_to(found, said) or _is_glued(leaf, found, said) for found in places)


def _is_led_to(found: list[Place], said: _Said) -> bool:
    start, end = found[0].start, found[-1].end
    if any(cue.tag in RARE and start < cue.start < end for cue in said.cues):  # "no people unless they wear hats"
        return False
    return any(_leads_to(cue, start, said) and _excludes_for_sure(at, said) for at, cue in enumerate(said.cues))


def _is_glued(leaf: Concept, found: list[Place], said: _Said) -> bool:
    """Whether the concept is the `tree` of `treeless`, or the `dogs` of `dogs no, cats yes`."""
    glued = (at for at, cue in enumerate(said.cues) if cue.tag == "privative" and _reaches(cue, leaf, found, said))
    return any(_is_apart(at, said) for at in glued)


def _leads_to(cue: Cue, start: int, said: _Said) -> bool:
    """Whether what begins at `start` stands right behind the cue, articles and the like aside."""
    return cue.tag in _RIGHT_BEHIND and cue.end <= start and _FILLERS.issuperset(said.between(cue.end, start))


def _excludes_for_sure(at: int, said: _Said) -> bool:
    """Whether a cue excludes what it leads to in every reading of the query."""
    cue = said.cues[at]
    if cue.tag in ("neither", "nor"):  # "none of the dogs is black" may be read as dogs that are not
        return any(other.tag == "nor" for other in said.cues)
    if _is_exception(cue, said):  # "other than the dog, no animals", "an empty room except for a chair"
        bare = not lexicon().words("bare").isdisjoint(said.between(0, cue.start))
        return _is_apart(at, said) and not bare and at + 1 == len(said.cues)
    return _is_apart(at, said)


def _is_apart(at: int, said: _Said) -> bool:
    """Whether this cue and the one in front of it, if any, cannot undo each other, as in `no picture without a dog`.

    Something is joined between them, or a comma stands there and this is no exception.
    """
    if at == 0:
        return True
    start, end = said.cues[at - 1].end, said.cues[at].start
    return (said.joins if _is_exception(said.cues[at], said) else said.parts)(start, end)


def _is_exception(cue: Cue, said: _Said) -> bool:
    """Whether the cue takes something out of what another one excludes."""
    first = said.between(cue.start, cue.end)[:1]
    return first in (["unless"], ["without"]) or not lexicon().words("exception").isdisjoint(first)
