"""Is a tree grounded in the words of its query? What a language model replies is believed only if it is.

Checked: every word of a concept stands in the query (up to inflection, and not more often than there); a negated
concept has a cue that can reach it; a concept right behind a "no" or "without" is negated, and where the query
excludes something the tree does; `and` and `or` have a word that joins or offers a choice; there are not more concepts
than the query can name. So whatever a query orders the model to say, a tree can only be made of the query's own words
and its own logic.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from lcse_plugins.errors import QueryError
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.inflection import same_word
from lcse_plugins.parsing.lexicon import PhraseTable, lexicon
from lcse_plugins.parsing.words import split_words
from lcse_plugins.query import And, Concept, Not, Or, Plain, Query, canonical, concepts, leaves

__all__ = ["locate", "ungrounded"]

_ARTICLES = frozenset({"a", "an", "the"})
_FILLERS = _ARTICLES | {"any", "one", "single", "some", "visible", "other"}
_PEOPLE = frozenset({"people", "person", "anyone", "anybody", "human"})
"""What a query with `nobody` may be said to exclude."""

_REACH = {
    "no": (False, True), "without": (False, True), "neither": (False, True), "nobody": (False, True),
    "imperative": (False, True), "nor": (False, True), "absent": (True, False), "not": (True, True),
    "not both": (True, True), "exclusive": (True, True), "exactly one": (True, True),
    "rare": (True, True), "rare ahead": (False, True),
}  # fmt: skip
"""The tables of cues, the grammar's and the rare ones: do they negate what stands before them, what stands after?"""
_RARE = {
    "rare": ("hardly", "barely", "scarcely", "rarely", "seldom", "none", "nothing", "nowhere", "unlike", "unless",
             "other than", "xor"),
    "rare ahead": ("besides",),
}  # fmt: skip
"""Cues that the grammar leaves to the language model."""
_JOINS = frozenset(
    "and both with plus together alongside along well also too but yet while whereas although though including "
    "includes containing contains having has featuring all each besides accompanied".split()
)
_APART = frozenset({"and", "or", "nor", "but"})
_OFFERS = frozenset("or either any nor alternatively otherwise else one xor unless whichever whatever".split())
_JOIN_MARKS, _OFFER_MARKS = frozenset("&+,;:.()∧"), frozenset("/|∨")

