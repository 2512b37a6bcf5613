"""The diagnosis tells an encoder that hears no operators from one that does; the sweep shows both objectives."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from lcse_plugins.bench.calibration import sweep_calibration, sweep_text
from lcse_plugins.bench.diagnose import diagnose, diagnosis_text
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.testing import ToyEncoder
from tests.bench.worlds import CLASSES, toy_world


class Hearing(ToyEncoder):
    """A toy encoder that hears "no" and "nor": the words after it count against the text."""

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        rows = []
        for text in texts:
            row = np.zeros(self.dimension)
            for part in filter(None, map(str.strip, re.split(r"\b(?=no\b|neither\b|nor\b)", text))):
                words = super().encode_texts([part])[0]
                row = row + (-words if part.startswith(("no", "neither", "nor")) else words)
            rows.append(row / np.linalg.norm(row))
        return np.asarray(rows, dtype=np.float32)


def test_a_deaf_encoder_is_shown_to_be_one() -> None:
    encoder, images, vectors = toy_world()
    deaf = diagnose(encoder, images, vectors, pairs=6)
    assert deaf["detection_auc"] > 0.95
    assert deaf["polarity_auc"] < 0.1
    assert deaf["polarity_correlation"] == pytest.approx(1.0)
    for row in deaf["quadrants"].values():
        assert max(row, key=row.__getitem__) == "both"
    assert deaf["sensitivity"]["operator swap"] == pytest.approx(0.0, abs=1e-5)
    assert deaf["sensitivity"]["unrelated"] > deaf["sensitivity"]["concept swap"] > 0.1
    assert sum(row["queries"] for row in deaf["gain_by_quality"].values()) == 6 * 4
    assert all(row["anchored"] > 0 for row in deaf["gain_by_quality"].values())
    with pytest.raises(InvalidOption, match="label more images"):
        diagnose(encoder, images, vectors, fewest=60)


def test_an_encoder_that_hears_is_told_apart() -> None:
    _, images, vectors = toy_world()
    hearing = diagnose(Hearing(dimension=256), images, vectors, pairs=6)
    assert hearing["polarity_auc"] > 0.9
    assert hearing["polarity_correlation"] < 0
    assert max(hearing["quadrants"]["NEITHER"], key=hearing["quadrants"]["NEITHER"].__getitem__) == "neither"
    assert hearing["sensitivity"]["operator swap"] > 0.3


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_texts_are_changed_where_there_are_other_classes(classes: int) -> None:
    encoder, images, vectors = toy_world()
    few = LabelledImages(images.paths, images.labels[:, :classes], CLASSES[:classes])
    found = diagnose(encoder, few, vectors, pairs=20)
    assert (found["sensitivity"]["concept swap"] is None) == (classes < 3)
    assert (found["sensitivity"]["unrelated"] is None) == (classes < 4)
    assert "concept swap" in diagnosis_text(found)


def test_the_sweep_shows_both_objectives_and_no_labels() -> None:
    encoder, images, vectors = toy_world()
    seen: list[tuple[int, int]] = []
    sweep = sweep_calibration(encoder, images, vectors, progress=lambda *count: seen.append(count))
    assert set(sweep["objectives"]) == set(sweep["unlabelled"]["values"]) == {"pairwise", "retrieval"}
    assert seen[-1][0] == seen[-1][1]
    for name, found in sweep["objectives"].items():
        assert max(found["per_mu"].values()) == found["value"] >= sweep["unlabelled"]["values"][name]
    assert "without labels: μ =" in sweep_text(sweep)
