"""The diagnosis tells an encoder that hears no operators from one that does."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence

import numpy as np
import pytest

from lcse_plugins.bench.calibration import sweep_calibration
from lcse_plugins.bench.diagnose import Diagnosis, diagnose
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
    assert deaf.sensitivity["operator swap"] == pytest.approx(0.0, abs=1e-5)
    assert (deaf.sensitivity["unrelated"] or 0) > (deaf.sensitivity["concept swap"] or 0) > 0.1
    assert sum(row["queries"] for row in deaf.gain_by_quality.values()) == 6 * 4


def test_an_encoder_that_hears_is_told_apart(deaf: Diagnosis) -> None:
    _, images, vectors = toy_world()
    hearing = diagnose(Hearing(dimension=256), images, vectors, pairs=6)
    assert hearing.polarity_auc > 0.9
    assert hearing.polarity_correlation < 0
    assert max(hearing.quadrants["NEITHER"], key=hearing.quadrants["NEITHER"].__getitem__) == "neither"
    assert (hearing.sensitivity["operator swap"] or 0) > 0.3


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
        assert "concept swap" in found.to_text()


def test_it_is_printed_and_kept(deaf: Diagnosis) -> None:
    assert json.loads(json.dumps(deaf.to_json()))["pairs"] == 6
    assert "BUT_NOT" in deaf.to_text()


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
    assert "without labels: μ =" in sweep.to_text()


def test_few_images_are_swept_without_the_row_that_needs_more() -> None:
    encoder, images, vectors = toy_world(images=40)
    sweep = sweep_calibration(encoder, images, vectors)
    assert sweep.to_json()["unlabelled"] is None
    assert "at least 50 images" in sweep.to_text()
