"""The diagnosis tells an encoder that hears no operators from one that does."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser

import numpy as np
import pytest

from lcse_plugins.bench.calibration_sweep import sweep_calibration, sweep_page
from lcse_plugins.bench.charts import bar_chart, heat_map, html_table, line_chart
from lcse_plugins.bench.diagnose import Diagnosis, diagnose
from lcse_plugins.bench.diagnose_page import diagnosis_page, diagnosis_text
from lcse_plugins.bench.phrasing import article
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.testing import ToyEncoder
from tests.bench.worlds import CLASSES, toy_world


class Hearing(ToyEncoder):
    """A toy encoder that hears "no" and "nor": the word after it counts against the text."""

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        rows = []
        for text in texts:
            row = np.zeros(self.dimension)
            for part in re.split(r"\b(?=no\b|neither\b|nor\b)", text):
                negated = part.startswith(("no", "neither", "nor"))
                words = (
                    super().encode_texts([part])[0] if part.strip(" ,") not in ("", "no") else np.zeros(self.dimension)
                )
                row = row + (-words if negated else words)
            rows.append(row / np.linalg.norm(row))
        return np.asarray(rows, dtype=np.float32)


@pytest.fixture(scope="module")
def deaf() -> Diagnosis:
    encoder, images, vectors = toy_world()
    return diagnose(encoder, images, vectors, pairs=6)


def test_a_deaf_encoder_is_shown_to_be_one(deaf: Diagnosis) -> None:
    assert deaf.detection_auc > 0.95
    assert deaf.polarity_auc < 0.1
    assert deaf.polarity_correlation == pytest.approx(1.0)
    for operator in ("AND", "OR", "BUT_NOT", "NEITHER"):
        assert max(deaf.quadrants[operator], key=deaf.quadrants[operator].__getitem__) == "both"
        assert deaf.aggregator_fit[operator]["mean"] > deaf.aggregator_fit[operator]["max"]
        assert deaf.vectors.gain[operator] == pytest.approx(0.0, abs=1e-6)
        first, second, share = deaf.vectors.span[operator]
        assert first == pytest.approx(second, abs=0.1)
        assert share == pytest.approx(1.0, abs=1e-3)
    assert deaf.sensitivity["operator swap"] == pytest.approx(0.0, abs=1e-5)
    assert (deaf.sensitivity["unrelated"] or 0) > (deaf.sensitivity["concept swap"] or 0) > 0.1
    assert sum(row["queries"] for row in deaf.gain_by_quality.values()) == 6 * 4


def test_an_encoder_that_hears_is_told_apart(deaf: Diagnosis) -> None:
    _, images, vectors = toy_world()
    hearing = diagnose(Hearing(dimension=256), images, vectors, pairs=6)
    assert hearing.polarity_auc > 0.9
    assert hearing.polarity_correlation < 0
    assert hearing.vectors.alignment["BUT_NOT"] > 0.5 > (hearing.vectors.nulls["BUT_NOT"]["random"] or 0) + 0.3
    assert max(hearing.quadrants["NEITHER"], key=hearing.quadrants["NEITHER"].__getitem__) == "neither"
    assert (hearing.sensitivity["operator swap"] or 0) > 0.3


class Literal(ToyEncoder):
    """A toy encoder that knows "an umbrella" and "no umbrella" and takes every other text for something else."""

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        known = {form for name in CLASSES for form in (article(name), f"no {name}")}
        return super().encode_texts([text if text in known else f"{text} nonsense".replace(" ", "") for text in texts])


def test_a_thing_is_asked_for_with_its_article() -> None:
    _, images, vectors = toy_world()
    found = diagnose(Literal(dimension=256), images, vectors, pairs=2)
    assert found.detection_auc > 0.95
    assert found.polarity_correlation == pytest.approx(1.0)


def test_a_changed_text_names_other_classes() -> None:
    encoder, images, vectors = toy_world()
    for classes in (2, 3, 4):
        few = LabelledImages(images.paths, images.labels[:, :classes], CLASSES[:classes])
        found = diagnose(encoder, few, vectors, pairs=20)
        assert (found.sensitivity["concept swap"] is None) == (classes < 3)
        assert (found.sensitivity["unrelated"] is None) == (classes < 4)
        if classes == 3:  # the third class is the only one that can be swapped in
            texts = [(f"{a} and {b}", f"{a} and {c}") for a, b, c in itertools.permutations(CLASSES[:3])]
            before, after = (vectors @ encoder.encode_texts(column).T for column in zip(*texts, strict=True))
            moved = np.abs(after - before).mean() / before.std(axis=0).mean()
            assert found.sensitivity["concept swap"] == pytest.approx(moved, rel=1e-4)
        assert (found.vectors.nulls["NEITHER"]["another pair"] is None) == (classes < 4)
        assert "concept swap" in diagnosis_text(found)
        assert "<svg" in diagnosis_page(found, title="few")


def test_another_pair_shares_no_concept() -> None:
    """With one-hot words, what "neither … nor" adds for other concepts lies at a right angle to a and b."""
    words = ("dog", "cat", "umbrella", "bench")
    encoder = Hearing({word: row for word, row in zip(words, np.eye(4), strict=True)})
    _, images, _ = toy_world()
    few = LabelledImages(images.paths, images.labels[:, :4], words)
    vectors = np.abs(np.random.default_rng(0).normal(few.labels, 0.1)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert diagnose(encoder, few, vectors).vectors.nulls["NEITHER"]["another pair"] == pytest.approx(0.0, abs=1e-6)


def test_it_is_printed_and_kept(deaf: Diagnosis) -> None:
    assert json.loads(json.dumps(deaf.to_json()))["pairs"] == 6
    text, page = diagnosis_text(deaf), diagnosis_page(deaf, title="Diagnosis of <toy>")
    assert "BUT_NOT" in text
    assert page.count("<svg") >= 5
    assert "&lt;toy&gt;" in page
    assert not re.search(r"https?://|<script|<link|<img", page), "the page asks the network for nothing"
    HTMLParser().feed(page)


def test_too_few_labels_are_refused() -> None:
    encoder, images, vectors = toy_world()
    with pytest.raises(InvalidOption, match="label more images"):
        diagnose(encoder, images, vectors, fewest=60)


def test_the_sweep_shows_both_objectives_and_no_labels() -> None:
    encoder, images, vectors = toy_world()
    seen: list[tuple[int, int]] = []
    sweep = sweep_calibration(encoder, images, vectors, progress=lambda done, total: seen.append((done, total)))
    data = sweep.to_json()
    assert set(data["objectives"]) == {"pairwise", "retrieval"}
    assert seen[-1][0] == seen[-1][1]
    for fit in sweep.fits.values():
        assert fit.accuracy >= sweep.unlabelled_values["pairwise"] - 0.2
    page = sweep_page(sweep, title="Sweep")
    assert page.count("<svg") == 6


def test_few_images_are_swept_without_the_row_that_needs_more() -> None:
    encoder, images, vectors = toy_world(images=40)
    sweep = sweep_calibration(encoder, images, vectors)
    assert sweep.to_json()["unlabelled"] is None
    assert "at least 50 images" in sweep_page(sweep, title="Sweep")


def test_charts_hold_their_numbers() -> None:
    line = line_chart("t", {"a": [(1, 2), (3, 4)], "b": [(1, 5), (3, 6)]}, x_label="x", y_label="y", log_x=True)
    assert line.count("<polyline") == 2
    assert bar_chart("t", {"up": 1.0, "down": -2.0}).count("<rect") == 2
    assert "0.25" in heat_map("t", ["r"], ["c", "d"], [[0.25, -1.0]])
    assert html_table(["a", "b"], [["x & y", 1.25], ["z", None]]).count("<tr>") == 3
