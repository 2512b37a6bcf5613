"""What the English layer tells besides the tree: affirmed text, places, notes, and whether it is sure."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lcse_plugins import Concept, GrammarParser, canonical, from_flat, parse
from lcse_plugins.errors import QueryError, QueryTooComplex
from lcse_plugins.parsing.english.lexicon import lexicon
from lcse_plugins.parsing.prompt import load_prompt
from lcse_plugins.query import MAX_TEXT, format_query, is_constrained
from tests.parsing.gold import wrong_sign


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a park without dogs but with children", '"park" AND NOT "dogs" AND "children"'),
        ("either a bus or a truck, but no car", '("bus" OR "truck") AND NOT "car"'),
        ("an umbrella and no person, or a raincoat", '("umbrella" AND NOT "person") OR "raincoat"'),
        ("not both a dog and a cat", 'NOT "dog" OR NOT "cat"'),
        ("neither cats, dogs nor birds", 'NOT "cats" AND NOT "dogs" AND NOT "birds"'),
        ("laptop-less scene", 'NOT "laptop"'),
        ("a man without a shirt in a park", '"man in a park" AND NOT "shirt"'),
        ("a room without pictures on the wall", '"room" AND NOT "pictures on the wall"'),
        ("a cat or a dog on a sofa", '"cat on a sofa" OR "dog on a sofa"'),
        ("no animals except dogs", 'NOT "animals" AND "dogs"'),
        ("all animals but dogs", '"all animals" AND NOT "dogs"'),
        ("playground with nobody in it", '"playground" AND NOT "people"'),
        ("I don´t want dogs", 'NOT "dogs"'),
        ("a sky with no clouds and a rainbow", '"sky" AND NOT "clouds" AND "rainbow"'),
        ("a photo of (a dog or a cat) and no person", '("dog" OR "cat") AND NOT "person"'),
        ("show me (a dog and no cat) or (a bird)", '("dog" AND NOT "cat") OR "bird"'),
        ("a dog (brown) and no cat", '"dog (brown)" AND NOT "cat"'),
        ("a dog or ((a cat))", '"dog" OR "cat"'),
        ("a dog ((brown)) and no cat", '"dog ((brown))" AND NOT "cat"'),
        ("a cup :( and no cat", '"cup :(" AND NOT "cat"'),
    ],
)
def test_reads(text: str, tree: str) -> None:
    assert format_query(canonical(parse(text))) == tree


@pytest.mark.parametrize(
    "text",
    [
        "a dog chasing a cat",
        "a man and a woman riding bikes down a street",
        "no smoking sign",
        "a black and white photo of a clock",
        "no fewer than 3 dogs",
        "trees on both sides of the road",
        "the dog is not missing",
        "un perro y un gato, no hay otro",
        "犬と猫",
        "beach, sunset, palm trees",
    ],
)
def test_descriptions_state_no_logic(text: str) -> None:
    assert not is_constrained(parse(text))


def test_another_language_comes_through_as_written() -> None:
    assert parse("Der Hund, ohne Leine, und die Katze!") == Concept("Der Hund, ohne Leine, und die Katze!")


@pytest.mark.parametrize(
    ("text", "affirmative"),
    [
        ("a beach without people", "beach"),
        ("no dogs", None),
        ("a dog and a cat but no bird", "dog and cat"),
        ("show me a dog and a cat", "show me a dog and a cat"),
    ],
)
def test_affirmative_text(text: str, affirmative: str | None) -> None:
    assert parse.read(text).affirmative == affirmative


def test_every_concept_has_its_place() -> None:
    text = "Show me a red car, but no tall people."
    spans = parse.read(text).spans
    assert {concept: text[slice(*span)] for concept, span in spans.items()} == {
        "red car": "red car",
        "tall people": "tall people",
    }


def test_a_contradiction_is_noted() -> None:
    assert parse.read("a dog and no dog").notes == ("contradiction: dog and not dog",)


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("a dog", True),
        ("a dog but no cat", True),
        ("A man and a woman riding bikes down a street.", True),
        ("no smoking sign", True),
        ("cats or dogs without people", False),
        ("rarely seen cars", False),
        ("a house unless it is red", False),
        ("un perro y un gato, no hay otro", False),
        ("ein Hund ohne Leine", True),
        ("a treeless hill", False),
        ("hatless man", False),
        ("a carless street and no people", False),
        ("a seamless texture", True),
        ("a homeless man with a wireless mouse", True),
        ("a stainless steel sink and no cup", True),
        ("a park, more or less", True),
    ],
)
def test_knows_when_it_is_not_sure(text: str, sure: bool) -> None:
    assert GrammarParser().is_sure(text) is sure
    assert GrammarParser().is_sure(parse.read(text)) is sure


@pytest.mark.parametrize(
    ("text", "tree", "note"),
    [
        ("(a cup and no cat", '"cup" AND NOT "cat"', "unread: '(' is never closed"),
        ("a cup) and no cat", '"cup" AND NOT "cat"', "unread: ')' closes nothing"),
        ("cup and not (cat or dog", '"cup" AND NOT "cat" AND NOT "dog"', "unread: '(' is never closed"),
        ("a (red car) and no (dog", '"red car" AND NOT "dog"', "unread: '(' is never closed"),
        ("a dog (brown", '"dog brown"', "unread: '(' is never closed"),
    ],
)
def test_a_parenthesis_without_a_partner_is_left_out_and_noted(text: str, tree: str, note: str) -> None:
    reading = parse.read(text)
    assert (format_query(canonical(reading.query)), reading.notes) == (tree, (note,))
    assert not parse.is_sure(reading)


def test_the_wording_of_notes_says_nothing_about_certainty() -> None:
    reading = parse.read("cats or dogs without people")
    assert not parse.is_sure(replace(reading, notes=()))
    assert parse.is_sure(replace(parse.read("a dog"), notes=("unread: nothing",)))


def test_what_the_model_is_taught_otherwise_is_not_sure() -> None:
    taught = [
        example.query
        for example in load_prompt().examples
        if is_constrained(example.tree) != is_constrained(parse(example.query))
        or wrong_sign(example.tree, parse(example.query))
    ]
    assert "a treeless hill" in taught
    assert [text for text in taught if parse.is_sure(text)] == []


def test_an_ambiguous_query_says_how_it_was_read() -> None:
    (note,) = parse.read("cats or dogs without people").notes
    assert note == 'ambiguous: read as ("cats" OR "dogs") AND NOT "people"'


@pytest.mark.parametrize(
    ("text", "error"), [("", QueryError), (" \n\t", QueryError), ("x" * (MAX_TEXT + 1), QueryTooComplex)]
)
def test_unusable_text(text: str, error: type[QueryError]) -> None:
    with pytest.raises(error):
        parse(text)


def test_not_a_text() -> None:
    with pytest.raises(QueryError, match="not int"):
        parse(3)  # type: ignore[arg-type]


def test_the_parser_is_light_to_import() -> None:
    code = (
        "import sys; from lcse_plugins import parse; parse('a dog but no cat');"
        "print(sorted({'numpy', 'lark', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_tables_hold_no_entry_that_cannot_match() -> None:
    for name, entries in lexicon().tables.items():
        if name in ("spelling", "contraction"):
            continue
        assert len(entries) == len(set(entries)), (
            f"[{name}] repeats {sorted({e for e in entries if entries.count(e) > 1})}"
        )
        for entry in entries:
            assert entry == entry.lower(), f"[{name}] {entry}"
            assert "n't" not in entry, f"[{name}] {entry}: open the contraction"


# ------------------------------------------------------------------------------------- on shared data


def test_benchmark_captions(shared_data: Path) -> None:
    rows = [json.loads(line) for line in (shared_data / "factor_bench_sample.jsonl").read_text("utf-8").splitlines()]
    missed = [row["caption"] for row in rows if canonical(parse(row["caption"])) != canonical(from_flat(
        {"concepts": row["concepts"], "operator": row["operator"]}))]  # fmt: skip
    assert len(missed) <= 0.01 * len(rows), missed


def test_few_photo_captions_are_read_as_constrained(shared_data: Path) -> None:
    photos = (shared_data / "photos" / "photos.jsonl").read_text("utf-8").splitlines()
    captions = [caption for line in photos for caption in json.loads(line)["captions"]]
    constrained = [caption for caption in captions if is_constrained(parse(caption))]
    assert 0 < len(constrained) < 0.015 * len(captions)
