"""FACTOR-Bench: read, build and decide."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build_factor import PUBLISHED_COUNTS, build_factor
from lcse_plugins import LogicScorer, ScoringConfig
from lcse_plugins.bench.factor import FactorSample, factor_text, measure_factor, read_factor, write_factor
from lcse_plugins.bench.phrasing import OPERATORS, PHRASINGS, operator_tree, phrase
from lcse_plugins.calibrating.labelled import read_labels
from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.query import Concept, Not, Query, canonical, ordered
from tests.bench.worlds import CLASSES, holds, toy_world

LINE: dict[str, Any] = {
    "sample_id": "not_0", "test_type": "operator", "operator": "NOT", "image": "val/1.jpg",
    "caption_a": "an orange", "caption_b": "there is no orange", "correct": "b",
    "parse_a": {"concepts": [{"text": "orange", "is_negated": False}], "operator": "SINGLE"},
    "parse_b": {"concepts": [{"text": "orange", "is_negated": True}], "operator": "SINGLE"},
    "meta": {"difficulty": "easy"},
}  # fmt: skip


def same(one: Query, other: Query) -> bool:
    return ordered(canonical(one)) == ordered(canonical(other))


@pytest.fixture(scope="module")
def samples() -> list[FactorSample]:
    return build_factor(toy_world()[1], counts=dict.fromkeys(PUBLISHED_COUNTS, 24))


def test_the_published_form_is_read(tmp_path: Path) -> None:
    path = tmp_path / "factor_bench.jsonl"
    path.write_text("\ufeff" + json.dumps(LINE) + "\n\n", encoding="utf-8")
    file = read_factor(path)
    assert not file.official
    assert file.samples[0].parse_b == Not(Concept("orange"))
    assert file.samples[0].meta == {"difficulty": "easy"}


@pytest.mark.parametrize(
    "damage",
    [
        {"correct": "both"},
        {"parse_a": {"concepts": []}},
        {"parse_a": 3},
        {"test_type": "riddle"},
        {"caption_b": " "},
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, damage: dict[str, object]) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(json.dumps(LINE) + "\n" + json.dumps({**LINE, **damage}) + "\n", encoding="utf-8")
    with pytest.raises(InvalidOption, match="line 2 is not"):
        read_factor(path)


@pytest.mark.parametrize(
    ("data", "said"),
    [(None, "cannot read"), (b"\n", "no samples"), (b"[" * 100_000, "line 1 is not"), (b"caf\xe9", "cannot read")],
)
def test_files_without_samples_are_refused(tmp_path: Path, data: bytes | None, said: str) -> None:
    if data is not None:
        (tmp_path / "f.jsonl").write_bytes(data)
    with pytest.raises(InvalidOption, match=said):
        read_factor(tmp_path / "f.jsonl")


def test_the_labels_make_the_right_caption_true_and_only_it(samples: list[FactorSample]) -> None:
    _, images, _ = toy_world()
    shown = {
        path.name: {name for name, there in zip(CLASSES, row, strict=True) if there}
        for path, row in zip(images.paths, images.labels, strict=True)
    }
    for sample in samples:
        truths = holds(sample.parse_a, shown[sample.image]), holds(sample.parse_b, shown[sample.image])
        if sample.correct == "both":
            assert same(sample.parse_a, sample.parse_b)
        else:
            assert truths == ((True, False) if sample.correct == "a" else (False, True)), sample


def test_the_protocol_is_kept(samples: list[FactorSample]) -> None:
    strict = build_factor(toy_world()[1], counts={"NEITHER": 100, "BUT_NOT": 100})
    for operator in ("NEITHER", "BUT_NOT"):
        named = [sample.meta["concepts"] for sample in strict if sample.operator == operator]
        assert max(Counter(pair for names in named for pair in combinations(sorted(names), 2)).values()) <= 5
        uses = Counter(name for names in named for name in names)
        assert max(uses.values()) <= 10
        assert "person" not in uses
    for operator in {sample.operator for sample in samples if sample.correct != "both"}:
        answers = Counter((s.meta["polarity"], s.correct) for s in [*samples, *strict] if s.operator == operator)
        assert max(answers.values()) - min(answers.values()) <= 2, operator
    assert {sample.test_type for sample in samples} == {"operator", "equivalence", "compound", "nested"}


def test_many_classes_give_the_published_counts(shared_data: Path) -> None:
    photographs = read_labels(shared_data / "photos" / "photos.jsonl")
    made = build_factor(photographs, root=shared_data / "photos")
    assert Counter(sample.operator for sample in made) == PUBLISHED_COUNTS
    said = [pair for s in made for pair in ((s.caption_a, s.parse_a), (s.caption_b, s.parse_b))]
    otherwise = [text for text, tree in said if not same(parse(text), tree)]
    assert len(otherwise) < 0.01 * len(said), otherwise


def test_building_is_repeatable_and_survives_the_disk(samples: list[FactorSample], tmp_path: Path) -> None:
    assert build_factor(toy_world()[1], counts=dict.fromkeys(PUBLISHED_COUNTS, 24)) == samples
    write_factor(samples, tmp_path / "f.jsonl")
    for read, made in zip(read_factor(tmp_path / "f.jsonl").samples, samples, strict=True):
        assert (read.caption_a, read.correct, read.meta) == (made.caption_a, made.correct, made.meta)
        assert canonical(read.parse_a) == canonical(made.parse_a)
        assert canonical(read.parse_b) == canonical(made.parse_b)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_parser_reads_every_phrasing_as_it_is_meant(operator: str) -> None:
    for pattern in PHRASINGS[operator]:
        text = phrase(pattern, "traffic light", "umbrella")
        assert same(parse(text), operator_tree(operator, "traffic light", "umbrella")), text


def test_logic_decides_where_words_cannot_and_canonical_text_keeps_equivalents_together(
    samples: list[FactorSample],
) -> None:
    encoder, images, rows = toy_world()
    vectors = {path.name: row for path, row in zip(images.paths, rows, strict=True)}
    modes = {
        mode: measure_factor(samples, LogicScorer(encoder, config=ScoringConfig(mode=mode)), vectors)
        for mode in ("holistic", "lcse", "anchored", "routed")
    }
    plain = modes["holistic"]
    assert plain["overall"] < 70
    for mode in ("lcse", "anchored", "routed"):
        assert modes[mode]["overall"] > 85, mode
        assert modes[mode]["nested"] > plain["nested"]
        assert list(modes[mode]["compound"]) == ["3", "4"]
    assert set(plain["accuracy"]) == set(OPERATORS)
    assert "NOT the published file" in factor_text({"official": False, "sha256": "0" * 64, "modes": modes})


def test_equivalent_captions_score_alike_by_logic_alone(samples: list[FactorSample]) -> None:
    encoder, images, rows = toy_world()
    vectors = {path.name: row for path, row in zip(images.paths, rows, strict=True)}
    scorer = LogicScorer(encoder, mode="factored")
    for parses in ("oracle", "own"):
        report = measure_factor(samples, scorer, vectors, parses=parses)
        assert set(report["violations"].values()) == {0.0}
