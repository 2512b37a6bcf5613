"""The tables of `english.txt`, and the search for their phrases in a row of words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from string import ascii_lowercase
from typing import Any

__all__ = ["Lexicon", "PhraseTable", "lexicon"]

_END = object()


class PhraseTable:
    """Phrases by their words; `match` finds the longest one that starts at a place.

    A word `{do}` in a phrase stands for any word of the class `do`.
    """

    def __init__(self, classes: dict[str, tuple[str, ...]]) -> None:
        self._classes = classes
        self._root: dict[Any, Any] = {}
        self._firsts: set[str] = set()

    def add(self, phrases: Iterable[str], tag: str, *, backwards: bool = False) -> PhraseTable:
        """Enter phrases under a tag; of equal phrases the first entered stays."""
        for phrase in phrases:
            words = phrase.split()[:: -1 if backwards else 1]
            self._firsts.update(self._members(words[0]) if words[0][0] == "{" else words[:1])
            node = self._root
            for word in words:
                node = node.setdefault(word, {})
            node.setdefault(_END, tag)
        return self

    def _members(self, name: str) -> list[str]:
        return [word for word, names in self._classes.items() if name in names]

    def match(self, words: Sequence[str], start: int = 0) -> tuple[int, str]:
        """The length and tag of the longest phrase at `start`; `(0, "")` when there is none."""
        if start >= len(words) or words[start] not in self._firsts:
            return 0, ""
        states, best = [self._root], (0, "")
        for position in range(start, len(words)):
            word = words[position]
            states = [
                node for state in states for edge in (word, *self._classes.get(word, ())) if (node := state.get(edge))
            ]
            if not states:
                break
            for state in states:
                if _END in state:
                    best = (position + 1 - start, state[_END])
                    break
        return best

    def stands_in(self, words: Sequence[str]) -> bool:
        """Whether one of the phrases stands anywhere in a row of words."""
        return any(self.match(words, start)[0] for start in range(len(words)))


class Lexicon:
    """All tables: sets of words by `words(name)`, phrases by the `PhraseTable` attributes."""

    def __init__(self, text: str) -> None:
        self.tables = _read_tables(text)
        self.spelling = _spelling(self.tables)
        self.contraction = _pairs(self.tables["contraction"])
        self._sets = {name: frozenset(entries) for name, entries in self.tables.items()}
        classes: dict[str, tuple[str, ...]] = {}
        for name in ("do", "be", "show", "image", "use", "wake"):
            for word in self.tables[name]:
                classes[word] = (*classes.get(word, ()), "{" + name + "}")
        self._classes = classes
        self.cues = self.phrases("leeway", "fixed", "emphatic", "exclusive", "exactly one", "not both", "neither",
                                 "nobody", "no", "without", "not", "nor", "both", "either", "but", "or",
                                 "and")  # fmt: skip
        self.imperative = self.phrases("imperative")
        self.absent = self.phrases("absent")
        self.of_picture = self.phrases("of the picture")
        self.leading = self.phrases("emphatic", "request", "opening", "determiner")
        self.requests = self.phrases("request")
        self.names = self.phrases("request in names")
        self.link = self.phrases("link")
        self.framing = self.phrases("request", "opening")
        self.closing = self.phrases("closing", backwards=True)
        self.closing_absent = self.phrases("closing", "closing absent", backwards=True)
        self.permission = self.phrases("permission", backwards=True)
        self.dangling = self.phrases("dangling", backwards=True)

    def words(self, name: str) -> frozenset[str]:
        """The entries of a table of single words."""
        return self._sets[name]

    def phrases(self, *names: str, backwards: bool = False) -> PhraseTable:
        """One table of phrases out of the named ones, each phrase under the name it came from."""
        table = PhraseTable(self._classes)
        for name in names:
            table.add(self.tables[name], name, backwards=backwards)
        return table


def _read_tables(text: str) -> dict[str, tuple[str, ...]]:
    tables: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if heading := re.fullmatch(r"\[(.+)\]", line):
            name = heading[1]
            tables[name] = []
        elif line:
            tables[name] += [entry.strip() for entry in line.split(",") if entry.strip()]
    return {name: tuple(entries) for name, entries in tables.items()}


def _pairs(entries: Iterable[str]) -> dict[str, str]:
    return {left.strip(): right.strip() for left, _, right in (entry.partition("=") for entry in entries)}


def _spelling(tables: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What people type, and what they mean: the table of spellings, and a slip in a long cue."""
    spelling = _pairs(tables["spelling"])
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


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The tables, read once."""
    return Lexicon(files("lcse_plugins.parsing.english").joinpath("english.txt").read_text("utf-8"))
