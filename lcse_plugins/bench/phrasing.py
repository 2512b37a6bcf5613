"""What benchmarks ask: a few English phrasings for each operator, with the right articles, their tree and answers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.calibrating.operator_tests import holds
from lcse_plugins.query import And, Concept, Not, Or, Query

__all__ = [
    "AFFIRMED",
    "OPERATORS",
    "PHRASINGS",
    "article",
    "determiner",
    "operator_answers",
    "operator_tree",
    "phrase",
]

OPERATORS = ("NOT", "AND", "OR", "BUT_NOT", "NEITHER")

PHRASINGS: Mapping[str, tuple[str, ...]] = {
    "NOT": ("no {a}", "without {a}", "there is no {a}", "no {a} in the picture", "devoid of {a}", "lacking {a}"),
    "AND": (
        "{an_a} and {a_b}",
        "both {an_a} and {a_b}",
        "{an_a} together with {a_b}",
        "{an_a} as well as {a_b}",
        "{a} alongside {b}",
    ),
    "OR": (
        "{an_a} or {a_b}",
        "either {an_a} or {a_b}",
        "{a} or {b}",
        "either {a} or {b}",
        "a photo of {an_a} or {a_b}",
    ),
    "BUT_NOT": (
        "{an_a} but no {b}",
        "{an_a} without {a_b}",
        "{an_a} and no {b}",
        "{an_a} but not {a_b}",
        "{a} with no {b}",
    ),
    "NEITHER": (
        "neither {a} nor {b}",
        "neither {an_a} nor {a_b}",
        "no {a} and no {b}",
        "without {an_a} and without {a_b}",
        "no {a} or {b}",
    ),
}
"""Five phrasings and more of each operator over concepts a and b."""

AFFIRMED = ("{an_a}", "there is {an_a}", "with {an_a}", "containing {a}", "{a} present", "{an_a} in the picture")
"""The same for one concept, affirmed."""

_PLURAL = frozenset({"scissors", "skis", "people", "glasses"})
_UNCOUNTED = frozenset({"broccoli"})


def article(noun: str) -> str:
    """The noun with its article: `an umbrella`, `a car`, `skis`."""
    if noun.rpartition(" ")[2].lower() in _PLURAL | _UNCOUNTED:
        return noun
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"


def determiner(noun: str) -> str:
    """The same with `some skis`, for a list in which `no` would else be heard to go on: `no car and some skis`."""
    return f"some {noun}" if article(noun) == noun else article(noun)


def phrase(pattern: str, a: str, b: str = "") -> str:
    """A phrasing filled with one or two concepts."""
    return pattern.format(a=a, b=b, an_a=article(a), a_b=article(b))


def operator_tree(operator: str, a: str, b: str = "") -> Query:
    """The tree an operator's phrasings mean."""
    first = Concept(a)
    if operator == "NOT":
        return Not(first)
    second = Concept(b)
    trees: dict[str, Query] = {
        "AND": And((first, second)),
        "OR": Or((first, second)),
        "BUT_NOT": And((first, Not(second))),
        "NEITHER": And((Not(first), Not(second))),
    }
    return trees[operator]


def operator_answers(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Operator → (n,) which images answer its phrasings, given which of them show a and which b."""
    return {operator: holds(operator_tree(operator, "a", "b"), {"a": a, "b": b}) for operator in OPERATORS}
