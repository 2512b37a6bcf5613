"""Retrieval, retention and the rivals, in a world where the right order is known."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from lcse_plugins import Concept, LogicScorer
from lcse_plugins.bench.photographs import captions_of, half_of, image_vectors, take_images
from lcse_plugins.bench.remembering import RememberingEncoder
from lcse_plugins.bench.retention import measure_retention
from lcse_plugins.bench.retrieval import draw_questions, measure_retrieval
from lcse_plugins.bench.rivals import best_score, make_rankers, subtraction
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.encoders.protocol import concept_vectors
from lcse_plugins.errors import EncoderError, ImageError, InvalidOption, LabelFileError
from lcse_plugins.parsing.result import Parse
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
        if question.operator in ("NOT", "BUT_NOT", "NEITHER"):
            assert not (question.relevant & question.excluded).any()
        else:
            assert not question.excluded.any()
    with pytest.raises(InvalidOption, match="label more images"):
        draw_questions(images, fewest=100)


def test_classes_may_be_written_with_many_blanks() -> None:
    images = toy_world()[1]
    spread = LabelledImages(images.paths, images.labels, tuple(f" hot  {name} " for name in images.classes))
    for ours, plain in zip(draw_questions(spread, pairs=6), draw_questions(images, pairs=6), strict=True):
        np.testing.assert_array_equal(ours.excluded, plain.excluded)


def test_logic_finds_what_words_do_not() -> None:
    encoder, images, vectors = toy_world()
    report = measure_retrieval(draw_questions(images, pairs=8), make_rankers(encoder, vectors))
    mean = {name: per["mean"] for name, per in report.figures.items()}
    assert report.misread == ()
    for name in ("lcse", "factored", "anchored"):
        assert mean[name].precision > mean["holistic"].precision + 20
        assert mean[name].auc > mean["holistic"].auc + 20
        assert (mean[name].violations or 0) < (mean["holistic"].violations or 0)
    assert "anchored" in report.to_text()
    assert {row["operator"] for row in report.to_json()["rows"]} == {*report.questions, "mean"}


def test_a_misreading_parser_is_found_out() -> None:
    encoder, images, vectors = toy_world()
    questions = draw_questions(images, pairs=2)
    report = measure_retrieval(questions, make_rankers(encoder, vectors, modes={}), parser=lambda text: Concept(text))
    assert len(report.misread) == len(questions)


def test_best_score_is_qdrants() -> None:
    distances = pytest.importorskip("qdrant_client.local.distances")
    models = pytest.importorskip("qdrant_client.models")
    encoder, _, vectors = toy_world(images=40)
    dog, cat, kite = (Concept(name) for name in ("dog", "cat", "kite"))
    for query, positive, negative in (
        (dog & ~cat, ["dog"], ["cat"]),
        (~dog & ~kite, [], ["dog", "kite"]),
        (dog | cat, ["dog", "cat"], []),
    ):
        rows = {name: concept_vectors(encoder, [name])[0] for name in (*positive, *negative)}
        reco = distances.RecoQuery(
            positive=[rows[name] for name in positive],
            negative=[rows[name] for name in negative],
            strategy=models.RecommendStrategy.BEST_SCORE,
        )
        theirs = distances.calculate_recommend_best_scores(reco, vectors, models.Distance.COSINE)
        ours = best_score(Parse(text="", query=query), encoder, vectors)
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_subtraction_is_arithmetic_on_vectors() -> None:
    encoder, _, vectors = toy_world(images=40)
    dog, cat = concept_vectors(encoder, ["dog", "cat"])
    scores = subtraction(Parse(text="", query=Concept("dog") & ~Concept("cat")), encoder, vectors)
    np.testing.assert_allclose(scores, vectors @ (dog - cat), atol=1e-6)


def test_captions_without_logic_keep_their_ranking() -> None:
    encoder, images, vectors = toy_world()
    captions = [(" and ".join(path.stem.split()[:1]), i) for i, path in enumerate(images.paths[:30])]
    captions.append(("a dog but no cat", 0))
    report = measure_retention(encoder, vectors, captions)
    assert report.constrained == 1
    for mode in ("lcse", "anchored", "routed"):
        assert report.correlation[mode] == pytest.approx(1.0)
        assert report.correlation_all[mode] < 1.0
    assert report.recall["holistic"][1] <= report.recall["holistic"][10]
    assert "R@10" in report.to_text()
    with pytest.raises(InvalidOption, match="needs captions"):
        measure_retention(encoder, vectors, [])
    with pytest.raises(InvalidOption, match="NaN"):
        measure_retention(encoder, np.full_like(vectors, np.nan), captions)
    logic_alone = measure_retention(encoder, vectors, captions[-1:])
    assert logic_alone.correlation["lcse"] is None
    assert "–" in logic_alone.to_text()


def test_halves_are_fixed_and_disjoint() -> None:
    images = toy_world()[1]
    a, b = half_of(images, "A"), half_of(images, "B")
    assert sorted([*a, *b]) == list(range(len(images)))
    assert len(take_images(images, a)) == len(a) > 20
    assert take_images(images, b).paths[0] == images.paths[b[0]]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"{name}.jpg" for name in ("dog", "cat", "dog kite")]
    for file in files:
        file.write_bytes(b"picture")
    return files


def test_image_vectors_are_computed_once(files: list[Path], tmp_path: Path) -> None:
    encoder = ToyEncoder()
    first = image_vectors(encoder, files, cache=tmp_path / "cache")
    second = image_vectors(encoder, files, cache=tmp_path / "cache")
    np.testing.assert_array_equal(first, second)
    assert encoder.images_encoded == 3


def test_changed_pictures_and_damaged_vectors_are_encoded_again(files: list[Path], tmp_path: Path) -> None:
    encoder, cache = ToyEncoder(), tmp_path / "cache"
    image_vectors(encoder, files, cache=cache)
    (kept,) = cache.iterdir()
    for damage in (b"", kept.read_bytes()[:-10], b"no vectors"):
        kept.write_bytes(damage)
        assert image_vectors(encoder, files, cache=cache).shape == (3, encoder.dimension)
    assert encoder.images_encoded == 12
    assert list(cache.iterdir()) == [kept]
    os.utime(files[0], ns=(0, files[0].stat().st_mtime_ns + 1))
    image_vectors(encoder, files, cache=cache)
    assert encoder.images_encoded == 15


def test_unusable_pictures_caches_and_encoders_are_named(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"bird.jpg: there is no such picture"):
        image_vectors(ToyEncoder(), [*files, tmp_path / "bird.jpg"], cache=tmp_path / "c")
    with pytest.raises(EncoderError, match="NaN"):
        image_vectors(ToyEncoder({"dog": [np.nan, 1.0], "cat": [1.0, 0.0], "kite": [0.0, 1.0]}), files)


def test_a_text_is_read_once() -> None:
    encoder, _, vectors = toy_world(images=10)
    remembering = RememberingEncoder(encoder)
    for mode in ("anchored", "factored"):
        LogicScorer(remembering, mode=mode).rank("a dog but no cat", vectors)
    before = encoder.texts_encoded
    LogicScorer(remembering).rank("a dog but no cat", vectors)
    assert encoder.texts_encoded == before
    assert remembering.encode_texts([]).shape == (0, encoder.dimension)


def test_captions_belong_to_a_path_and_not_to_a_name(tmp_path: Path) -> None:
    rows = [{"file": f"{folder}/1.jpg", "captions": [folder]} for folder in "ab"]
    source = tmp_path / "photos.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    paths = [tmp_path / folder / "1.jpg" for folder in "bac"]
    assert captions_of(paths, source, root=tmp_path) == [["b"], ["a"], []]
    source.write_text(json.dumps({"file": "a/1.jpg", "captions": "a dog"}), encoding="utf-8")
    with pytest.raises(LabelFileError, match="list of texts"):
        captions_of(paths, source, root=tmp_path)