_SIGN = re.compile(r"(?<![^\s(])[-!](?=[\w\"“(])")
"""`-dog` and `!dog`, as the explicit language has them."""
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:['’][^\W_]+)*|[^\w\s]")


@dataclass(frozen=True)
class _Word:
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class _Cue:
    """A negation cue between two characters of the query, and what it reaches."""

    start: int
    end: int
    tag: str
    before: bool
    after: bool


def ungrounded(query: Query, text: str) -> tuple[str, ...]:
    """What in `query` is not grounded in `text`, as sentences; empty when all is."""
    cues = _cues(text)
    words = _words(text, cues)
    tree = canonical(query)
    found = [leaf for leaf, _ in leaves(query)]
    if len(found) > max(4, 2 * len(words)):
        return (f"{len(found)} concepts for a query of {len(words)} words",)
    problems: dict[str, None] = {}
    for leaf, negated in leaves(tree):
        if invented := _invented(leaf.text, words, text):
            problems[f"{invented} in concept {leaf.text!r} is not in the query"] = None
        elif negated and not _can_be_negated(leaf, words, cues):
            problems[f"nothing in the query negates {leaf.text!r}"] = None
        elif not negated and _must_be_negated(leaf, words, cues, tree):
            problems[f"the query excludes {leaf.text!r}, the tree wants it"] = None
    if not any(negated for _, negated in leaves(tree)) and len(cues) == 1 and _excludes(text):
        problems["the query excludes something, the tree nothing"] = None
    marks, lows = set(text), {word.text for word in words}
    joins = bool(lows & _JOINS or marks & _JOIN_MARKS or _joins(text))
    if _holds(tree, Or) and not (lows & _OFFERS or marks & _OFFER_MARKS or (cues and joins)):
        problems["no word of the query offers a choice, so 'or' has no ground"] = None
    if _holds(tree, And) and not (cues or joins):
        problems["no word of the query joins or excludes things, so 'and' has no ground"] = None
    return tuple(problems)


def locate(query: Query, text: str) -> dict[str, tuple[int, int]]:
    """Where each concept stands in `text`, as half-open character ranges; the tightest place if there are several."""
    words = _words(text, _cues(text))
    spans: dict[str, tuple[int, int]] = {}
    for concept in concepts(query):
        places = [(words[place[-1]].end - words[place[0]].start, place) for place in _places(concept, words)]
        if places:
            _, place = min(places)
            spans[concept] = words[place[0]].start, words[place[-1]].end
    return spans


def _words(text: str, cues: tuple[_Cue, ...] = ()) -> tuple[_Word, ...]:
    """The words of a text, and for each `nobody` the people it speaks of."""
    found = [
        _Word(_folded(match[0]), *match.span())
        for match in _TOKEN.finditer(text)
        if match[0][0].isalnum() or unicodedata.category(match[0][0]) == "So"
    ]
    found += [_Word(word, cue.end, cue.end) for cue in cues if cue.tag == "nobody" for word in sorted(_PEOPLE)]
    return tuple(sorted(found, key=lambda word: word.start))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


def _stands_for(word: str, wanted: str) -> bool:
    """Whether a word of the query carries the wanted one: the same, inflected, or as `treeless` carries `tree`."""
    return same_word(word, wanted) or bool((stem := _privative(word)) and same_word(stem, wanted))


def _invented(concept: str, words: tuple[_Word, ...], text: str) -> str | None:
    """The first word or sign of the concept that the query does not have."""
    free = [word.text for word in words]
    for wanted in (word.text for word in _words(concept)):
        match = next((i for i, word in enumerate(free) if _stands_for(word, wanted)), None)
        if match is not None:
            del free[match]
        elif wanted not in _ARTICLES:
            return repr(wanted)
    for sign in concept:
        if not sign.isalnum() and not sign.isspace() and sign not in text and sign not in "-'’":
            return repr(sign)
    return None if _places(concept, words) or _words(concept) else repr(concept)


def _places(concept: str, words: tuple[_Word, ...]) -> list[tuple[int, ...]]:
    """Positions of the concept's words in the query, once for every place they may be read from."""
    wanted = [word.text for word in _words(concept)]
    wanted = [word for word in wanted if word not in _ARTICLES] or wanted
    places = []
    for start, first in enumerate(words):
        if not wanted or not _stands_for(first.text, wanted[0]):
            continue
        place = [start]
        for word in wanted[1:]:
            following = (i for i in range(place[-1] + 1, len(words)) if _stands_for(words[i].text, word))
            if (position := next(following, None)) is None:
                break
            place.append(position)
        else:
            places.append(tuple(place))
    if not places and wanted:  # in another order
        used: list[int] = []
        for word in wanted:
            free = (i for i, other in enumerate(words) if i not in used and _stands_for(other.text, word))
            if (position := next(free, None)) is None:
                return []
            used.append(position)
        places.append(tuple(sorted(used)))
    return places


@lru_cache(maxsize=1)
def _tables() -> tuple[PhraseTable, PhraseTable, PhraseTable]:
    """Phrases that hide a cue, the cues, and phrases that join."""
    tables = lexicon().tables | _RARE
    ahead = {phrase for tag, reach in _REACH.items() if reach == (False, True) for phrase in tables[tag]}
    either_side = (*tables["not"], *(phrase for phrase in tables["absent"] if phrase in ahead))
    cues = lexicon().phrases().add(either_side, "not").add(_RARE["rare"], "rare")  # of equal phrases the first stays
    for tag in _REACH:
        cues.add(tables[tag], tag)
    return lexicon().phrases("emphatic", "fixed"), cues, lexicon().phrases("and", "but", "both")


@lru_cache(maxsize=256)
def _cues(text: str) -> tuple[_Cue, ...]:
    row = split_words(text, lexicon())
    lows = [word.low for word in row]
    hiding, naming, _ = _tables()
    hidden = {i for at in range(len(row)) for i in range(at, at + hiding.match(lows, at)[0])}
    cues: list[_Cue] = []
    at = 0
    while at < len(row):
        length, tag = naming.match(lows, at)
        if length and hidden.isdisjoint(range(at, at + length)) and (tag != "nor" or cues or "nor" in lows[at]):
            cues.append(_Cue(row[at].start, row[at + length - 1].end, tag, *_REACH[tag]))
            at += length
            continue
        if stem := _privative(lows[at]):
            cues.append(_Cue(row[at].start + len(stem), row[at].end, "privative", before=True, after=False))
        at += 1
    cues += [_Cue(*match.span(), "no", before=False, after=True) for match in _SIGN.finditer(text)]
    return tuple(cues)


def _privative(word: str) -> str:
    """`dog` of `dog-free`, `tree` of `treeless`; nothing of `wireless` and `sugar-free`."""
    for ending in ("-free", "-less", "less"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2:
            return "" if f"{stem}-{ending.strip('-')}" in lexicon().words("lexical") else stem
    return ""


def _can_be_negated(leaf: Concept, words: tuple[_Word, ...], cues: tuple[_Cue, ...]) -> bool:
    for place in _places(leaf.text, words):
        start, end = words[place[0]].start, words[place[-1]].end
        for cue in cues:
            if cue.tag == "privative":
                if cue.start <= end <= cue.end:  # only what it is glued to
                    return True
            elif (cue.after and cue.start < start and cue.end <= end) or (
                cue.before and start < cue.start and end <= cue.end
            ):  # a cue may take the concept's verb with it: `not wearing` a hat
                return True
    return False


def _must_be_negated(leaf: Concept, words: tuple[_Word, ...], cues: tuple[_Cue, ...], tree: Query) -> bool:
    """Whether the concept stands only right behind a `no` or `without`, and is nowhere negated."""
    places = _places(leaf.text, words)
    if len(places) != 1 or Not(leaf) in _nodes(tree):
        return False
    start, end = words[places[0][0]].start, words[places[0][-1]].end
    if any(cue.tag == "rare" and start < cue.start < end for cue in cues):  # "no people unless they wear hats"
        return False
    for before, cue in zip((None, *cues), cues, strict=False):
        between = [word.text for word in words if cue.end <= word.start < start]
        if cue.tag in ("no", "without") and cue.end <= start and _FILLERS.issuperset(between):
            # a second cue may undo the first (`no picture without a dog`), unless something is joined between them
            return before is None or any(before.end <= w.start < cue.start and w.text in _APART for w in words)
    return False


def _excludes(text: str) -> bool:
    """Whether the grammar surely reads an exclusion: it knows the `no` of a sign and of Spanish for what they are."""
    try:
        reading = parse.read(text)
    except QueryError:
        return False
    return parse.is_sure(reading) and any(negated for _, negated in leaves(canonical(reading.query)))


def _joins(text: str) -> bool:
    """Whether a phrase of the grammar's tables of joining words stands in the text."""
    lows = [word.low for word in split_words(text, lexicon())]
    return any(_tables()[2].match(lows, at)[0] for at in range(len(lows)))


def _nodes(tree: Query) -> Iterator[Query]:
    yield tree
    if isinstance(tree, And | Or | Plain):
        for child in tree.children:
            yield from _nodes(child)


def _holds(tree: Query, kind: type[And | Or]) -> bool:
    return any(isinstance(node, kind) for node in _nodes(tree))
