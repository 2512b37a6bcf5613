"""What the English layer tells besides the tree: affirmed text, places, notes, and whether it is sure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lcse_plugins import Concept, canonical, parse
from lcse_plugins.errors import QueryError, QueryTooComplex
from lcse_plugins.parsing.english.words import lexicon
from lcse_plugins.query import MAX_TEXT, And, Not, concepts, format_query, from_flat, is_constrained


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


@pytest.mark.parametrize("text", ["Show me a red car, but no tall people.", "no tall people\na red car"])
def test_every_concept_has_its_place(text: str) -> None:
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
    assert parse.read(text).sure is sure


@pytest.mark.parametrize(
    ("text", "tree", "note"),
    [
        ("(a cup and no cat", '"cup" AND NOT "cat"', "'(' is never closed"),
        ("a cup) and no cat", '"cup" AND NOT "cat"', "')' closes nothing"),
        ("a dog (brown", '"dog (brown"', "'(' is never closed"),
    ],
)
def test_a_parenthesis_without_a_partner_is_noted(text: str, tree: str, note: str) -> None:
    reading = parse.read(text)
    assert (format_query(canonical(reading.query)), reading.notes) == (tree, (f"doubtful: {note}",))
    assert not reading.sure


def test_a_doubt_about_a_sign_leaves_the_query_plain() -> None:
    reading = parse.read("a park without dogs and blue sky")
    assert reading.query == Concept("park without dogs and blue sky")
    assert not reading.sure
    assert reading.notes == ("doubtful, so nothing is read: whether `blue sky` is wanted",)


def test_a_doubt_about_structure_leaves_the_reading() -> None:
    reading = parse.read("cats or dogs without people")
    assert format_query(canonical(reading.query)) == '("cats" OR "dogs") AND NOT "people"'
    assert (reading.sure, len(reading.notes)) == (False, 1)


@pytest.mark.parametrize(
    "frame",
    ["input is {}", "\ninput is {}\n", "query: {}", "Search query: {}", 'query: "{}"', "search for images matching {}",
     "show me pictures of {}", "find images matching {}"],
)  # fmt: skip
def test_what_tools_put_around_a_query_is_taken_off(frame: str) -> None:
    text = frame.format("a beach and no person")
    reading = parse.read(text)
    assert canonical(reading.query) == And((Concept("beach"), Not(Concept("person"))))
    assert {concept: text[slice(*span)] for concept, span in reading.spans.items()} == {
        "beach": "beach",
        "person": "person",
    }


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
        if name == "spelling":
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
