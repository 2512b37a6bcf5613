"""What benchmarks ask: a few English phrasings for each operator, their tree, and which images answer them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.errors import InvalidOption
from lcse_plugins.query import Concept, Query

__all__ = ["OPERATORS", "PHRASINGS", "article", "class_pairs", "operator_answers", "operator_tree", "phrase"]

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

_PLURAL = frozenset({"scissors", "skis", "people", "glasses"})
_UNCOUNTED = frozenset({"broccoli"})


def article(noun: str) -> str:
    """The noun with its article: `an umbrella`, `a car`, `skis`."""
    if noun.rpartition(" ")[2].lower() in _PLURAL | _UNCOUNTED:
        return noun
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"


def phrase(pattern: str, a: str, b: str = "") -> str:
    """A phrasing filled with one or two concepts."""
    return pattern.format(a=a, b=b, an_a=article(a), a_b=article(b))


def operator_tree(operator: str, a: str, b: str = "") -> Query:
    """The tree an operator's phrasings mean."""
    if operator == "NOT":
        return ~Concept(a)
    one, other = Concept(a), Concept(b)
    trees: dict[str, Query] = {"AND": one & other, "OR": one | other, "BUT_NOT": one & ~other, "NEITHER": ~one & ~other}
    return trees[operator]


def operator_answers(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Operator → (n,) which images answer its phrasings, given which of them show a and which b."""
    return {"NOT": ~a, "AND": a & b, "OR": a | b, "BUT_NOT": a & ~b, "NEITHER": ~(a | b)}


def class_pairs(
    images: LabelledImages, fits: Callable[[NDArray[np.bool_], NDArray[np.bool_]], bool], most: int, rng: Generator
) -> list[tuple[int, int]]:
    """At most so many pairs of different classes, drawn at random from those of which `fits(a, b)` is true.

    Raises:
        InvalidOption: there is none.
    """
    shown = images.labels.T
    pairs = itertools.permutations(range(len(images.classes)), 2)
    fitting = [(a, b) for a, b in pairs if fits(shown[a], shown[b])]
    if not fitting:
        raise InvalidOption("no two classes have enough images of every kind (both, one, none); label more images")
    return [fitting[i] for i in sorted(rng.permutation(len(fitting))[:most])]
