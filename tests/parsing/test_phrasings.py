"""Every way of saying it with every pair of things: no phrasing depends on the words put into it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from lcse_plugins import Concept, Query, canonical, parse
from lcse_plugins.query import ordered

THINGS = {
    "a dog": "dog",
    "dogs": "dogs",
    "a red car": "red car",
    "an umbrella": "umbrella",
    "a parking meter": "parking meter",
    "a stop sign": "stop sign",
    "sports ball": "sports ball",
    "a swimming pool": "swimming pool",
    "the cat": "cat",
    "some palm trees": "palm trees",
}
Meaning = Callable[[Concept, Concept], Query]
PHRASINGS: dict[str, tuple[Meaning, tuple[str, ...]]] = {
    "a and not b": (
        lambda a, b: a & ~b,
        (
            "{a} but no {no_b}", "{a} but not {b}", "{a} without {b}", "{a} and no {no_b}", "{a} and not {b}",
            "{a}, no {no_b}", "{a}, not {b}", "{a}, but no {no_b}", "{a}, without {b}", "{a} with no {no_b}",
            "{a} w/o {b}", "{a} excluding {b}", "{a} except {b}", "{a} minus {b}", "{a} that doesn't have {b}",
            "{a} that dont have {b}", "{a} lacking {b}", "{a} but without {b}", "{a} but there is no {no_b}",
            "{a} where there are no {no_b}", "{a} instead of {b}", "{a} rather than {b}", "{a} but {b} is absent",
            "{a} is present but {b} is not", "{a}. No {no_b}.", "{a} (no {no_b})", "no {no_b} but {a}",
            "{a} devoid of {b}", "{a} not {b}", "{a} no {no_b}", "{a} sans {b}", "show me {a} but no {no_b}, please",
            "could you find pictures of {a} without {b}?", "I want {a}, but I don't want {b}",
        ),
    ),
    "neither": (
        lambda a, b: ~a & ~b,
        (
            "neither {a} nor {b}", "no {no_a} and no {no_b}", "no {no_a} or {no_b}", "without {a} or {b}",
            "without {a} and without {b}", "no {no_a}, no {no_b}", "not {a} or {b}", "none of {a} or {b}",
            "no {no_a} nor {no_b}", "not {a}, not {b}", "without any {no_a} or {no_b}", "I don't want {no_a} or {no_b}",
            "photos with neither {a} nor {b}", "neither {a} nor {b} is present",
        ),
    ),
    "or": (
        lambda a, b: a | b,
        (
            "{a} or {b}", "either {a} or {b}", "{a} and/or {b}", "{a}, or {b}", "at least one of {a} and {b}",
            "images of {a} or {b}", "one of {a} or {b}",
        ),
    ),
    "and": (
        lambda a, b: a & b,
        (
            "both {a} and {b}", "{a} and {b}", "{a} as well as {b}", "{a} together with {b}", "{a} along with {b}",
            "{a} plus {b}", "not only {a} but also {b}", "there is {a} and {b}", "{a} alongside {b}",
            "images with {a} and {b}", "{a} and {b} are present",
        ),
    ),
    "not both": (
        lambda a, b: ~a | ~b,
        ("not both {a} and {b}", "either no {no_a} or no {no_b}", "no {no_a} or no {no_b}"),
    ),
}  # fmt: skip


def bare(thing: str) -> str:
    """The thing as it stands after `no`."""
    return thing.removeprefix("an ").removeprefix("a ").removeprefix("the ").removeprefix("some ")


@pytest.mark.parametrize(
    ("meaning", "phrasing"), [(name, phrasing) for name, (_, phrasings) in PHRASINGS.items() for phrasing in phrasings]
)
def test_is_read_whatever_the_things_are(meaning: str, phrasing: str) -> None:
    tree = PHRASINGS[meaning][0]
    missed = []
    for a, b in permutations(THINGS, 2):
        text = phrasing.format(a=a, b=b, no_a=bare(a), no_b=bare(b))
        if ordered(canonical(parse(text))) != ordered(canonical(tree(Concept(THINGS[a]), Concept(THINGS[b])))):
            missed.append(text)
    assert missed == []
