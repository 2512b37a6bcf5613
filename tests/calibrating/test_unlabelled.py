"""Calibration without labels."""

from __future__ import annotations

import numpy as np
import pytest

from lcse_plugins.calibrating.fitting import fit_calibration
from lcse_plugins.calibrating.unlabelled import COMMON_THINGS, estimate_calibration, spread_calibration
from lcse_plugins.errors import CalibrationError
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


def test_it_belongs_to_the_encoder() -> None:
    encoder = ToyEncoder()
    names = [f"{COMMON_THINGS[i % len(COMMON_THINGS)]} scenery{i}.jpg" for i in range(120)]
    assert estimate_calibration(encoder, encoder.encode_images(names)).encoder_id == encoder.encoder_id
