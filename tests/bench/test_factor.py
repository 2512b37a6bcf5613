"""FACTOR-Bench: read, build and decide."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from lcse_plugins import LogicScorer, ScoringConfig
from lcse_plugins.bench.factor import FactorReport, measure_factor
from lcse_plugins.bench.factor_builder import PUBLISHED_COUNTS, build_factor
from lcse_plugins.bench.factor_file import FactorFile, FactorSample, draw_samples, read_factor, write_factor
from lcse_plugins.bench.phrasing import OPERATORS, PHRASINGS, article, operator_tree, phrase
from lcse_plugins.bench.tables import factor_text
from lcse_plugins.calibrating.labelled import LabelledImages, read_labels
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
    return build_factor(
        toy_world()[1], counts={kind: 24 for kind in PUBLISHED_COUNTS}, max_per_concept=40, max_per_pair=20
    )


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
        (json.dumps({"samples": [LINE, 3]}).encode(), "sample 2 is not"),
        (json.dumps({"samples": []}).encode(), "holds no samples"),
    ],
)
def test_what_is_no_sample_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "f.jsonl").write_bytes(data)
    with pytest.raises(InvalidOption, match=said):
        read_factor(tmp_path / "f.jsonl")


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    captions = [f"an orange{end}here" for end in ("\u2028", "\x85", "\x0b")]
    lines = [json.dumps({**LINE, "caption_a": caption}, ensure_ascii=False) for caption in captions]
    (tmp_path / "f.jsonl").write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    read = read_factor(tmp_path / "f.jsonl").samples
    assert [sample.caption_a for sample in read] == captions
    write_factor(read, tmp_path / "again.jsonl")
    assert read_factor(tmp_path / "again.jsonl").samples == read


def test_samples_in_one_list_are_those_of_the_lines(tmp_path: Path) -> None:
    lines = [{**LINE, "sample_id": f"not_{n}", "image_id": n} for n in range(2)]
    (tmp_path / "f.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "f.json").write_text(json.dumps({"name": "FACTOR-Bench", "samples": lines}, indent=2), encoding="utf-8")
    assert read_factor(tmp_path / "f.json") == read_factor(tmp_path / "f.jsonl")
    assert [sample.image_id for sample in read_factor(tmp_path / "f.json").samples] == [0, 1]


def test_a_part_is_drawn_from_every_kind_polarity_and_answer(samples: list[FactorSample]) -> None:
    def kind(sample: FactorSample) -> tuple[str, str]:
        return sample.test_type, sample.operator

    kinds = Counter(map(kind, samples))
    part = draw_samples(samples, 4 * len(kinds))
    assert Counter(map(kind, part)) == dict.fromkeys(kinds, 4)
    for operator in ("NOT", "BUT_NOT", "NEITHER", "NESTED"):
        shown = [(sample.meta["polarity"], sample.correct) for sample in part if sample.operator == operator]
        assert sorted(shown) == sorted(product(("negation_correct", "affirmation_correct"), "ab"))
    names = [sample.sample_id for sample in samples]
    assert [n.sample_id for n in part] == sorted((n.sample_id for n in part), key=names.index)
    assert draw_samples(samples, 4 * len(kinds), seed=0) == part
    assert draw_samples(samples, 4 * len(kinds), seed=1) != part
    assert draw_samples(samples, None) == draw_samples(samples, len(samples)) == tuple(samples)
    assert len({sample.meta["polarity"] for sample in draw_samples(samples[:24], 2)}) == 2


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
    strict = build_factor(images, counts={"NEITHER": 100, "BUT_NOT": 100}, max_per_pair=5, max_per_concept=10)
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


@pytest.mark.parametrize("operator", ["NOT", "BUT_NOT", "NEITHER", "NESTED"])
def test_few_classes_leave_both_polarities_alike(operator: str) -> None:
    done: list[tuple[int, int]] = []
    few = build_factor(toy_world()[1], counts={operator: 80}, progress=lambda *step: done.append(step))
    polarity = Counter(sample.meta["polarity"] for sample in few)
    assert polarity["negation_correct"] == polarity["affirmation_correct"] > 3
    assert done[-1][0] == done[-1][1]


def test_images_are_named_by_their_path_from_the_root() -> None:
    _, images, _ = toy_world()
    folders = tuple(Path("/data", "ab"[i % 2], path.name) for i, path in enumerate(images.paths))
    apart = LabelledImages(folders, images.labels, images.classes)
    for root, start in ((None, ""), ("/data", ""), ("/", "data/")):
        names = {sample.image for sample in build_factor(apart, counts={"NOT": 40}, root=root)}
        assert {name.removeprefix(start)[:2] for name in names} == {"a/", "b/"}
    assert {s.image for s in build_factor(images, counts={"NOT": 40})} <= {path.name for path in images.paths}


def test_many_classes_give_the_published_counts(shared_data: Path) -> None:
    photographs = read_labels(shared_data / "photos" / "photos.jsonl")
    made = build_factor(photographs, root=shared_data / "photos")
    assert Counter(sample.operator for sample in made) == PUBLISHED_COUNTS
    assert {sample.image for sample in made} <= {path.name for path in photographs.paths}
    assert all(sample.image_id == int(Path(sample.image).stem) for sample in made)
    for sample in made:
        for caption, tree in ((sample.caption_a, sample.parse_a), (sample.caption_b, sample.parse_b)):
            assert ordered(canonical(parse(caption))) == ordered(canonical(tree)), caption


def test_what_is_there_is_never_heard_as_excluded() -> None:
    names = ("skis", "car", "broccoli", "bus")
    labels = np.array(list(product([False, True], repeat=4)))
    paths = tuple(Path(f"{n}.jpg") for n in range(len(labels)))
    made = build_factor(
        LabelledImages(paths, labels, names), counts={"COMPOUND": 60}, max_per_concept=60, max_per_pair=60
    )
    said = {caption for sample in made for caption in (sample.caption_a, sample.caption_b)}
    assert any("and some skis" in caption for caption in said)
    for sample in made:
        assert canonical(parse(sample.caption_a)) == canonical(sample.parse_a), sample.caption_a


def test_one_of_two_and_both_share_their_words(samples: list[FactorSample]) -> None:
    pairs = [sorted((s.caption_a, s.caption_b), key=lambda text: " or " in text) for s in samples if s.operator == "OR"]
    assert all(both == one.replace("either ", "both ").replace(" or ", " and ") for both, one in pairs)
    assert len(pairs) > 10


def test_building_is_deterministic_and_survives_the_disk(samples: list[FactorSample], tmp_path: Path) -> None:
    again = build_factor(
        toy_world()[1], counts={kind: 24 for kind in PUBLISHED_COUNTS}, max_per_concept=40, max_per_pair=20
    )
    assert [s.to_json() for s in again] == [s.to_json() for s in samples]
    other = build_factor(toy_world()[1], seed=1, counts={"NOT": 24}, max_per_concept=40)
    assert [s.image for s in other] != [s.image for s in samples[:24]]
    write_factor(samples, tmp_path / "f.jsonl")
    read = read_factor(tmp_path / "f.jsonl").samples
    assert [s.caption_a for s in read] == [s.caption_a for s in samples]
    for one, two in zip(read, samples, strict=True):
        assert canonical(one.parse_a) == canonical(two.parse_a)
        assert canonical(one.parse_b) == canonical(two.parse_b)


def test_a_detector_vetoes_labels_it_contradicts() -> None:
    images = toy_world()[1]
    blind_to_dogs = build_factor(
        images, counts={"NOT": 60}, detector=lambda path, name: name != "dog" and name in path.stem.split()
    )
    wrong = [s for s in blind_to_dogs if s.meta["present"] == ["dog"]]
    assert not wrong
    assert any(s.meta["absent"] == ["dog"] for s in blind_to_dogs)
    assert all(s.meta["detector_validated"] for s in blind_to_dogs)


def test_a_detector_is_asked_once_for_each_picture_and_class() -> None:
    calls: Counter[tuple[Path, str]] = Counter()

    def sees_all(path: Path, name: str) -> bool:
        calls[path, name] += 1
        return True

    assert build_factor(toy_world()[1], counts={"COMM_AND": 20, "NOT": 20}, detector=sees_all)
    assert set(calls.values()) == {1}


def test_a_class_is_excluded_however_it_is_written() -> None:
    _, images, _ = toy_world()
    shouted = LabelledImages(images.paths, images.labels, tuple(name.title() for name in images.classes))
    concepts = {name for sample in build_factor(shouted) for name in sample.meta["concepts"]}
    assert concepts == {"Dog", "Cat", "Umbrella", "Bench", "Kite"}


def test_unknown_kinds_and_useless_labels_are_refused() -> None:
    images = toy_world()[1]
    with pytest.raises(InvalidOption, match="XOR"):
        build_factor(images, counts={"XOR": 1})
    with pytest.raises(InvalidOption, match="allow no sample"):
        build_factor(images, exclude=CLASSES)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_parser_reads_every_phrasing_as_it_is_meant(operator: str) -> None:
    for pattern in PHRASINGS[operator]:
        text = phrase(pattern, "traffic light", "umbrella")
        assert ordered(canonical(parse(text))) == ordered(
            canonical(operator_tree(operator, "traffic light", "umbrella"))
        ), text


def test_articles() -> None:
    assert [article(noun) for noun in ("umbrella", "car", "skis", "hot dog")] == [
        "an umbrella",
        "a car",
        "skis",
        "a hot dog",
    ]


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


def test_equivalent_captions_score_alike_with_canonical_text(samples: list[FactorSample]) -> None:
    encoder, images, rows = toy_world()
    vectors = {path.name: row for path, row in zip(images.paths, rows, strict=True)}
    for mode in ("lcse", "anchored"):
        config = ScoringConfig(mode=mode, holistic="canonical")
        for parses in ("oracle", "own"):
            report = measure_factor(samples, LogicScorer(encoder, config=config), vectors, parses=parses)
            assert report.violations == dict.fromkeys(["de_morgan", "double_negation", "commutativity", "all"], 0.0)


def test_every_figure_is_printed() -> None:
    figures = FactorReport(
        accuracy={"NOT": 51.0, "XOR": 52.0},
        overall=53.0,
        violations={"de_morgan": 54.0, "commutativity": 55.0, "all": 56.0},
        compound={"2": 57.0, "10": 58.0},
        nested=59.0,
        samples=1,
    )
    long = "anchored, canonical text, probabilistic"
    text = factor_text({"lcse": figures, long: figures}, FactorFile((), "0" * 64))
    lines = text.splitlines()
    assert ["XOR", "overall", "nested", "2", "concepts", "10", "concepts"] == lines[1].split()[-7:]
    assert lines[3].removeprefix(long).split() == ["51.0", *"––––", "52.0", "53.0", "59.0", "57.0", "58.0"]
    assert lines[-3].split() == ["de_morgan", "commutativity", "all"]
    assert lines[-2].split()[1:] == ["54.0", "55.0", "56.0"]
    assert len({len(line) for line in lines[1:4]}) == len({len(line) for line in lines[-3:]}) == 1


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
