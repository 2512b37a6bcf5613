"""Reading the lists of queries (`queries.txt`, `misread.txt`, `doubtful.txt`, `afresh.txt`) and their compact trees."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from lcse_plugins.query import And, Concept, Not, Or, Plain, Query, canonical, leaves

QUERIES = Path(__file__).with_name("queries.txt")
MISREAD = Path(__file__).with_name("misread.txt")
DOUBTFUL = Path(__file__).with_name("doubtful.txt")
AFRESH = Path(__file__).with_name("afresh.txt")
_TOKEN = re.compile(r"`([^`]*)`|([&|;!()])|([^&|;!()`]+)")


class Example(NamedTuple):
    """A query, and how a careful person reads it."""

    text: str
    gold: Query

    @property
    def set_aside(self) -> bool:
        """Whether it belongs to the half that nobody looks at while tuning."""
        return hashlib.sha256(self.text.encode()).digest()[0] % 2 == 1


def read_examples(path: Path = QUERIES) -> list[Example]:
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip() and not line.startswith("# ")]
    return [Example(text, read_tree(tree)) for text, tree in (line.split(" => ") for line in lines)]


def read_tree(text: str) -> Query:
    """`(cat | dog) & !people` as a tree: `!` before `&` before `|` before `;`."""
    tokens: list[tuple[str, str]] = []
    for quoted, mark, words in _TOKEN.findall(text):
        if mark:
            tokens.append((mark, ""))
        elif quoted or words.strip():
            tokens.append(("concept", quoted or words.strip()))
    at = 0

    def peek() -> str:
        return tokens[at][0] if at < len(tokens) else ""

    def group(level: int) -> Query:
        nonlocal at
        if level == 3:
            return unary()
        parts = [group(level + 1)]
        while peek() == ";|&"[level]:
            at += 1
            parts.append(group(level + 1))
        return parts[0] if len(parts) == 1 else (Plain, Or, And)[level](tuple(parts))

    def unary() -> Query:
        nonlocal at
        kind, value = tokens[at]
        at += 1
        if kind == "!":
            return Not(unary())
        if kind == "(":
            inner = group(0)
            assert peek() == ")", text
            at += 1
            return inner
        assert kind == "concept", text
        return Concept(value)

    tree = group(0)
    assert at == len(tokens), text
    return tree


def wrong_sign(gold: Query, got: Query) -> set[str]:
    """Words that one tree only affirms and the other only negates: the costly kind of mistake."""
    affirmed, negated = _by_sign(gold)
    other_affirmed, other_negated = _by_sign(got)
    return ((affirmed - negated) & (other_negated - other_affirmed)) | (
        (negated - affirmed) & (other_affirmed - other_negated)
    )


def _by_sign(query: Query) -> tuple[set[str], set[str]]:
    affirmed: set[str] = set()
    negated: set[str] = set()
    for concept, is_negated in leaves(canonical(query)):
        (negated if is_negated else affirmed).update(_CONTENT.findall(concept.text.lower()))
    return affirmed - _SMALL, negated - _SMALL


_CONTENT = re.compile(r"[^\W_]{2,}")
_SMALL = set("an the of in on at and or is are it with to no not some any any for".split())
