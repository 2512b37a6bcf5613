"""The lists of queries: how many are read as a careful person reads them, and how honest the parser is."""

from __future__ import annotations

from functools import cache

import pytest

from lcse_plugins import canonical, parse
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import ordered
from tests.parsing.gold import Example, judge, read_examples, read_tree, table

FLOORS = {
    "queries.txt": 0.97,
    "families.txt": 0.97,
    "asked.txt": 0.95,
    "cues.txt": 0.90,
    "misread.txt": 0.85,
    "afresh.txt": 0.80,
    "doubtful.txt": 0.0,
}
"""The lists, and the share of each that is read exactly; `doubtful.txt` may stay plain."""


@cache
def readings(name: str) -> tuple[list[Example], dict[str, Parse]]:
    examples = read_examples(name)
    return examples, {example.text: parse.read(example.text) for example in examples}


def judged(name: str, *verdicts: str, sure: bool | None = None) -> list[str]:
    examples, read = readings(name)
    return [
        example.text
        for example in examples
        if judge(example, read[example.text]) in verdicts and sure in (None, read[example.text].sure)
    ]


@pytest.mark.parametrize(("name", "floor"), FLOORS.items())
def test_most_are_read_exactly(name: str, floor: float) -> None:
    examples, read = readings(name)
    missed = judged(name, "harmless", "wrong structure", "wrong sign")
    assert len(missed) <= (1 - floor) * len(examples), (table(examples, read), missed)


@pytest.mark.parametrize("name", FLOORS)
def test_no_sign_is_wrong_while_sure_and_few_in_all(name: str) -> None:
    assert judged(name, "wrong sign", sure=True) == []
    assert len(judged(name, "wrong sign")) <= 0.015 * len(readings(name)[0])


@pytest.mark.parametrize("name", FLOORS)
def test_few_structures_are_wrong_while_sure(name: str) -> None:
    assert len(judged(name, "wrong structure", sure=True)) <= max(1, 0.01 * len(readings(name)[0]))


def test_the_lists_are_long_and_hold_each_query_once() -> None:
    for name in FLOORS:
        texts = [example.text for example in read_examples(name)]
        assert len(texts) == len(set(texts)) > 100, name
    assert len(read_examples("families.txt")) >= 300


@pytest.mark.parametrize("name", FLOORS)
def test_what_is_not_sure_says_why(name: str) -> None:
    assert [text for text, read in readings(name)[1].items() if not read.sure and not read.notes] == []


@pytest.mark.parametrize(
    ("gold", "got", "verdict"),
    [
        ("dog & !cat", "dog & !cat", "right"),
        ("dog & !cat", "the dog & !Cat", "right"),
        ("dog & !cat", "dog no cat", "harmless"),
        ("dog & !cat & !bird", "dog & !cat", "harmless"),
        ("dog & !cat", "cat & !dog", "wrong sign"),
        ("dog no cat", "dog & !cat", "wrong structure"),
        ("dog | cat", "dog & cat", "wrong structure"),
        ("man & !hat", "man & !hat smiling", "wrong structure"),
        ("man smiling & !hat", "man & !hat smiling", "wrong sign"),
    ],
)
def test_the_judge(gold: str, got: str, verdict: str) -> None:
    parsed = Parse(text="", query=read_tree(got))
    assert judge(Example("", (read_tree(gold),), ""), parsed) == verdict


ENDINGS = {
    "": "park",
    " and no lamps": "park & !lamps",
    ", no lamps": "park & !lamps",
    ", and no lamps": "park & !lamps",
    " but no lamps": "park & !lamps",
    ", without a lamp": "park & !lamp",
    " and without lamps": "park & !lamps",
    " and lamps are absent": "park & !lamps",
    " and I don't want lamps": "park & !lamps",
    " and no lamps or benches": "park & !lamps & !benches",
    " and neither lamps nor benches": "park & !lamps & !benches",
    ", no lamps, at night": "park at night & !lamps",
    ", no lamps or benches, with a fountain": "park & !lamps & !benches & fountain",
    " at night": "park at night",
    ", at night": "park at night",
    ", with a fountain": "park & fountain",
    " but with a fountain": "park & fountain",
    " and with a fountain": "park & fountain",
    ", just a fountain": "park & fountain",
    " only fountains": "park & fountains",
}
"""What may follow a negated list in a park, and how all but the list is read."""


@pytest.mark.parametrize("things", [("dogs", "cats"), ("dogs", "cats", "birds")], ids=" ".join)
@pytest.mark.parametrize("opening", ["with no", "without", "without any", "that has no", ", no", "with neither"])
def test_a_negated_list_ends_where_it_should(opening: str, things: tuple[str, ...]) -> None:
    *others, last = things
    row = f"{', '.join(others)} {'nor' if opening.endswith('neither') else 'or'} {last}"
    missed = [
        text
        for ending, rest in ENDINGS.items()
        for text in [f"a park {opening} {row}{ending}".replace(" ,", ",")]
        if ordered(canonical(parse(text))) != ordered(canonical(read_tree(" & !".join([rest, *things]))))
    ]
    assert missed == []
