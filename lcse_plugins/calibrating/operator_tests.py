"""The operator tests of the paper: two complementary queries about concepts A and B, and how well each is answered.

The mean of the concepts' similarities stands in for that of the whole text, which is what a dual encoder makes of a
query; in mode `anchored`, the mean of the affirmed ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lcse_plugins.errors import CalibrationError
from lcse_plugins.query import Concept, Query, concepts, leaves
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import score_tree

__all__ = ["OperatorTest", "draw_pairs", "mid_ranks", "operator_tests", "pairwise_accuracy", "retrieval_auc"]

_A, _B = Concept("A"), Concept("B")
_Booleans: TypeAlias = NDArray[np.bool_]
_Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OperatorTest:
    """One operator over pairs of concepts: (pairs, n) similarities, and where the query and its contrast are true."""

    said: Query
    contrast: Query
    similarities: dict[str, _Floats]
    said_true: _Booleans
    contrast_true: _Booleans


def operator_tests(table: _Floats, truth: _Booleans, *, max_pairs: int, seed: int) -> dict[str, OperatorTest]:
    """A test for each operator that the labels can judge, over at most so many pairs of concepts.

    Args:
        table: (n_images, n_concepts) similarities.
        truth: (n_images, n_concepts) whether the image shows the concept.
        max_pairs: Pairs of concepts drawn.
        seed: Seed of that draw.

    Raises:
        CalibrationError: the labels do not tell two concepts apart.
    """
    usable = [c for c in range(truth.shape[1]) if 0 < truth[:, c].sum() < len(truth)]
    if len(usable) < 2:
        raise CalibrationError(
            "the tests need at least two concepts, each shown by some images and not by others; label more images"
        )
    first, second = np.array(usable)[draw_pairs(len(usable), max_pairs, seed=seed)].T
    similar = {"A": table[:, first].T, "B": table[:, second].T}
    a, b = truth[:, first].T, truth[:, second].T
    tests = {
        "NOT": OperatorTest(~_A, _A, similar, ~a, a),
        "AND": OperatorTest(_A & _B, _A & ~_B, similar, a & b, a & ~b),
        "OR": OperatorTest(_A | _B, ~_A & ~_B, similar, a | b, ~a & ~b),
        "BUT-NOT": OperatorTest(_A & ~_B, _A & _B, similar, a & ~b, a & b),
        "NEITHER": OperatorTest(~_A & ~_B, _A | _B, similar, ~a & ~b, a | b),
    }
    return {name: test for name, test in tests.items() if test.said_true.any() and test.contrast_true.any()}


def draw_pairs(items: int, most: int, *, seed: int) -> NDArray[np.int64]:
    """(k, 2) distinct ordered pairs of different items, at most so many."""
    others = items - 1
    total = items * others
    first, second = np.divmod(np.random.default_rng(seed).choice(total, min(most, total), replace=False), others)
    return np.stack([first, second + (second >= first)], axis=1)


def pairwise_accuracy(test: OperatorTest, calibration: Calibration, config: ScoringConfig) -> float:
    """Share of images for which the true query of the two scores higher, each truth weighing the same."""
    margin = _score(test.said, test, calibration, config) - _score(test.contrast, test, calibration, config)
    said, contrast = test.said_true, test.contrast_true
    right_said = np.mean(margin[said] > 0) + 0.5 * np.mean(margin[said] == 0)
    right_contrast = np.mean(margin[contrast] < 0) + 0.5 * np.mean(margin[contrast] == 0)
    return float(right_said + right_contrast) / 2.0


def retrieval_auc(test: OperatorTest, calibration: Calibration, config: ScoringConfig) -> float:
    """Mean over pairs of the chance that an image for which the query is true ranks above one for which it is not.

    Images that score alike share the middle of their ranks.
    """
    scores = _score(test.said, test, calibration, config)
    true = test.said_true.sum(axis=1)
    false = test.said_true.shape[1] - true
    some = (true > 0) & (false > 0)
    above = (mid_ranks(scores) * test.said_true).sum(axis=1) - true * (true + 1) / 2.0
    return float(np.mean(above[some] / (true * false)[some]))


def _score(query: Query, test: OperatorTest, calibration: Calibration, config: ScoringConfig) -> _Floats:
    similar = {name: test.similarities[name] for name in concepts(query)}
    affirmed = [similar[leaf.text] for leaf, negated in leaves(query) if not negated]
    heard = affirmed if config.mode == "anchored" and affirmed else list(similar.values())
    holistic = np.mean(heard, axis=0)
    scores: _Floats = score_tree(query, holistic, similar, calibration=calibration, config=config)[0]
    return scores


def mid_ranks(numbers: ArrayLike) -> NDArray[np.float64]:
    """(…, n) ranks from 1 along the last axis, equal numbers sharing the mean of theirs."""
    values = np.asarray(numbers, dtype=np.float64)
    order = values.argsort(axis=-1)
    rising = np.take_along_axis(values, order, axis=-1)
    edges = np.ones((*values.shape[:-1], values.shape[-1] + 1), dtype=bool)  # before and after each run of equals
    edges[..., 1:-1] = rising[..., 1:] != rising[..., :-1]
    place = np.arange(values.shape[-1])
    first = np.maximum.accumulate(np.where(edges[..., :-1], place, 0), axis=-1)
    last = np.minimum.accumulate(np.where(edges[..., 1:], place, len(place))[..., ::-1], axis=-1)[..., ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2.0 + 1.0, axis=-1)
    return ranks
