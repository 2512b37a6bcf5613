"""What the English layer tells besides the tree: affirmed text, places, notes, and whether it is sure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lcse_plugins import Concept, canonical, parse
from lcse_plugins.errors import QueryError, QueryTooComplex
from lcse_plugins.query import MAX_TEXT, Not, concepts, format_query, from_flat, is_constrained


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


@pytest.mark.parametrize(
    "text",
    ["Show me a red car, but no tall people.", "no tall people\na red car", "input is red car and no tall people",
     "\ninput is a red car, no tall people\n", 'query: "a red car without tall people"',
     "search for images matching a red car with no tall people", "Search query: red car -(tall people)",
     'red car AND NOT "tall people"'],
)  # fmt: skip
def test_what_stands_around_a_query_is_taken_off_and_every_concept_has_its_place(text: str) -> None:
    reading = parse.read(text)
    assert set(canonical(reading.query).children) == {Concept("red car"), Not(Concept("tall people"))}  # type: ignore[union-attr]
    assert {text[slice(*span)] for span in reading.spans.values()} == {"red car", "tall people"}


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("a dog", True),
        ("a dog but no cat", True),
        ("A man and a woman riding bikes down a street.", True),
        ("no smoking sign", True),
        ("rarely seen cars", False),
        ("a house unless it is red", False),
        ("un perro y un gato, no hay otro", False),
        ("ein Hund ohne Leine", False),
        ("a treeless hill", False),
        ("a carless street and no people", False),
        ("a homeless man with a wireless mouse", True),
        ("a park, more or less", True),
    ],
)
def test_knows_when_it_is_not_sure(text: str, sure: bool) -> None:
    assert parse.read(text).sure is sure


@pytest.mark.parametrize(
    ("text", "tree", "notes"),
    [
        ("a dog and no dog", '"dog" AND NOT "dog"', ["contradiction: dog and not dog"]),
        ("(a cup and no cat", '"cup" AND NOT "cat"', ["doubtful: '(' is never closed"]),
        ("a cup) and no cat", '"cup" AND NOT "cat"', ["doubtful: ')' closes nothing"]),
        ("a dog (brown", '"dog (brown"', ["doubtful: '(' is never closed"]),
        ("cats or dogs without people", '("cats" OR "dogs") AND NOT "people"',
         ["doubtful: whether all alternatives lack it"]),
        ("a park without dogs and blue sky", '"park without dogs and blue sky"',
         ["doubtful, so nothing is read: whether `blue sky` is wanted"]),
        ("Der Hund, ohne Leine, und die Katze!", '"Der Hund, ohne Leine, und die Katze!"',
         ["doubtful, so nothing is read: the words do not look English"]),
        ("no country for old men", 'NOT "country for old men"',
         ["doubtful: all of 'country for old men' is excluded, and nothing is wanted"]),
    ],
)  # fmt: skip
def test_a_doubt_about_a_sign_leaves_the_query_plain_one_about_structure_the_reading(
    text: str, tree: str, notes: list[str]
) -> None:
    reading = parse.read(text)
    assert (format_query(canonical(reading.query)), list(reading.notes)) == (tree, notes)
    assert reading.sure is not any(note.startswith("doubtful") for note in notes)


@pytest.mark.parametrize("join", [" OR ", " or ", " AND ", " and "])
def test_too_many_concepts_are_refused_at_once(join: str) -> None:
    with pytest.raises(QueryTooComplex, match="concepts"):
        parse(join.join(f"thing{number}" for number in range(700)))
    assert len(concepts(parse(join.join(f"thing{number}" for number in range(64))))) == 64


@pytest.mark.parametrize("cue", ["without", "excluding", "except"])
def test_a_slip_of_the_finger_is_no_other_cue(cue: str) -> None:
    slips = [cue[:at] + cue[at + 1 :] for at in range(len(cue))]
    slips += [cue[:at] + cue[at : at + 2][::-1] + cue[at + 2 :] for at in range(len(cue) - 1)]
    slips += [cue[:at] + letter + cue[at:] for at in range(len(cue)) for letter in "aeq"]
    meant = parse(f"beach {cue} people")
    assert [slip for slip in slips if parse(f"beach {slip} people") != meant] == []


@pytest.mark.parametrize(
    ("text", "error"), [("", "blank"), (" \n\t", "blank"), (3, "not int"), ("x" * (MAX_TEXT + 1), "at most")]
)
def test_unusable_text(text: str, error: str) -> None:
    with pytest.raises(QueryError, match=error):
        parse(text)


def test_the_parser_is_light_to_import() -> None:
    code = (
        "import sys; from lcse_plugins import parse; parse('a dog but no cat');"
        "print(sorted({'numpy', 'lark', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------------------------- on shared data


def test_benchmark_captions(shared_data: Path) -> None:
    rows = [json.loads(line) for line in (shared_data / "factor_bench_sample.jsonl").read_text("utf-8").splitlines()]
    missed = [row["caption"] for row in rows if canonical(parse(row["caption"])) != canonical(from_flat(row))]
    assert len(missed) <= 0.01 * len(rows), missed


def test_few_photo_captions_are_read_as_constrained(shared_data: Path) -> None:
    photos = (shared_data / "photos" / "photos.jsonl").read_text("utf-8").splitlines()
    captions = [caption for line in photos for caption in json.loads(line)["captions"]]
    constrained = [caption for caption in captions if is_constrained(parse(caption))]
    assert 0 < len(constrained) < 0.015 * len(captions)
