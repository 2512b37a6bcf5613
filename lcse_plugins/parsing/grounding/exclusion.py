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

__all__ = ["RARE", "Cue", "cues_of", "leaves_open", "privative"]

_REACH = {
    "no": (False, True), "without": (False, True), "neither": (False, True), "nobody": (False, True),
    "imperative": (False, True), "nor": (False, True), "absent": (True, False), "not": (True, True),
    "not both": (True, True), "exclusive": (True, True), "exactly one": (True, True),
    "rare": (True, True), "rare leading": (True, True), "rare ahead": (False, True),
}  # fmt: skip
"""The tables of cues, the grammar's and the rare ones: do they negate what stands before them, what stands after?"""
_RARE = {
    "rare": ("rarely", "seldom", "none", "nowhere", "xor"),
    "rare leading": ("hardly", "barely", "scarcely", "nothing", "unlike", "unless", "other than"),
    "rare ahead": ("besides",),
}  # fmt: skip
RARE = frozenset(_RARE)
"""The tags of cues that the grammar leaves to the language model; those that lead exclude what is right behind them."""
_HARMLESS = (
    "{do} not care what", "{do} not care which", "{do} not care how", "{do} not know", "{do} not remember",
    "why can not", "why could not", "not sure", "no preference", "no rush", "no hurry",
)  # fmt: skip
"""Phrases with a cue that only speak of the person who asks."""
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
        if row[at].low == "no" and _after(row, at) in _ENDS:  # "no, show me dogs", "Chanel No. 5"
            at += 1
            continue
        length, tag = naming.match(lows, at)
        if length and hidden.isdisjoint(range(at, at + length)) and (tag != "nor" or cues or "nor" in lows[at]):
            cues.append(Cue(row[at].start, row[at + length - 1].end, tag, *_REACH[tag]))
            at += length
            continue
        if stem := privative(lows[at]):
            cues.append(Cue(row[at].start + len(stem), row[at].end, "privative", before=True, after=False))
        elif length := _non(row, at):
            cues.append(Cue(row[at].start, row[at].start + length, "rare leading", *_REACH["rare leading"]))
        elif _is_free_of_the_last(row, at):
            cues.append(Cue(row[at - 1].end, row[at].end, "privative", before=True, after=False))
        at += 1
    cues += [Cue(*match.span(), "no", before=False, after=True) for match in _SIGN.finditer(text)]
    return tuple(cues)


def leaves_open(text: str) -> bool:
    """Whether a text has a phrase that leaves a thing open: `people not necessary`."""
    return _opening().stands_in([word.low for word in split_words(text, lexicon())])


def _refused(row: Sequence[Word], at: int) -> Word | None:
    """The last word of what a `no` behind it refuses: `dogs` in `dogs no, cats yes`, in `dogs? no`."""
    if row[at].low != "no" or not _ends_at(row, at):
        return None
    return next((word for word in reversed(row[:at]) if word.kind == "word"), None)


def _ends_at(row: Sequence[Word], at: int) -> bool:
    """Whether a clause ends behind this word, and it is not the `No.` of a number."""
    return _after(row, at) in _ENDS and not any(word.low.isdigit() for word in row[at + 2 : at + 3])


def _after(row: Sequence[Word], at: int) -> str:
    return row[at + 1].low if at + 1 < len(row) else "."


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
    """Whether this is the `free` of `a car free street`, of `a beach, people free`."""
    if row[at].low != "free" or at == 0:
        return False
    around = row[at - 1 : at + 1 if _ends_at(row, at) else at + 2]
    small = lexicon().words("english") | lexicon().words("preposition") | lexicon().words("adjective")
    small -= lexicon().words("image")
    if any(word.kind != "word" or word.low in small for word in (around[0], around[-1])):
        return False
    return around[0].low.isalpha() and not around[0].low.endswith("ing") and bool(privative(f"{around[0].low}-free"))


def _non(row: Sequence[Word], at: int) -> int:
    """The letters of a `non` that excludes: of `non-white walls`, of `shoes non leather`, not of `a non-stick pan`."""
    non, hyphen, kind = row[at].low.partition("-")
    if non != "non" or (kind or _after(row, at)) in lexicon().words("non"):
        return 0
    return len(non + hyphen)


@lru_cache(maxsize=1)
def _tables() -> tuple[PhraseTable, PhraseTable]:
    """Phrases that hide a cue, and the cues."""
    tables = lexicon().tables | _RARE
    ahead = {phrase for tag, reach in _REACH.items() if reach == (False, True) for phrase in tables[tag]}
    either_side = (*tables["not"], *(phrase for phrase in tables["absent"] if phrase in ahead))
    cues = lexicon().phrases().add(either_side, "not")  # of equal phrases the first stays
    for tag, phrases in _RARE.items():
        cues.add(phrases, tag)
    for tag in _REACH:
        cues.add(tables[tag], tag)
    return lexicon().phrases("emphatic", "fixed").add((*_leeway(), *_HARMLESS), "harmless"), cues


@lru_cache(maxsize=1)
def _opening() -> PhraseTable:
    return lexicon().phrases().add(_leeway(), "leeway")


def _leeway() -> list[str]:
    """The grammar's phrases that leave a thing open; `one or no` is a choice, which may exclude."""
    return [phrase for phrase in lexicon().tables["leeway"] if "one" not in phrase.split()]
