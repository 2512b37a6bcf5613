"""The tables of `english.txt`, and the search for their phrases in a row of words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import product
from string import ascii_lowercase

__all__ = ["CUES", "Lexicon", "Phrases", "lexicon", "match"]

Phrases = Mapping[str, tuple[Sequence[int], Mapping[tuple[str, ...], str]]]
"""By their first word: how long the phrases are, the longest first, and the table that each comes from."""

CUES = (
    "fixed", "leeway", "emphatic", "exclusive", "exactly one", "not both", "neither", "except list", "nobody",
    "absent", "no", "without", "not", "order", "nor", "both", "either", "but", "or", "and", "only",
)  # fmt: skip
"""The tables of cues; of equal phrases the one in the first table counts."""


@dataclass(frozen=True)
class Lexicon:
    """What the grammar knows about words: single words by table, and phrases by their first word.

    `closing`, `closing_absent`, `permission` and `dangling` are searched from the end of a text: their words stand
    backwards.
    """

    tables: Mapping[str, tuple[str, ...]]
    sets: Mapping[str, frozenset[str]]
    spelling: Mapping[str, str]
    cues: Phrases
    leading: Phrases
    links: Phrases
    frames: Phrases
    names: Phrases
    closing: Phrases
    closing_absent: Phrases
    permission: Phrases
    dangling: Phrases

    def has(self, word: str, *names: str) -> bool:
        """Whether a word stands in one of these tables."""
        return any(word in self.sets[name] for name in names)


def match(phrases: Phrases, words: Sequence[str], at: int = 0) -> tuple[int, str]:
    """The length and table of the longest phrase at a place; `(0, "")` when there is none."""
    if at < len(words):
        lengths, found = phrases.get(words[at], ((), {}))
        for length in lengths:
            if at + length <= len(words) and (table := found.get(tuple(words[at : at + length]))):
                return length, table
    return 0, ""


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The tables, read once."""
    tables = _read_tables(files("lcse_plugins.parsing.english").joinpath("english.txt").read_text("utf-8"))
    return Lexicon(
        tables=tables,
        sets={name: frozenset(entries) for name, entries in tables.items()},
        spelling=_spelling(tables),
        cues=_phrases(tables, *CUES),
        leading=_phrases(tables, "request", "opening", "determiner"),
        links=_phrases(tables, "link"),
        frames=_phrases(tables, "frame"),
        names=_phrases(tables, "request in names"),
        closing=_phrases(tables, "closing", backwards=True),
        closing_absent=_phrases(tables, "closing", "closing absent", backwards=True),
        permission=_phrases(tables, "permission", backwards=True),
        dangling=_phrases(tables, "dangling", backwards=True),
    )


def _phrases(tables: Mapping[str, Sequence[str]], *names: str, backwards: bool = False) -> Phrases:
    found: dict[tuple[str, ...], str] = {}
    for name in names:
        for entry in tables[name]:
            choices = [tables[word[1:-1]] if word[0] == "{" else (word,) for word in entry.split()]
            for chosen in product(*choices):
                words = tuple(" ".join(chosen).split())
                found.setdefault(words[::-1] if backwards else words, name)
    index: dict[str, dict[tuple[str, ...], str]] = {}
    for words, name in found.items():
        index.setdefault(words[0], {})[words] = name
    return {first: (sorted({*map(len, entry)}, reverse=True), entry) for first, entry in index.items()}


def _read_tables(text: str) -> dict[str, tuple[str, ...]]:
    tables: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if heading := re.match(r"\[(.+)\]", line):
            name, line = heading[1], line[heading.end() :]
            tables[name] = []
        if line:
            tables[name] += [entry.strip() for entry in line.split(",") if entry.strip()]
    return {name: tuple(entries) for name, entries in tables.items()}


def _spelling(tables: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What people type, and what they mean: the table of spellings, and a slip in a long cue."""
    pairs = (entry.partition("=") for entry in tables["spelling"])
    spelling = {left.strip(): right.strip() for left, _, right in pairs}
    own = {*tables["repaired"], *tables["no slip"]}
    slips = {slip: spelling.get(word, word) for word in tables["repaired"] for slip in _typed(word) if slip not in own}
    return slips | spelling


def _typed(word: str) -> Iterator[str]:
    """The texts that are one letter, or two neighbours in the wrong order, away from a word."""
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        yield head + tail[1:]
        yield head + tail[1:2] + tail[:1] + tail[2:]
        for letter in ascii_lowercase + "-":
            yield head + letter + tail
            yield head + letter + tail[1:]
