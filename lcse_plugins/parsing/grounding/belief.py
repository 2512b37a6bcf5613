"""Is a tree grounded in the words of its query? What a language model replies is believed only if it is.

Checked: every word of a concept stands in the query (up to inflection, and not more often than there); a negated
concept has a cue that can reach it; a concept right behind a "no", "without" or "nor" is negated; `and` and `or` have a
word that joins or offers a choice; there are not more concepts than the query can name; and what the offline grammar
is sure of is not contradicted (`agreement`). So whatever a query orders the model to say, a tree can only be made of
the query's own words and its own logic. A query in another language is held to less (`languages`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from lcse_plugins.parsing.english.lexicon import PhraseTable, lexicon
from lcse_plugins.parsing.english.words import split_words
from lcse_plugins.parsing.grounding.agreement import disagreements, is_grammars
from lcse_plugins.parsing.grounding.exclusion import Cue, cues_of
from lcse_plugins.parsing.grounding.languages import NO_CHOICE, is_foreign, unfounded
from lcse_plugins.parsing.grounding.placing import (
    ARTICLES,
    Place,
    folded,
    places_of,
    stands_for,
    wanted_words,
    words_of,
)
from lcse_plugins.query import And, Concept, Not, Or, Plain, Query, affirms_nothing, canonical, concepts, leaves

__all__ = ["locate", "ungrounded"]

_FILLERS = ARTICLES | {"any", "one", "single", "some", "visible", "other"}
_JOINS = frozenset(
    "and both with plus together alongside along well also too but yet while whereas although though including "
    "includes containing contains having has featuring all each besides accompanied".split()
)
_APART = frozenset({"and", "or", "nor", "but"})
_OFFERS = frozenset("or either any nor alternatively otherwise else one xor unless whichever whatever".split())
_JOIN_MARKS, _OFFER_MARKS = frozenset("&+,;:.()∧"), frozenset("/|∨")
_RIGHT_BEHIND = frozenset({"no", "without", "neither", "nor"})
"""Cues that exclude what they lead to."""
_ONE_OF_TWO = frozenset({"exclusive", "not both", "exactly one"})
"""Cues that offer a choice."""


def ungrounded(query: Query, text: str) -> tuple[str, ...]:
    """What in `query` is not grounded in `text`, as sentences; empty when all is."""
    words = words_of(text)
    tree = canonical(query)
    found = [leaf for leaf, _ in leaves(query)]
    if len(found) > max(4, 2 * len(words)):
        return (f"{len(found)} concepts for a query of {len(words)} words",)
    if is_grammars(tree, text):
        return ()
    problems = [
        f"{invented} in concept {leaf.text!r} is not in the query"
        for leaf in found
        if (invented := _invented(leaf.text, words, text))
    ]
    if not problems and is_foreign(text):
        problems += unfounded(tree, text)
    elif not problems:
        problems += [*_wrong_signs(tree, text, words), *_wrong_operators(tree, text, words)]
        problems += disagreements(tree, text)
    return tuple(dict.fromkeys(problems))


def locate(query: Query, text: str) -> dict[str, tuple[int, int]]:
    """Where each concept stands in `text`, as half-open character ranges; the tightest place if there are several."""
    words = words_of(text)
    spans: dict[str, tuple[int, int]] = {}
    for concept in concepts(query):
        places = [(words[place[-1]].end - words[place[0]].start, place) for place in places_of(concept, words)]
        if places:
            _, place = min(places)
            spans[concept] = words[place[0]].start, words[place[-1]].end
    return spans


def _invented(concept: str, words: Sequence[Place], text: str) -> str | None:
    """The first word or mark of the concept that the query does not have."""
    free = [word.text for word in words]
    wanted = wanted_words(concept, words)
    for one in wanted:
        match = next((i for i, word in enumerate(free) if stands_for(word, one)), None)
        if match is not None:
            del free[match]
        elif one not in ARTICLES:
            return repr(one)
    marks = folded(text)
    for mark in folded(concept):
        if not mark.isalnum() and not mark.isspace() and mark not in marks and mark not in "-'":
            return repr(mark)
    return None if wanted else repr(concept)


# -------------------------------------------------------------------------------------------------- signs


def _wrong_signs(tree: Query, text: str, words: Sequence[Place]) -> Iterator[str]:
    cues = cues_of(text)
    turns = [
        word.start for word in words if word.text == "but" and not any(c.start <= word.start < c.end for c in cues)
    ]
    for leaf, negated in leaves(tree):
        if negated and not _can_be_negated(leaf, words, cues, turns):
            yield f"nothing in the query negates {leaf.text!r}"
        elif not negated and _must_be_negated(leaf, words, cues, tree):
            yield f"the query excludes {leaf.text!r}, the tree wants it"


def _can_be_negated(leaf: Concept, words: Sequence[Place], cues: Sequence[Cue], turns: Sequence[int]) -> bool:
    """Whether a cue reaches the concept; none reaches over a `but`, the turns of the query."""
    for place in places_of(leaf.text, words):
        found = [words[at] for at in place]
        for cue in cues:
            low, high = sorted((found[0].start, cue.start))
            if _reaches(cue, found) and not any(low < turn < high for turn in turns):
                return True
    return False


def _reaches(cue: Cue, found: Sequence[Place]) -> bool:
    start, end = found[0].start, found[-1].end
    if cue.tag == "privative":  # only what it is glued to
        return cue.start <= end <= cue.end
    if cue.after and cue.start < start:  # it may take the concept's verb with it: `not wearing` a hat
        return cue.end <= end
    if cue.after and cue.end <= found[-1].start:  # it may part the concept: a woman who is `not` smiling
        return not any(cue.start <= word.start < cue.end for word in found)
    return cue.before and start < cue.start and end <= cue.end


def _must_be_negated(leaf: Concept, words: Sequence[Place], cues: Sequence[Cue], tree: Query) -> bool:
    """Whether the concept stands only right behind a `no`, `without`, `neither` or `nor`, and is nowhere negated."""
    places = places_of(leaf.text, words)
    if len(places) != 1 or Not(leaf) in _nodes(tree):
        return False
    start, end = words[places[0][0]].start, words[places[0][-1]].end
    if any(cue.tag == "rare" and start < cue.start < end for cue in cues):  # "no people unless they wear hats"
        return False
    at = next((at for at, cue in enumerate(cues) if _leads_to(cue, start, words)), None)
    return at is not None and _excludes_for_sure(at, cues, words)


def _leads_to(cue: Cue, start: int, words: Sequence[Place]) -> bool:
    """Whether what begins at `start` stands right behind the cue, articles and the like aside."""
    between = (word.text for word in words if cue.end <= word.start < start)
    return cue.tag in _RIGHT_BEHIND and cue.end <= start and _FILLERS.issuperset(between)


def _excludes_for_sure(at: int, cues: Sequence[Cue], words: Sequence[Place]) -> bool:
    """Whether a cue excludes what it leads to in every reading of the query."""
    if cues[at].tag in ("neither", "nor"):  # "none of the dogs is black" may be read as dogs that are not
        return any(other.tag == "nor" for other in cues)
    if at == 0:
        return True
    # a second cue may undo the first (`no picture without a dog`), unless something is joined between them
    return any(cues[at - 1].end <= word.start < cues[at].start and word.text in _APART for word in words)


# ---------------------------------------------------------------------------------------------- operators


def _wrong_operators(tree: Query, text: str, words: Sequence[Place]) -> Iterator[str]:
    cues = cues_of(text)
    marks, lows = set(folded(text)), {word.text for word in words}
    joins = bool(lows & _JOINS or marks & _JOIN_MARKS or _joins(text))
    offers = bool(lows & _OFFERS or marks & _OFFER_MARKS or any(cue.tag in _ONE_OF_TWO for cue in cues))
    choices = [node for node in _nodes(tree) if isinstance(node, Or)]
    if not offers and not all(cues and joins and affirms_nothing(choice) for choice in choices):
        yield NO_CHOICE
    if not (cues or joins) and any(isinstance(node, And) for node in _nodes(tree)):
        yield "no word of the query joins or excludes things, so 'and' has no ground"


def _joins(text: str) -> bool:
    """Whether a phrase of the grammar's tables of joining words stands in the text."""
    lows = [word.low for word in split_words(text, lexicon())]
    return any(_joining().match(lows, at)[0] for at in range(len(lows)))


@lru_cache(maxsize=1)
def _joining() -> PhraseTable:
    return lexicon().phrases("and", "but", "both")


def _nodes(tree: Query) -> Iterator[Query]:
    yield tree
    if isinstance(tree, And | Or | Plain):
        for child in tree.children:
            yield from _nodes(child)
