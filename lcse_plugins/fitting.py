"""Fit a calibration: the grid search of the paper, from labelled images.

Every test asks two complementary queries about concepts A and B (NOT, AND, OR, BUT-NOT, NEITHER). The `pairwise`
objective is the paper's: for one image, the query that is true must score higher than the one that is false. The
`retrieval` objective is what a user sees: among all images, those for which a query is true must rank above the others
(area under the ROC curve). Pairwise accuracy fixes μ well and hardly tells β; the retrieval objective tells both.

The mean of the concepts' similarities stands in for that of the whole text, which is what a dual encoder makes of a
query; in mode `anchored`, the mean of the affirmed ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lcse_plugins.arguments import check_count, is_whole
from lcse_plugins.calibrate import Calibration
from lcse_plugins.config import DEFAULT_CONFIG, ScoringConfig
from lcse_plugins.edit import score_tree
from lcse_plugins.errors import CalibrationError, InvalidOption
from lcse_plugins.query import And, Concept, Not, Or, Query, concepts, leaves
from lcse_plugins.ranks import mid_ranks

__all__ = ["GRID_BETA", "CalibrationFit", "Objective", "draw_pairs", "fit_calibration"]

Objective = Literal["pairwise", "retrieval"]

GRID_BETA = (3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0)
GRID_MU_STEPS = 41

MOST_PAIRS_SHUFFLED = 4_000_000
"""Of up to so many pairs all are shuffled to draw some, which takes 32 MB; of more, some are drawn directly."""

_A, _B = Concept("A"), Concept("B")
_TESTS: dict[str, tuple[Query, Query]] = {
    "NOT": (Not(_A), _A),
    "AND": (And((_A, _B)), And((_A, Not(_B)))),
    "OR": (Or((_A, _B)), And((Not(_A), Not(_B)))),
    "BUT-NOT": (And((_A, Not(_B))), And((_A, _B))),
    "NEITHER": (And((Not(_A), Not(_B))), Or((_A, _B))),
}
_Booleans: TypeAlias = NDArray[np.bool_]
_Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CalibrationFit:
    """The outcome of a grid search.

    Attributes:
        calibration: the best μ and β.
        accuracy: what the objective gave for them, in [0, 1].
        per_operator: the same for each operator.
        mus: (a,) μ of the grid.
        betas: (b,) β of the grid.
        table: (a, b) objective over the grid.
    """

    calibration: Calibration
    accuracy: float
    per_operator: dict[str, float]
    mus: _Floats
    betas: _Floats
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
    max_pairs: int = 60,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
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
        max_pairs: Pairs of concepts drawn for the tests.
        seed: Of that draw.
        progress: Called with (done, total) grid cells.

    Raises:
        CalibrationError: the labels do not tell the concepts apart: every test needs images with and without.
        InvalidOption: the objective is unknown, there is nothing to try, or μ and β have no part in the mode.
    """
    table, truth = _checked(similarities, labels)
    check_count("max_pairs", max_pairs)
    if (mus is not None and not len(mus)) or not len(betas):
        raise InvalidOption("give at least one μ and one β to try")
    if not is_whole(seed) or seed < 0:
        raise InvalidOption(f"seed is a whole number and not negative, not {seed!r}")
    if config.mode == "holistic":
        raise InvalidOption("mode holistic uses neither μ nor β; fit for another")
    if objective not in get_args(Objective):
        raise InvalidOption(f"unknown objective {objective!r}; choose one of {', '.join(get_args(Objective))}")
    low, high = np.percentile(table, [1, 99])
    grid_mu = np.linspace(low, high, GRID_MU_STEPS) if mus is None else np.asarray(mus, dtype=np.float64)
    grid_beta = np.asarray(betas, dtype=np.float64)
    tests = _tests(table, truth, max_pairs=max_pairs, seed=seed)
    measure = _pairwise if objective == "pairwise" else _retrieval
    quality = np.zeros((len(grid_mu), len(grid_beta), len(tests)))
    for done, (i, j) in enumerate(itertools.product(range(len(grid_mu)), range(len(grid_beta)))):
        trial = Calibration(mu=float(grid_mu[i]), beta=float(grid_beta[j]))
        quality[i, j] = [measure(test, trial, config) for test in tests.values()]
        if progress is not None:
            progress(done + 1, len(grid_mu) * len(grid_beta))
    mean = quality.mean(axis=2)
    i, j = _middle_of_best(mean)
    return CalibrationFit(
        calibration=Calibration(mu=float(grid_mu[i]), beta=float(grid_beta[j]), encoder_id=encoder_id),
        accuracy=float(mean[i, j]),
        per_operator={name: float(value) for name, value in zip(tests, quality[i, j], strict=True)},
        mus=grid_mu,
        betas=grid_beta,
        table=mean,
    )


