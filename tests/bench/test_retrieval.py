"""Retrieval, retention and the rivals, in a world where the right order is known."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcse_plugins import Concept
from lcse_plugins.bench.metrics import area_under_curve, best_first, spearman, standing_before
from lcse_plugins.bench.photographs import captions_of, half_of, image_vectors, take_images
from lcse_plugins.bench.retention import measure_retention, retention_text
from lcse_plugins.bench.retrieval import draw_questions, measure_retrieval, retrieval_text
from lcse_plugins.bench.rivals import best_score, make_rankers
from lcse_plugins.encoders.protocol import concept_vectors
from lcse_plugins.errors import ImageError, InvalidOption, LabelFileError
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import And
from lcse_plugins.testing import ToyEncoder
from tests.bench.worlds import toy_world


def test_questions_are_answered_by_their_labels_and_drawn_alike() -> None:
    images = toy_world()[1]
    questions = draw_questions(images, pairs=6)
    assert len(questions) == 5 * 6
    assert [q.text for q in draw_questions(images, pairs=6)] == [q.text for q in questions]
    assert [q.text for q in draw_questions(images, pairs=6, seed=1)] != [q.text for q in questions]
    for question in questions:
        assert 5 <= question.relevant.sum() <= len(images) - 5
        assert not (question.relevant & question.excluded).any()
        assert question.excluded.any() == (question.operator in ("NOT", "BUT_NOT", "NEITHER"))
    with pytest.raises(InvalidOption, match="label more images"):
        draw_questions(images, fewest=100)


def test_logic_finds_what_words_do_not() -> None:
    encoder, images, vectors = toy_world()
    report = measure_retrieval(draw_questions(images, pairs=8), make_rankers(encoder, vectors))
    mean = {row["ranker"]: row for row in report["rows"] if row["operator"] == "mean"}
    assert report["misread"] == []
    for name in ("lcse", "factored", "anchored"):
        assert mean[name]["p_at_10"] > mean["holistic"]["p_at_10"] + 20
        assert mean[name]["auc"] > mean["holistic"]["auc"] + 20
        assert mean[name]["violations"] < mean["holistic"]["violations"]
    lead = report["leads"]["holistic"]
    assert lead["auc"] == pytest.approx(mean["anchored"]["auc"] - mean["holistic"]["auc"])
    assert 0 < lead["auc_interval"][0] < lead["auc"] < lead["auc_interval"][1]
    text = retrieval_text(report)
    assert all(name in text for name in ("subtraction", "best score", "NEITHER", "lead of `anchored` over"))


def test_a_misreading_parser_is_found_out() -> None:
    encoder, images, vectors = toy_world()
    questions = draw_questions(images, pairs=2)
    report = measure_retrieval(questions, make_rankers(encoder, vectors, modes={}), parser=Concept)
    assert len(report["misread"]) == len(questions)
    assert f"read {len(questions)} queries otherwise" in retrieval_text(report)


@pytest.mark.parametrize(("positive", "negative"), [(["dog"], ["cat"]), ([], ["dog", "kite"]), (["dog", "cat"], [])])
def test_best_score_is_qdrants(positive: list[str], negative: list[str]) -> None:
    distances = pytest.importorskip("qdrant_client.local.distances")
    models = pytest.importorskip("qdrant_client.models")
    encoder, _, vectors = toy_world(images=40)
    query = And((*map(Concept, positive), *(~Concept(name) for name in negative)))
    wanted, unwanted = ([concept_vectors(encoder, [name])[0] for name in names] for names in (positive, negative))
    strategy = models.RecommendStrategy.BEST_SCORE
    reco = distances.RecoQuery(positive=wanted, negative=unwanted, strategy=strategy)
    theirs = distances.calculate_recommend_best_scores(reco, vectors, models.Distance.COSINE)
    np.testing.assert_allclose(best_score(Parse(text="", query=query), encoder, vectors), theirs, atol=1e-5)


def test_captions_without_logic_keep_their_ranking() -> None:
    encoder, images, vectors = toy_world()
    captions = [(path.stem.split()[0], i) for i, path in enumerate(images.paths[:30])]
    captions.append(("a dog but no cat", 0))
    report = measure_retention(encoder, vectors, captions)
    assert (report["captions"], report["constrained"]) == (31, 1)
    for mode in ("lcse", "anchored", "routed"):
        assert report["correlation"][mode] == pytest.approx(1.0)
        assert report["correlation_all"][mode] < 1.0
    logic_alone = measure_retention(encoder, vectors, captions[-1:])
    assert logic_alone["correlation"]["lcse"] is None
    assert "–" in retention_text(logic_alone)
    with pytest.raises(InvalidOption, match="needs captions"):
        measure_retention(encoder, vectors, [])


def test_halves_are_fixed_and_disjoint() -> None:
    images = toy_world()[1]
    a, b = half_of(images, "A"), half_of(images, "B")
    assert sorted([*a, *b]) == list(range(len(images)))
    assert len(take_images(images, a)) == len(a) > 20
    assert take_images(images, b).paths[0] == images.paths[b[0]]


def test_image_vectors_are_computed_once_for_a_picture_as_it_is(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.jpg" for name in ("dog", "cat", "dog kite")]
    for file in files:
        file.write_bytes(b"picture")
    encoder, cache = ToyEncoder(), tmp_path / "cache"
    first = image_vectors(encoder, files, cache=cache)
    np.testing.assert_array_equal(first, image_vectors(encoder, files, cache=cache))
    assert encoder.images_encoded == 3
    os.utime(files[0], ns=(0, files[0].stat().st_mtime_ns + 1))
    image_vectors(encoder, files, cache=cache)
    assert encoder.images_encoded == 6
    with pytest.raises(ImageError, match=r"bird.jpg: there is no such picture"):
        image_vectors(encoder, [*files, tmp_path / "bird.jpg"], cache=cache)


def test_captions_belong_to_a_path_and_not_to_a_name(tmp_path: Path) -> None:
    rows = [{"file": f"{folder}/1.jpg", "captions": [folder]} for folder in "ab"]
    source = tmp_path / "photos.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    paths = [tmp_path / folder / "1.jpg" for folder in "bac"]
    assert captions_of(paths, source, root=tmp_path) == [["b"], ["a"], []]
    for damage, said in (('{"file": "a/1.jpg", "captions": "a dog"}', "list of texts"), ("path,labels", "no captions")):
        source.write_text(damage, encoding="utf-8")
        with pytest.raises(LabelFileError, match=f"line 1: .*{said}"):
            captions_of(paths, source, root=tmp_path)


@given(st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=40))
def test_the_area_is_the_chance_that_a_relevant_item_scores_higher(items: list[tuple[int, bool]]) -> None:
    scores, relevant = np.array([s for s, _ in items], float), np.array([r for _, r in items])
    if relevant.any() and not relevant.all():
        pairs = [(a > b) + 0.5 * (a == b) for a in scores[relevant] for b in scores[~relevant]]
        assert area_under_curve(scores, relevant) == pytest.approx(np.mean(pairs))


def test_ranks_and_their_correlation() -> None:
    assert best_first([0.5, 0.9, 0.5]).tolist() == [1, 0, 2]
    assert standing_before([0.5, 0.9, 0.5], 2) == 2
    assert spearman([1, 2, 3], [10, 20, 90]) == pytest.approx(1.0)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)
    assert spearman([1, 1, 1], [2, 2, 2]) == 1.0
    assert spearman([1, 1, 1], [1, 2, 3]) == 0.0
    with pytest.raises(InvalidOption, match="NaN"):
        best_first([float("nan"), 1.0])
