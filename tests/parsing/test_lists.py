"""Queries that were once misread, their neighbours, and those where the parser must say that it is not sure."""

from __future__ import annotations

import pytest

from lcse_plugins import canonical, parse
from lcse_plugins.parsing.grounding.belief import ungrounded
from lcse_plugins.query import Concept, Not, Or, Query, ordered
from tests.parsing.gold import DOUBTFUL, MISREAD, Example, read_examples, read_tree

C = Concept


@pytest.mark.parametrize(
    ("example", "sure"),
    [(example, path == MISREAD) for path in (MISREAD, DOUBTFUL) for example in read_examples(path)],
    ids=lambda value: getattr(value, "text", ""),
)
def test_is_read_exactly(example: Example, sure: bool) -> None:
    reading = parse.read(example.text)
    assert ordered(canonical(reading.query)) == ordered(canonical(example.gold))
    assert parse.is_sure(reading) is sure


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
    ", and a fountain": "park & fountain",
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


LEFT_TO_THE_MODEL: list[tuple[str, Query]] = [
    ("desserts besides cake", C("desserts") & ~C("cake")),
    ("besides cake, any dessert", C("dessert") & ~C("cake")),
    ("a lamp besides a sofa", C("lamp") & C("sofa")),
    ("a cat xor a dog", (C("cat") | C("dog")) & (~C("cat") | ~C("dog"))),
    ("a cat xor a dog", (C("cat") & ~C("dog")) | (C("dog") & ~C("cat"))),
    ("no people unless they wear hats", Or((Not(C("people")), C("people wear hats")))),
    ("no people unless they wear hats", Or((Not(C("people")), C("hats")))),
    ("a house unless it is red", C("house") & ~C("red")),
]
"""Cues that the grammar leaves unread, and a right answer to each."""


@pytest.mark.parametrize(("text", "query"), LEFT_TO_THE_MODEL)
def test_a_right_answer_to_an_unread_cue_is_believed(text: str, query: Query) -> None:
    assert not parse.is_sure(text)
    assert ungrounded(query, text) == ()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("desserts besides cake", C("cake") & ~C("desserts")),
        ("a cat xor a dog", C("bird") | C("dog")),
        ("no people unless they wear hats", C("people") & C("hats")),
        ("no dog and no cat", C("dog cat")),
    ],
)
def test_a_wrong_answer_is_not(text: str, query: Query) -> None:
    assert ungrounded(query, text) != ()
