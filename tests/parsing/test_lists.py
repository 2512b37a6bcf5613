"""The lists of queries: how many are read as a careful person reads them, and how honest the parser is."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from lcse_plugins import canonical, parse
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import ordered
from tests.parsing.gold import Example, judge, read_examples, read_tree

FLOORS = {
    "queries.txt": 0.98,
    "families.txt": 0.98,
    "asked.txt": 0.97,
    "cues.txt": 0.90,
    "misread.txt": 0.86,
    "afresh.txt": 0.80,
    "doubtful.txt": 0.0,
}
"""The lists, and the share of each that is read exactly; `doubtful.txt` may stay plain."""


@cache
def judged(name: str) -> tuple[tuple[str, str, Parse], ...]:
    return tuple((example.text, judge(example, read), read) for example in read_examples(name)
                 for read in [parse.read(example.text)])  # fmt: skip


@pytest.mark.parametrize(("name", "floor"), FLOORS.items())
def test_most_are_read_exactly(name: str, floor: float) -> None:
    missed = [text for text, verdict, _ in judged(name) if verdict != "right"]
    table = Counter((verdict, read.sure) for _, verdict, read in judged(name))
    assert len(missed) <= (1 - floor) * len(judged(name)), (table, missed)


@pytest.mark.parametrize("name", FLOORS)
def test_the_parser_is_honest(name: str) -> None:
    """No sign is wrong while it is sure, and few in all; few structures are; what is not sure says why."""
    wrong = [(text, read.sure) for text, verdict, read in judged(name) if verdict == "wrong sign"]
    assert [text for text, sure in wrong if sure] == []
    assert len(wrong) <= 0.015 * len(judged(name))
    shapes = [text for text, verdict, read in judged(name) if verdict == "wrong structure" and read.sure]
    assert len(shapes) <= max(1, 0.01 * len(judged(name))), shapes
    assert [text for text, _, read in judged(name) if not read.sure and not read.notes] == []


@pytest.mark.parametrize(
    ("gold", "got", "verdict"),
    [
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
    assert judge(Example("", (read_tree(gold),), ""), Parse(text="", query=read_tree(got))) == verdict


ENDINGS = {
    "": "park",
    " and no lamps": "park & !lamps",
    ", no lamps": "park & !lamps",
    ", and no lamps": "park & !lamps",
    " but no lamps": "park & !lamps",
    ", without a lamp": "park & !lamp",
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
