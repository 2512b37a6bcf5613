"""FACTOR-Bench: read, build and decide."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from benchmarks.build_factor import PUBLISHED_COUNTS, build_factor
from lcse_plugins import LogicScorer, ScoringConfig
from lcse_plugins.bench.factor import factor_text, measure_factor
from lcse_plugins.bench.factor_file import FactorFile, FactorSample, draw_samples, read_factor, write_factor
from lcse_plugins.bench.phrasing import OPERATORS, PHRASINGS, operator_tree, phrase
from lcse_plugins.calibrating.labelled import read_labels
from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.query import And, Concept, Not, Or, Query, canonical, ordered
from tests.bench.worlds import CLASSES, toy_world

LINE = {
    "sample_id": "not_0", "test_type": "operator", "operator": "NOT", "image": "val/1.jpg",
    "caption_a": "an orange", "caption_b": "there is no orange", "correct": "b",
    "parse_a": {"concepts": [{"text": "orange", "is_negated": False}], "operator": "SINGLE"},
    "parse_b": {"concepts": [{"text": "orange", "is_negated": True}], "operator": "SINGLE"},
    "meta": {"difficulty": "easy"},
}  # fmt: skip


def holds(query: Query, shown: set[str]) -> bool:
    match query:
        case Concept(text):
            return text in shown
        case Not(child):
            return not holds(child, shown)
        case And(children):
            return all(holds(child, shown) for child in children)
        case Or(children):
            return any(holds(child, shown) for child in children)
    raise AssertionError(query)


@pytest.fixture(scope="module")
def samples() -> list[FactorSample]:
    return build_factor(toy_world()[1], counts={kind: 24 for kind in PUBLISHED_COUNTS})


def test_the_published_form_is_read(tmp_path: Path) -> None:
    path = tmp_path / "factor_bench.jsonl"
    path.write_text(json.dumps(LINE) + "\n\n", encoding="utf-8")
    file = read_factor(path)
    assert not file.official
    assert file.samples[0].parse_b == Not(Concept("orange"))
    assert file.samples[0].meta == {"difficulty": "easy"}


@pytest.mark.parametrize(
    "damage",
    [
        {"correct": "c"},
        {"parse_a": {"concepts": []}},
        {"parse_a": 3},
        {"caption_a": None, "parse_b": {}},
        {"meta": [1]},
        {"test_type": "riddle"},
        {"test_type": "equivalence"},
        {"correct": "both"},
        {"caption_a": None},
        {"caption_b": " "},
        {"image": 12},
        {"operator": None},
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, damage: dict[str, object]) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(json.dumps(LINE) + "\n" + json.dumps({**LINE, **damage}) + "\n", encoding="utf-8")
    with pytest.raises(InvalidOption, match="line 2"):
        read_factor(path)


def test_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="cannot read"):
        read_factor(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(InvalidOption, match="no samples"):
        read_factor(tmp_path / "empty.jsonl")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xef\xbb\xbf" + json.dumps(LINE).encode() + b"\n" + b"[" * 100_000, "line 2 is not"),
        (json.dumps({**LINE, "caption_a": "a caf\u00e9"}, ensure_ascii=False).encode("latin-1"), "is not UTF-8 text"),
    ],
)
def test_what_is_no_sample_is_named(tmp_path: Path, data: bytes, said: str) -> None:
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
            assert ordered(canonical(sample.parse_a)) == ordered(canonical(sample.parse_b))
        elif sample.operator == "AND":  # the published protocol: one thing is there; naming both is wrong
            assert sorted(truths) == [False, True]
        else:
            assert truths == ((True, False) if sample.correct == "a" else (False, True)), sample


def test_the_protocol_is_kept(samples: list[FactorSample]) -> None:
    images = toy_world()[1]
    strict = build_factor(images, counts={"NEITHER": 100, "BUT_NOT": 100})
    for operator in ("NEITHER", "BUT_NOT"):
        pairs: Counter[tuple[str, ...]] = Counter()
        uses: Counter[str] = Counter()
        for sample in strict:
            if sample.operator == operator:
                pairs.update(combinations(sorted(sample.meta["concepts"]), 2))
                uses.update(sample.meta["concepts"])
        assert max(pairs.values()) <= 5
        assert max(uses.values()) <= 10
        assert "person" not in uses
    for choices in (samples, strict):
        for operator in {sample.operator for sample in choices if sample.correct != "both"}:
            answers = [(s.meta["polarity"], s.correct) for s in choices if s.operator == operator]
            for polarity in {None, *(polarity for polarity, _ in answers)}:
                part = Counter(answer for said, answer in answers if polarity in (None, said))
                assert abs(part["a"] - part["b"]) <= 1, (operator, polarity)
    polarity = Counter(
        sample.meta["polarity"] for sample in samples if sample.operator in ("NOT", "BUT_NOT", "NEITHER")
    )
    assert polarity["negation_correct"] == polarity["affirmation_correct"] > 0
    assert all(len(patterns) >= 5 for patterns in PHRASINGS.values())
    assert {sample.test_type for sample in samples} == {"operator", "equivalence", "compound", "nested"}


def test_many_classes_give_the_published_counts(shared_data: Path) -> None:
    photographs = read_labels(shared_data / "photos" / "photos.jsonl")
    made = build_factor(photographs, root=shared_data / "photos")
    assert Counter(sample.operator for sample in made) == PUBLISHED_COUNTS
    assert {sample.image for sample in made} <= {path.name for path in photographs.paths}
    said = [pair for s in made for pair in ((s.caption_a, s.parse_a), (s.caption_b, s.parse_b))]
    otherwise = [text for text, tree in said if ordered(canonical(parse(text))) != ordered(canonical(tree))]
    assert len(otherwise) < 0.01 * len(said), otherwise


def test_one_of_two_and_both_share_their_words(samples: list[FactorSample]) -> None:
    pairs = [sorted((s.caption_a, s.caption_b), key=lambda text: " or " in text) for s in samples if s.operator == "OR"]
    assert all(both == one.replace("either ", "both ").replace(" or ", " and ") for both, one in pairs)
    assert len(pairs) > 10


def test_building_is_deterministic_and_survives_the_disk(samples: list[FactorSample], tmp_path: Path) -> None:
    again = build_factor(toy_world()[1], counts={kind: 24 for kind in PUBLISHED_COUNTS})
    assert [s.to_json() for s in again] == [s.to_json() for s in samples]
    other = build_factor(toy_world()[1], seed=1, counts={"NOT": 24})
    assert [s.image for s in other] != [s.image for s in samples[:24]]
    write_factor(samples, tmp_path / "f.jsonl")
    read = read_factor(tmp_path / "f.jsonl").samples
    assert [s.caption_a for s in read] == [s.caption_a for s in samples]
    for one, two in zip(read, samples, strict=True):
        assert canonical(one.parse_a) == canonical(two.parse_a)
        assert canonical(one.parse_b) == canonical(two.parse_b)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_parser_reads_every_phrasing_as_it_is_meant(operator: str) -> None:
    for pattern in PHRASINGS[operator]:
        text = phrase(pattern, "traffic light", "umbrella")
        assert ordered(canonical(parse(text))) == ordered(
            canonical(operator_tree(operator, "traffic light", "umbrella"))
        ), text


def test_logic_decides_where_words_cannot(samples: list[FactorSample]) -> None:
    encoder, images, rows = toy_world()
    vectors = {path.name: row for path, row in zip(images.paths, rows, strict=True)}
    reports = {
        mode: measure_factor(samples, LogicScorer(encoder, config=ScoringConfig(mode=mode)), vectors)
        for mode in ("holistic", "lcse", "anchored", "routed")
    }
    plain = reports["holistic"]
    assert plain.overall is not None
    assert plain.overall < 70
    for mode in ("lcse", "anchored", "routed"):
        assert (reports[mode].overall or 0) > 85, mode
        assert (reports[mode].nested or 0) > (plain.nested or 0)
        assert set(reports[mode].compound) == {"3", "4"}
    assert set(plain.accuracy) == set(OPERATORS)
    assert "NOT the published file" in factor_text(reports, FactorFile(tuple(samples), "0" * 64))


def test_equivalent_captions_score_alike_with_canonical_text(samples: list[FactorSample]) -> None:
    encoder, images, rows = toy_world()
    vectors = {path.name: row for path, row in zip(images.paths, rows, strict=True)}
    for mode in ("lcse", "anchored"):
        config = ScoringConfig(mode=mode, holistic="canonical")
        for parses in ("oracle", "own"):
            report = measure_factor(samples, LogicScorer(encoder, config=config), vectors, parses=parses)
            assert set(report.violations.values()) == {0.0}


def test_compounds_are_listed_by_their_number_of_concepts() -> None:
    encoder, _, rows = toy_world()
    many = [Concept(f"thing{n}") for n in range(10)]
    made = [
        FactorSample(
            sample_id=f"{count}", test_type="compound", operator="COMPOUND", image="x", caption_a="things",
            caption_b="no things", correct="a", parse_a=And(tuple(many[:count])),
            parse_b=And(tuple(Not(one) for one in many[:count])),
        )
        for count in (10, 2)
    ]  # fmt: skip
    assert list(measure_factor(made, LogicScorer(encoder), {"x": rows[0]}).compound) == ["2", "10"]


def test_an_image_without_a_vector_is_named(samples: list[FactorSample]) -> None:
    with pytest.raises(InvalidOption, match=r"no vector for image"):
        measure_factor(samples[:1], LogicScorer(toy_world()[0]), {})


def test_a_part_has_as_many_of_every_operator(samples: list[FactorSample]) -> None:
    kinds = Counter(sample.operator for sample in samples)
    part = draw_samples(samples, 3 * len(kinds))
    assert Counter(sample.operator for sample in part) == dict.fromkeys(kinds, 3)
    assert draw_samples(samples, 3 * len(kinds), seed=0) == part != draw_samples(samples, 3 * len(kinds), seed=1)
    assert draw_samples(samples, None) == tuple(samples)
