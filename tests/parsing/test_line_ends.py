"""The end of a line: it ends a clause, unless it merely wraps one."""

from __future__ import annotations

import pytest

from lcse_plugins import canonical, parse
from lcse_plugins.query import ordered
from tests.parsing.gold import read_tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("no dogs\ncats", "!dogs & cats"),
        ("no dogs\r\ncats", "!dogs & cats"),
        ("no dogs\u2028cats", "!dogs & cats"),
        ("dog\nno leash\nno collar\nball", "dog & !leash & !collar & ball"),
        ("a man\nwithout a hat\na woman", "man & !hat & woman"),
        ("no text\nno logo\nwhite background", "!text & !logo & white background"),
        ("dress\nred or blue\nno sleeves", "dress & (red | blue) & !sleeves"),
        ("a dog (no leash)\nball", "dog & !leash & ball"),
        ("\n beach \n\n no people \n", "beach & !people"),
    ],
)
def test_ends_a_clause(text: str, tree: str) -> None:
    reading = parse.read(text)
    assert ordered(canonical(reading.query)) == ordered(canonical(read_tree(tree)))
    assert parse.is_sure(reading)


@pytest.mark.parametrize(
    "text",
    [
        "no dogs or\ncats",
        "no dogs\nor cats",
        "a beach without\npeople",
        "a dog on\na sofa and no cat",
        "beach,\nno people",
        "beach.\nNo people.",
        "a dog on\na sofa",
        "beach\nsunset",
    ],
)
def test_wraps_a_clause(text: str) -> None:
    assert ordered(canonical(parse(text))) == ordered(canonical(parse(text.replace("\n", " "))))


def test_lists_below_a_heading() -> None:
    assert parse("beach\nexclude:\npeople\nboats") == parse("beach, exclude: people, boats")


def test_concepts_keep_their_places() -> None:
    text = "no dogs\ncats"
    assert {concept: text[slice(*span)] for concept, span in parse.read(text).spans.items()} == {
        "dogs": "dogs",
        "cats": "cats",
    }
