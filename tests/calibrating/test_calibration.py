from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lcse_plugins import Calibration, ScoringConfig, fit_calibration
from lcse_plugins.calibrating.fitting import fit_presence
from lcse_plugins.calibrating.unlabelled import COMMON_THINGS, estimate_calibration, spread_calibration
from lcse_plugins.errors import CalibrationError, CalibrationMismatch, InvalidOption
from lcse_plugins.scoring.calibration import PresenceCurve
from lcse_plugins.testing import ToyEncoder

LCSE = ScoringConfig(mode="lcse")


def planted(mu: float, seed: int, *, images: int = 50, concepts: int = 8) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    labels = rng.random((images, concepts)) < 0.35
    return mu + np.where(labels, 0.04, -0.04) + rng.normal(0, 0.02, labels.shape), labels


@pytest.mark.parametrize("objective", ["pairwise", "retrieval"])
@pytest.mark.parametrize(("mu", "seed"), [(0.05, 0), (0.22, 1), (0.30, 2)])
def test_recovers_a_planted_threshold_from_50_images(mu: float, seed: int, objective: Any) -> None:
    similarities, labels = planted(mu, seed)
    fit = fit_calibration(similarities, labels, objective=objective, betas=(10.0, 30.0), max_pairs=30, config=LCSE)
    assert fit.calibration.mu == pytest.approx(mu, abs=0.01)
    assert fit.accuracy > 0.95
    assert set(fit.per_operator) == {"NOT", "AND", "OR", "BUT-NOT", "NEITHER"}
    assert fit.table.shape == (len(fit.mus), 2)


@pytest.mark.parametrize("seed", [0, 2])
def test_a_retrieval_fit_answers_questions_too(seed: int) -> None:
    """By ranking alone μ comes out so high that hardly anything counts as seen; it need not, for half a point."""
    rng = np.random.default_rng(seed)
    labels = rng.random((60, 10)) < 0.1
    similarities = np.where(labels, 0.3, 0.1) + rng.normal(0, 0.12, labels.shape)
    fitted = partial(fit_calibration, similarities, labels, max_pairs=60, config=LCSE)
    bare, fit = (fitted(objective="retrieval", betas=(3.0, 5.0, 10.0), near_best=n) for n in (0.0, 0.005))
    assert bare.accuracy - 0.005 <= fit.accuracy <= bare.accuracy
    accuracies = [fitted(mus=[c.mu], betas=[c.beta]).accuracy for c in (bare.calibration, fit.calibration)]
    assert accuracies[0] < 0.65
    assert accuracies[1] > fitted(betas=(10.0,)).accuracy - 0.05


@pytest.mark.parametrize(
    ("similarities", "labels", "message"),
    [
        (np.zeros((5, 2)), np.zeros((5, 3)), "one shape"),
        (np.full((5, 2), np.nan), np.zeros((5, 2)), "NaN"),
        (np.zeros((5, 2)), np.full((5, 2), 2), "true or false"),
        (np.zeros((5, 2)), np.zeros((5, 2)), "label more images"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "label some images"),
    ],
)
def test_unusable_labels_are_refused(similarities: Any, labels: Any, message: str) -> None:
    with pytest.raises(CalibrationError, match=message):
        fit_calibration(similarities, labels)


@pytest.mark.parametrize(
    "options",
    [{"objective": "vibes"}, {"mus": []}, {"betas": []}, {"max_pairs": 0}, {"config": ScoringConfig(mode="holistic")}],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        fit_calibration(*planted(0.2, 0), **options)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    calibration = Calibration(mu=np.float32(0.25), beta=np.int64(30), encoder_id="e", presence=PresenceCurve(-4, 12))
    calibration.save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json") == calibration
    with pytest.raises(CalibrationMismatch):
        calibration.check("another")
    calibration.check("e")
    with pytest.raises(CalibrationError, match="numbers"):
        Calibration(mu="0.2", beta=30)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"mu": 1}',
        '{"mu": "x", "beta": 1}',
        '{"mu": 0.1, "beta": -1}',
        f'{{"mu": 1{"0" * 400}, "beta": 1}}',
        '{"mu": 0.1, "beta": 30, "encoder_id": 5}',
        '{"mu": 0.1, "beta": 30, "presence": {"slope": 3}}',
        '{"mu": 0.1, "beta": 30, "presence": 3}',
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(CalibrationError):
        Calibration.load(tmp_path / "c.json")
    with pytest.raises(CalibrationError):
        Calibration.load(tmp_path / "missing.json")


