"""Calibration without labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.build_factor import build_factor
from lcse_plugins.bench.factor import measure_factor
from lcse_plugins.bench.photographs import RememberingEncoder, half_of, take_images
from lcse_plugins.calibrating.fitting import fit_calibration
from lcse_plugins.calibrating.labelled import read_labels
from lcse_plugins.calibrating.unlabelled import COMMON_THINGS, estimate_calibration, spread_calibration
from lcse_plugins.encoders.protocol import concept_vectors
from lcse_plugins.encoders.starter import StarterEncoder
from lcse_plugins.errors import CalibrationError, InvalidOption
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.testing import ToyEncoder


def synthetic(*, presence: float = 0.05, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Similarities of an encoder like CLIP: 0.19 ± 0.02 where a thing is absent, 0.27 ± 0.025 where it is present."""
    rng = np.random.default_rng(seed)
    labels = rng.random((600, 20)) < presence
    return np.where(labels, rng.normal(0.27, 0.025, labels.shape), rng.normal(0.19, 0.02, labels.shape)), labels


@pytest.mark.parametrize("presence", [0.02, 0.05, 0.1])
def test_it_comes_near_the_labelled_accuracy(presence: float) -> None:
    similarities, labels = synthetic(presence=presence)
    free = spread_calibration(similarities)
    best = fit_calibration(similarities, labels, max_pairs=20)
    reached = fit_calibration(similarities, labels, max_pairs=20, mus=[free.mu], betas=[free.beta])
    assert 0.2 < free.mu < 0.24
    assert 30 < free.beta < 60
    assert reached.accuracy > best.accuracy - 0.06


def test_it_follows_shift_and_scale() -> None:
    similarities, _ = synthetic()
    base, moved = spread_calibration(similarities), spread_calibration(3.0 * similarities - 0.5)
    assert moved.mu == pytest.approx(3.0 * base.mu - 0.5)
    assert moved.beta == pytest.approx(base.beta / 3.0)


def test_too_little_to_go_by_is_refused() -> None:
    encoder = ToyEncoder()
    with pytest.raises(CalibrationError, match="too few"):
        estimate_calibration(encoder, encoder.encode_images(["dog.jpg"] * 10))
    with pytest.raises(CalibrationError, match="tell nothing apart"):
        spread_calibration(np.full((5, 5), 0.2))
    with pytest.raises(CalibrationError):
        spread_calibration(np.array([[0.1, np.nan]]))
    with pytest.raises(CalibrationError, match="no similarities"):
        spread_calibration([])
    with pytest.raises(CalibrationError, match="not the encoder's"):
        estimate_calibration(encoder, np.ones((60, 3), dtype=np.float32))
    with pytest.raises(InvalidOption, match="vocabulary"):
        estimate_calibration(encoder, encoder.encode_images(["dog.jpg"] * 60), vocabulary=())


def test_it_belongs_to_the_encoder() -> None:
    encoder = ToyEncoder()
    names = [f"{COMMON_THINGS[i % len(COMMON_THINGS)]} scenery{i}.jpg" for i in range(120)]
    assert estimate_calibration(encoder, encoder.encode_images(names)).encoder_id == encoder.encoder_id


def test_on_photographs_it_decides_as_well_as_with_labels(shared_data: Path) -> None:
    """Forced choices on one half of some photographs; the labelled calibration is fitted on the other half."""
    encoder = RememberingEncoder(StarterEncoder(threads=1))
    images = read_labels(shared_data / "photos" / "photos.jsonl")
    images = take_images(images, range(0, len(images), 2))
    vectors = encoder.encode_images(images.paths)
    fitted, judged = half_of(images, "A"), half_of(images, "B")
    similarities = vectors[fitted] @ concept_vectors(encoder, images.classes).T
    grid = np.linspace(0.0, 0.3, 13).tolist()
    labelled = fit_calibration(similarities, images.labels[fitted], mus=grid, betas=[5.0, 20.0]).calibration
    free = estimate_calibration(encoder, vectors[fitted])
    samples = [s for s in build_factor(take_images(images, judged)) if s.test_type == "operator"]
    named = {path.name: vector for path, vector in zip(images.paths, vectors, strict=True)}
    with_labels, without = (
        measure_factor(samples, LogicScorer(encoder, calibration=calibration), named)["overall"]
        for calibration in (labelled, free)
    )
    assert with_labels is not None
    assert without is not None
    assert without > with_labels - 1.5
