"""The cues by which a query excludes something, and which way each of them reaches.

They are the grammar's own tables and a few rare cues more, which the grammar leaves to a language model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lcse_plugins.parsing.english.lexicon import PhraseTable, lexicon
from lcse_plugins.parsing.english.words import Word, split_words

__all__ = ["Cue", "cues_of", "privative"]

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
_OPENED = {"nobody's": "nobody", "one's": "one", "none's": "none", "nothing's": "nothing"}
"""Where a cue may be short for itself and `is`."""
_ENDS = frozenset(",.;!?")
_SIGN = re.compile(r"(?<![^\s(])[-−!](?=[\w\"“(])")
"""`-dog` and `!dog`, as the explicit language has them."""


@dataclass(frozen=True)
class Cue:
    """A negation cue between two characters of the query, and what it reaches."""

    start: int
    end: int
    tag: str
    before: bool
    after: bool


@lru_cache(maxsize=256)
def cues_of(text: str) -> tuple[Cue, ...]:
    """The cues of a query, those of the explicit language last."""
    row = split_words(text, lexicon())
    lows = [_OPENED.get(word.low, word.low) for word in row]
    hiding, naming = _tables()
    hidden = {i for at in range(len(row)) for i in range(at, at + hiding.match(lows, at)[0])}
    cues: list[Cue] = []
    at = 0
    while at < len(row):
        if named := _refused(row, at):
            cues.append(Cue(named.end, row[at].end, "privative", before=True, after=False))
            at += 1
            continue
        length, tag = naming.match(lows, at)
        if length and hidden.isdisjoint(range(at, at + length)) and (tag != "nor" or cues or "nor" in lows[at]):
            cues.append(Cue(row[at].start, row[at + length - 1].end, tag, *_REACH[tag]))
            at += length
            continue
        if stem := privative(lows[at]):
            cues.append(Cue(row[at].start + len(stem), row[at].end, "privative", before=True, after=False))
        elif _is_free_of_the_last(row, at):
            cues.append(Cue(row[at - 1].end, row[at].end, "privative", before=True, after=False))
        at += 1
    cues += [Cue(*match.span(), "no", before=False, after=True) for match in _SIGN.finditer(text)]
    return tuple(cues)


def _refused(row: Sequence[Word], at: int) -> Word | None:
    """The last word of what a `no` behind it refuses: `dogs` in `dogs no, cats yes`, in `dogs? no`."""
    after = row[at + 1].low if at + 1 < len(row) else "."
    if row[at].low != "no" or after not in _ENDS or any(word.low.isdigit() for word in row[at + 2 : at + 3]):
        return None
    return next((word for word in reversed(row[:at]) if word.kind == "word"), None)


def privative(word: str) -> str:
    """`dog` of `dog-free`, `tree` of `treeless`; nothing of `wireless` and `sugar-free`.

    A reader may take `treeless` apart; the grammar, which cannot tell it from `seamless`, keeps it whole.
    """
    for ending in ("-free", "-less", "less"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2:
            return "" if f"{stem}-{ending.strip('-')}" in lexicon().words("lexical") else stem
    return ""


def _is_free_of_the_last(row: Sequence[Word], at: int) -> bool:
    """Whether this is the `free` of `a car free street`."""
    around = row[max(0, at - 1) : at + 2]
    if row[at].low != "free" or len(around) < 3 or any(word.kind != "word" for word in around):
        return False
    small = lexicon().words("english") | lexicon().words("preposition") | lexicon().words("adjective")
    return small.isdisjoint((around[0].low, around[2].low)) and bool(privative(f"{around[0].low}-free"))


@lru_cache(maxsize=1)
def _tables() -> tuple[PhraseTable, PhraseTable]:
    """Phrases that hide a cue, and the cues."""
    tables = lexicon().tables | _RARE
    ahead = {phrase for tag, reach in _REACH.items() if reach == (False, True) for phrase in tables[tag]}
    either_side = (*tables["not"], *(phrase for phrase in tables["absent"] if phrase in ahead))
    cues = lexicon().phrases().add(either_side, "not").add(_RARE["rare"], "rare")  # of equal phrases the first stays
    for tag in _REACH:
        cues.add(tables[tag], tag)
    return lexicon().phrases("emphatic", "fixed"), cues