@dataclass(frozen=True, eq=False)
class _Test:
    """One operator over pairs of concepts: (pairs, n) similarities, and where the query and its contrast are true."""

    said: Query
    contrast: Query
    similarities: dict[str, _Floats]
    said_true: _Booleans
    contrast_true: _Booleans


def _tests(table: _Floats, truth: _Booleans, *, max_pairs: int, seed: int) -> dict[str, _Test]:
    usable = [c for c in range(truth.shape[1]) if 0 < truth[:, c].sum() < len(truth)]
    if len(usable) < 2:
        raise CalibrationError(
            "the tests need at least two concepts, each shown by some images and not by others; label more images"
        )
    first, second = np.array(usable)[draw_pairs(len(usable), max_pairs, seed=seed)].T
    similar = {"A": table[:, first].T, "B": table[:, second].T}
    shown = {"A": truth[:, first].T, "B": truth[:, second].T}
    tests = {}
    for name, (said, contrast) in _TESTS.items():
        said_true, contrast_true = _holds(said, shown), _holds(contrast, shown)
        if (said_true & ~contrast_true).any() and (contrast_true & ~said_true).any():
            tests[name] = _Test(said, contrast, similar, said_true, contrast_true)
    return tests


def draw_pairs(items: int, most: int, *, seed: int) -> NDArray[np.int64]:
    """(k, 2) distinct ordered pairs of different items, at most so many, without listing all there are."""
    rng, others = np.random.default_rng(seed), items - 1
    total = items * others
    if total <= MOST_PAIRS_SHUFFLED:
        chosen = rng.permutation(total)[:most]
    else:
        chosen = rng.choice(total, min(most, total), replace=False)
    first, second = np.divmod(chosen, others)
    return np.stack([first, second + (second >= first)], axis=1)


def _holds(query: Query, shown: dict[str, _Booleans]) -> _Booleans:
    match query:
        case Concept(text):
            return shown[text]
        case Not(child):
            return ~_holds(child, shown)
        case And(children):
            return np.asarray(np.all([_holds(child, shown) for child in children], axis=0))
        case Or(children):
            return np.asarray(np.any([_holds(child, shown) for child in children], axis=0))
        case _:
            raise AssertionError("the tests hold no other nodes")


def _pairwise(test: _Test, calibration: Calibration, config: ScoringConfig) -> float:
    """Share of images for which the true query of the two scores higher, each truth weighing the same."""
    margin = _score(test.said, test, calibration, config) - _score(test.contrast, test, calibration, config)
    said, contrast = test.said_true & ~test.contrast_true, test.contrast_true & ~test.said_true
    right_said = np.mean(margin[said] > 0) + 0.5 * np.mean(margin[said] == 0)
    right_contrast = np.mean(margin[contrast] < 0) + 0.5 * np.mean(margin[contrast] == 0)
    return float(right_said + right_contrast) / 2.0


def _retrieval(test: _Test, calibration: Calibration, config: ScoringConfig) -> float:
    """Mean over pairs of the chance that an image for which the query is true ranks above one for which it is not.

    Images that score alike share the middle of their ranks.
    """
    scores = _score(test.said, test, calibration, config)
    true = test.said_true.sum(axis=1)
    false = test.said_true.shape[1] - true
    some = (true > 0) & (false > 0)
    above = (mid_ranks(scores) * test.said_true).sum(axis=1) - true * (true + 1) / 2.0
    return float(np.mean(above[some] / (true * false)[some]))


def _score(query: Query, test: _Test, calibration: Calibration, config: ScoringConfig) -> _Floats:
    similar = {name: test.similarities[name] for name in concepts(query)}
    affirmed = [similar[leaf.text] for leaf, negated in leaves(query) if not negated]
    heard = affirmed if config.mode == "anchored" and affirmed else list(similar.values())
    holistic = np.mean(heard, axis=0)
    scores: _Floats = score_tree(query, holistic, similar, calibration=calibration, config=config)[0]
    return scores


def _middle_of_best(table: _Floats) -> tuple[int, int]:
    """The cell in the middle of the plateau that cannot be told from the best."""
    near_best = table >= table.max() - 1e-9
    column = int(np.argmax(near_best.sum(axis=0)))
    rows = np.flatnonzero(near_best[:, column])
    return int(rows[len(rows) // 2]), column


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