def test_of_values_that_serve_alike_the_middle_one_is_taken() -> None:
    labels = np.random.default_rng(0).random((40, 4)) < 0.5
    fit = fit_calibration(np.where(labels, 0.9, 0.1), labels, mus=np.linspace(0.2, 0.8, 7).tolist(), config=LCSE)
    assert (fit.accuracy, fit.calibration.mu) == pytest.approx((1.0, 0.5))
    fit = fit_calibration(*planted(0.2, 0), betas=(5.0, 10.0, 20.0, 40.0, 80.0))  # in which β has no part
    assert fit.calibration.beta == 20.0
    assert fit.calibration.mu == pytest.approx(0.2, abs=0.02)


def test_a_presence_curve_tells_how_often_a_concept_is_there() -> None:
    rng = np.random.default_rng(0)
    similarities = rng.uniform(-0.2, 0.8, (500, 40))
    labels = rng.random(similarities.shape) < 1 / (1 + np.exp(4.0 - 12.0 * similarities))
    curve = fit_presence(similarities, labels)
    assert curve is not None
    assert (curve.intercept, curve.slope) == pytest.approx((-4.0, 12.0), rel=0.05)
    assert [curve.probability(s) for s in (-50.0, 1 / 3, 50.0)] == pytest.approx([0.0, 0.5, 1.0], abs=0.02)


def test_labels_that_tell_no_presence_curve() -> None:
    similarities, labels = planted(0.2, 0)
    assert fit_presence(similarities, ~labels) is None, "it would fall"
    assert fit_presence(np.full_like(similarities, 0.2), labels) is None
    assert fit_presence(similarities[:3, :3], labels[:3, :3]) is None
    perfect = fit_presence(np.where(labels, 0.9, 0.1), labels)
    assert perfect is not None
    assert perfect.probability(0.1) < 0.05 < 0.95 < perfect.probability(0.9)


@pytest.mark.parametrize("values", [(0.2, 1e9), (0.2, 1e-9), (1e9, 20.0), (0.2, float("nan"))])
def test_numbers_that_would_overflow_are_refused(values: tuple[float, float]) -> None:
    with pytest.raises(CalibrationError):
        Calibration(mu=values[0], beta=values[1])
    with pytest.raises(CalibrationError):
        PresenceCurve(values[0], -values[1])


def test_anchored_scores_hear_what_is_affirmed_alone() -> None:
    """A BUT-NOT B scores (s_A + min(s_A, 1 - s_B)) / 2: 0.6, 0.1 and 0.5; with B heard too, the last would lead."""
    similarities = [[0.6, 0.1], [0.1, 0.6], [0.55, 0.55]]
    config = ScoringConfig(mode="anchored", aggregator="minmax")
    fit = fit_calibration(
        similarities, [[1, 0], [0, 1], [1, 1]], objective="retrieval", config=config, mus=[0.5], betas=[20.0]
    )
    assert fit.per_operator["BUT-NOT"] == 1.0


# without labels


def synthetic(*, presence: float = 0.05, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Similarities of an encoder like CLIP: 0.19 ± 0.02 where a thing is absent, 0.27 ± 0.025 where it is present."""
    rng = np.random.default_rng(seed)
    labels = rng.random((600, 20)) < presence
    return np.where(labels, rng.normal(0.27, 0.025, labels.shape), rng.normal(0.19, 0.02, labels.shape)), labels


@pytest.mark.parametrize("presence", [0.02, 0.05, 0.1])
def test_without_labels_it_comes_near_the_labelled_accuracy(presence: float) -> None:
    similarities, labels = synthetic(presence=presence)
    free = spread_calibration(similarities)
    best = fit_calibration(similarities, labels, max_pairs=20)
    reached = fit_calibration(similarities, labels, max_pairs=20, mus=[free.mu], betas=[free.beta])
    assert 0.2 < free.mu < 0.24
    assert 30 < free.beta < 60
    assert reached.accuracy > best.accuracy - 0.06


def test_without_labels_it_follows_shift_and_scale() -> None:
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
    names = [f"{COMMON_THINGS[i % len(COMMON_THINGS)]} scenery{i}.jpg" for i in range(120)]
    assert estimate_calibration(encoder, encoder.encode_images(names)).encoder_id == encoder.encoder_id
