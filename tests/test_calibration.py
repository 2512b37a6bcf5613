from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lcse_plugins import Calibration, fit_calibration, load_calibration
from lcse_plugins.errors import CalibrationError, CalibrationMismatch, InvalidOption


def planted(mu: float, seed: int, *, images: int = 50, concepts: int = 8) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    labels = rng.random((images, concepts)) < 0.35
    return mu + np.where(labels, 0.04, -0.04) + rng.normal(0, 0.02, labels.shape), labels


@pytest.mark.parametrize("objective", ["pairwise", "retrieval"])
@pytest.mark.parametrize(("mu", "seed"), [(0.05, 0), (0.22, 1), (0.30, 2)])
def test_recovers_a_planted_threshold_from_50_images(mu: float, seed: int, objective: Any) -> None:
    similarities, labels = planted(mu, seed)
    fit = fit_calibration(similarities, labels, objective=objective, betas=(10.0, 30.0), max_pairs=30)
    assert fit.calibration.mu == pytest.approx(mu, abs=0.01)
    assert fit.accuracy > 0.95
    assert set(fit.per_operator) == {"NOT", "AND", "OR", "BUT-NOT", "NEITHER"}
    assert fit.table.shape == (len(fit.mus), len(fit.betas))


def test_same_seed_same_fit() -> None:
    similarities, labels = planted(0.2, 5)
    first, second = (
        fit_calibration(similarities, labels, betas=(30.0,), mus=(0.1, 0.2, 0.3), encoder_id="e") for _ in range(2)
    )
    assert first.calibration == second.calibration == Calibration(mu=0.2, beta=30.0, encoder_id="e")


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
    with pytest.raises(InvalidOption, match="objective"):
        fit_calibration(*planted(0.2, 0), objective="vibes")  # type: ignore[arg-type]
    nothing: dict[str, Any]
    for nothing in ({"mus": []}, {"betas": []}, {"max_pairs": 0}):
        with pytest.raises(InvalidOption, match="at least one"):
            fit_calibration(*planted(0.2, 0), **nothing)


def test_round_trip(tmp_path: Path) -> None:
    calibration = Calibration(mu=0.21, beta=25.0, encoder_id="starter/1")
    calibration.save(tmp_path / "c.json")
    assert load_calibration(tmp_path / "c.json") == calibration
    with pytest.raises(CalibrationMismatch):
        calibration.check("starter/2")
    calibration.check("starter/1")


@pytest.mark.parametrize("content", ["", "[]", '{"mu": 1}', '{"mu": "x", "beta": 1}', '{"mu": 0.1, "beta": -1}'])
def test_bad_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(CalibrationError):
        load_calibration(tmp_path / "c.json")
    with pytest.raises(CalibrationError):
        load_calibration(tmp_path / "missing.json")


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_similarities_that_are_all_alike_rank_by_chance(order: slice) -> None:
    labels = np.sort(np.random.default_rng(0).random((200, 2)) < 0.4, axis=0)[order]
    fit = fit_calibration(np.full((200, 2), 0.2), labels, objective="retrieval", mus=[0.2], betas=[20.0])
    assert fit.per_operator == pytest.approx(dict.fromkeys(fit.per_operator, 0.5))
