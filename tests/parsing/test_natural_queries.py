"""The list of natural queries: how many are read as a careful person reads them."""

from __future__ import annotations

import pytest

from lcse_plugins import canonical, parse
from lcse_plugins.query import ordered
from tests.parsing.gold import AFRESH, Example, read_examples, wrong_sign

EXAMPLES = read_examples()


def halves(*, set_aside: bool) -> list[Example]:
    return [example for example in EXAMPLES if example.set_aside is set_aside]


def test_the_list_is_long_and_split_in_halves() -> None:
    assert len(EXAMPLES) == len({example.text for example in EXAMPLES}) >= 400
    assert 0.4 < len(halves(set_aside=True)) / len(EXAMPLES) < 0.6


@pytest.mark.parametrize(("set_aside", "floor"), [(False, 0.99), (True, 0.95)], ids=["tuned on", "set aside"])
def test_most_are_read_exactly(set_aside: bool, floor: float) -> None:
    examples = halves(set_aside=set_aside)
    missed = [
        example.text
        for example in examples
        if ordered(canonical(parse(example.text))) != ordered(canonical(example.gold))
    ]
    assert len(missed) <= (1 - floor) * len(examples), missed


def test_no_concept_has_the_wrong_sign() -> None:
    found = {e.text: words for e in EXAMPLES if (words := wrong_sign(e.gold, parse(e.text)))}
    assert found == {}


def test_most_that_were_asked_afresh_are_read_exactly() -> None:
    examples = read_examples(AFRESH)
    missed = [e.text for e in examples if ordered(canonical(parse(e.text))) != ordered(canonical(e.gold))]
    assert len(missed) <= 0.08 * len(examples), missed


def test_few_that_were_asked_afresh_are_surely_wrong() -> None:
    found = {e.text for e in read_examples(AFRESH) if wrong_sign(e.gold, parse(e.text)) and parse.is_sure(e.text)}
    assert found <= {
        "I can´t see any ducks",
        "a restaurant where people are not smoking",
        "a sign: no dogs",
        "I'm not a robot checkbox",
    }


def test_wrong_sign_is_seen() -> None:
    gold = next(example.gold for example in EXAMPLES if example.text == "a dog but not a cat")
    assert wrong_sign(gold, parse("a cat but not a dog")) == {"dog", "cat"}
    assert wrong_sign(gold, parse("a dog but not a cat")) == set()
