"""Fit a calibration: the grid search of the paper, from labelled images.

Every test asks two complementary queries about concepts A and B (NOT, AND, OR, BUT-NOT, NEITHER). The `pairwise`
objective is the paper's: for one image, the query that is true must score higher than the one that is false. The
`retrieval` objective is what a user sees: among all images, those for which a query is true must rank above the others
(area under the ROC curve). Pairwise accuracy fixes μ well and hardly tells β. The retrieval objective tells β, but
hardly minds a μ that is far too high, where nothing counts as seen: among values of μ that serve it nearly alike,
pairwise accuracy chooses. Where β has no part, as in the default mode, the middle of the grid is taken.

The presence curve is another fit of the same labels: how often a concept is there at a given similarity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lcse_plugins.calibrating.operator_tests import OperatorTest, operator_tests, pairwise_accuracy, retrieval_auc
from lcse_plugins.errors import CalibrationError, InvalidOption
from lcse_plugins.scoring.arguments import check_choice, check_count
from lcse_plugins.scoring.calibration import Calibration, PresenceCurve
from lcse_plugins.scoring.config import DEFAULT_CONFIG, ScoringConfig
from lcse_plugins.scoring.logic import probability

__all__ = ["CalibrationFit", "Objective", "fit_calibration", "fit_presence"]

Objective = Literal["pairwise", "retrieval"]

GRID_BETA = (3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0)
GRID_MU_STEPS = 41

SAME = 1e-9
"""Values of an objective that differ by less count as equal."""

NEAR_BEST = 0.005
"""How far below its best the retrieval objective may lie for pairwise accuracy to choose μ: half a point."""

FEWEST_LABELS = 10
"""Concepts shown, and not shown, that a presence curve needs at least."""

_Floats: TypeAlias = NDArray[np.float64]
_Booleans: TypeAlias = NDArray[np.bool_]
Measure: TypeAlias = Callable[[OperatorTest, Calibration, ScoringConfig], float]
Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class CalibrationFit:
    """The outcome of a grid search.

    Attributes:
        calibration: The best μ and β, and the presence curve where the labels allow one.
        accuracy: What the objective gave for them, in [0, 1].
        per_operator: The same for each operator.
        mus: (a,) μ of the grid.
        table: (a, b) Objective over the grid of μ and β.
    """

    calibration: Calibration
    accuracy: float
    per_operator: dict[str, float]
    mus: _Floats
    table: _Floats


def fit_calibration(
    similarities: ArrayLike,
    labels: ArrayLike,
    *,
    encoder_id: str | None = None,
    objective: Objective = "pairwise",
    config: ScoringConfig = DEFAULT_CONFIG,
    mus: Sequence[float] | None = None,
    betas: Sequence[float] = GRID_BETA,
    near_best: float = NEAR_BEST,
    max_pairs: int = 60,
    seed: int = 0,
    progress: Progress | None = None,
) -> CalibrationFit:
    """Find the μ and β under which logic agrees best with labels.

    Args:
        similarities: (n_images, n_concepts) concept similarities, as `concept_vectors` makes them.
        labels: (n_images, n_concepts) whether the image shows the concept.
        encoder_id: The encoder of the similarities, kept in the calibration.
        objective: `pairwise` (the paper's) or `retrieval`.
        config: The mode and aggregation to fit for.
        mus: Values of μ to try; by default 41 between the 1st and 99th percentile of the similarities.
        betas: Values of β to try.
        near_best: How far below its best the retrieval objective may lie where pairwise accuracy chooses μ; 0 takes the
            best alone. Not used by `pairwise`.
        max_pairs: Pairs of concepts drawn for the tests.
        seed: Seed of that draw.
        progress: Called with (done, total) grid cells.

    Raises:
        CalibrationError: the labels do not tell the concepts apart: every test needs images with and without.
        InvalidOption: the objective is unknown, there is nothing to try, or μ and β have no part in the mode.
    """
    table, truth = _checked(similarities, labels)
    check_choice("objective", objective, get_args(Objective))
    check_count("max_pairs", max_pairs)
    if (mus is not None and not len(mus)) or not len(betas):
        raise InvalidOption("give at least one μ and one β to try")
    if config.mode == "holistic":
        raise InvalidOption("mode holistic uses neither μ nor β; fit for another")
    low, high = np.percentile(table, [1, 99])
    grid_mu = np.linspace(low, high, GRID_MU_STEPS) if mus is None else np.asarray(mus, dtype=np.float64)
    grid_beta = np.asarray(betas, dtype=np.float64)
    tests = operator_tests(table, truth, max_pairs=max_pairs, seed=seed)

    def measured(measure: Measure, cells: _Booleans, progress: Progress | None = None) -> _Floats:
        """(a, b, tests) what a measure gives for some cells of the grid; elsewhere -1."""
        quality = np.full((*cells.shape, len(tests)), -1.0)
        chosen = np.argwhere(cells).tolist()
        for done, (i, j) in enumerate(chosen, start=1):
            trial = Calibration(mu=float(grid_mu[i]), beta=float(grid_beta[j]))
            quality[i, j] = [measure(test, trial, config) for test in tests.values()]
            if progress is not None:
                progress(done, len(chosen))
        return quality

    everywhere = np.ones((len(grid_mu), len(grid_beta)), dtype=bool)
    quality = measured(pairwise_accuracy if objective == "pairwise" else retrieval_auc, everywhere, progress)
    mean = quality.mean(axis=2)
    i, j = _middle_of_best(mean)
    if objective == "retrieval" and near_best:
        i, _ = _middle_of_best(measured(pairwise_accuracy, mean >= mean.max() - near_best).mean(axis=2))
        j = _middle(mean[i] >= mean[i].max() - SAME)
    mu, beta = float(grid_mu[i]), float(grid_beta[j])
    return CalibrationFit(
        calibration=Calibration(mu=mu, beta=beta, encoder_id=encoder_id, presence=fit_presence(table, truth)),
        accuracy=float(mean[i, j]),
        per_operator=dict(zip(tests, quality[i, j].tolist(), strict=True)),
        mus=grid_mu,
        table=mean,
    )


def fit_presence(similarities: ArrayLike, labels: ArrayLike) -> PresenceCurve | None:
    """The logistic curve of "is it there?" over all images and concepts; None where the labels do not tell one.

    Fitted by Newton's method to targets a little inside 0 and 1, so that labels which similarity tells apart perfectly
    give a finite curve. It holds for concepts about as common as those labelled.

    Args:
        similarities: (n_images, n_concepts) concept similarities.
        labels: (n_images, n_concepts) whether the image shows the concept.
    """
    table, truth = _checked(similarities, labels)
    x, shown = table.ravel(), truth.ravel()
    there, absent = int(shown.sum()), int((~shown).sum())
    if min(there, absent) < FEWEST_LABELS:
        return None
    middle, spread = float(x.mean()), float(x.std())
    if spread < SAME:
        return None
    design = np.stack([np.ones_like(x), (x - middle) / spread], axis=1)
    target = np.where(shown, (there + 1) / (there + 2), 1 / (absent + 2))
    found = np.array([math.log(there / absent), 0.0])
    for _ in range(50):
        chance = probability(design @ found)
        weight = np.maximum(chance * (1.0 - chance), 1e-9)
        step = np.linalg.solve((design * weight[:, None]).T @ design, design.T @ (target - chance))
        found += step * min(1.0, 2.0 / float(np.abs(step).max(initial=1e-12)))
        if np.abs(step).max() < 1e-10:
            break
    slope = float(found[1]) / spread
    return PresenceCurve(float(found[0]) - slope * middle, slope) if slope > 0 else None


def _middle_of_best(table: _Floats) -> tuple[int, int]:
    """The cell in the middle of the plateau that cannot be told from the best."""
    best = table >= table.max() - SAME
    counts = best.sum(axis=0)
    column = _middle(counts == counts.max())
    return _middle(best[:, column]), column


def _middle(chosen: _Booleans) -> int:
    """Where the middle one of those chosen stands."""
    places = np.flatnonzero(chosen)
    return int(places[len(places) // 2])


def _checked(similarities: ArrayLike, labels: ArrayLike) -> tuple[_Floats, _Booleans]:
    table, truth = np.asarray(similarities, dtype=np.float64), np.asarray(labels)
    if table.ndim != 2 or table.shape != truth.shape:
        raise CalibrationError(
            f"similarities and labels are tables (images, concepts) of one shape, not {table.shape} and {truth.shape}"
        )
    if not table.size:
        raise CalibrationError("there are no similarities to calibrate by; label some images")
    if not np.isfinite(table).all():
        raise CalibrationError("similarities hold NaN or infinite values")
    if not np.isin(truth, (0, 1)).all():
        raise CalibrationError("labels are true or false for each image and concept")
    return table, truth.astype(bool)
