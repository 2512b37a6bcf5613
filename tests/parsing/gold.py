"""The lists of queries and their compact trees, and the judge: how right is a reading?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import And, Concept, Not, Or, Plain, Query, canonical, is_constrained, leaves, ordered

HERE = Path(__file__).parent
_TOKEN = re.compile(r"`([^`]*)`|([&|;!()])|([^&|;!()`]+)")


class Example(NamedTuple):
    """A query, the ways in which a careful person reads it, and the family it belongs to."""

    text: str
    golds: tuple[Query, ...]
    family: str


def read_examples(name: str) -> list[Example]:
    """The examples of a list: `query => tree`, or `query => tree => other tree` where both are right."""
    found: list[Example] = []
    family = ""
    for line in (HERE / name).read_text("utf-8").splitlines():
        if line.startswith("# -- "):
            family = line[5:]
        elif line.strip() and not line.startswith("# "):
            text, *trees = line.split(" => ")
            found.append(Example(text.replace("\\n", "\n"), tuple(map(read_tree, trees)), family))
    return found


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


# ------------------------------------------------------------------------------------------------- the judge

VERDICTS = ("right", "harmless", "wrong structure", "wrong sign")


def judge(example: Example, parse: Parse) -> str:
    """How right a reading is, by the gold tree that it comes closest to."""
    return min((_verdict(gold, parse.query) for gold in example.golds), key=VERDICTS.index)


def _verdict(gold: Query, got: Query) -> str:
    if _same(gold) == _same(got):
        return "right"
    if not is_constrained(got):
        return "right" if not is_constrained(gold) else "harmless"
    if wrong_sign(gold, got):
        return "wrong sign"
    wanted, unwanted = _by_sign(gold)
    got_wanted, got_unwanted = _by_sign(got)
    less = got_wanted <= wanted and got_unwanted <= unwanted and _operators(got) <= _operators(gold)
    return "harmless" if less and is_constrained(gold) else "wrong structure"


def _same(query: Query) -> Query:
    """The tree with its texts in lower case, without punctuation, articles and `there is`."""
    match query:
        case Concept(text):
            words = [word for word in _WORD.findall(text.lower()) if word not in ("a", "an", "the")]
            return Concept(" ".join(words) or text)
        case Not(child):
            return ordered(canonical(Not(_same(child))))
        case And(children) | Or(children) | Plain(children):
            return ordered(canonical(type(query)(tuple(map(_same, children)))))


def _operators(query: Query) -> set[type]:
    match query:
        case And(children) | Or(children):
            return {type(query)}.union(*map(_operators, children))
        case Plain(children):
            return set().union(*map(_operators, children))
        case _:
            return set()


def wrong_sign(gold: Query, got: Query) -> set[str]:
    """Words that one tree only affirms and the other only negates: the costly kind of mistake."""
    affirmed, negated = _by_sign(gold)
    other_affirmed, other_negated = _by_sign(got)
    return ((affirmed - negated) & (other_negated - other_affirmed)) | (
        (negated - affirmed) & (other_affirmed - other_negated)
    )


def _by_sign(query: Query) -> tuple[set[str], set[str]]:
    """The words of what is affirmed and of what is negated; a concept with a cue in it says neither."""
    affirmed: set[str] = set()
    negated: set[str] = set()
    for concept, is_negated in leaves(canonical(query)):
        words = set(_WORD.findall(concept.text.lower()))
        if not words & _CUES:
            (negated if is_negated else affirmed).update(words)
    return affirmed - _SMALL, negated - _SMALL


_WORD = re.compile(r"[^\W_]+")
_SMALL = set("a an the of in on at and or is are it with to some any for by from its their his her that who".split())
_CUES = {"no", "not", "without"}
