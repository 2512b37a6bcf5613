"""The metrics agree with their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcse_plugins.bench.metrics import area_under_curve, precision_at, spearman, standing_before
from lcse_plugins.calibrating.operator_tests import mid_ranks
from lcse_plugins.errors import InvalidOption

ITEMS = st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=40)


@given(ITEMS)
def test_the_area_is_the_chance_that_a_relevant_item_scores_higher(items: list[tuple[int, bool]]) -> None:
    scores, relevant = np.array([s for s, _ in items], float), np.array([r for _, r in items])
    if relevant.all() or not relevant.any():
        with pytest.raises(InvalidOption, match="both kinds"):
            area_under_curve(scores, relevant)
        return
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[relevant] for b in scores[~relevant]]
    assert area_under_curve(scores, relevant) == pytest.approx(np.mean(pairs))


def test_precision_counts_the_first_k() -> None:
    assert precision_at([0.1, 0.9, 0.5], [True, True, False], 2) == 0.5
    assert precision_at([0.1, 0.9], [True, True], 10) == 0.2
    assert precision_at([1.0, 1.0], [False, True], 1) == 0.0, "equal scores keep their order"
    with pytest.raises(InvalidOption):
        precision_at([1.0], [True], 0)


def test_rank_correlation() -> None:
    assert spearman([1, 2, 3], [10, 20, 90]) == pytest.approx(1.0)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)
    assert spearman([1, 1, 1], [2, 2, 2]) == 1.0
    assert spearman([1, 1, 1], [1, 2, 3]) == 0.0
    np.testing.assert_array_equal(mid_ranks([5, 1, 5]), [2.5, 1.0, 2.5])


def test_what_is_not_a_number_is_refused() -> None:
    broken = [float("nan"), float("nan"), 1.0, 2.0]
    for measure in (
        lambda: area_under_curve(broken, [1, 1, 0, 0]),
        lambda: precision_at(broken, [1, 1, 0, 0], 1),
        lambda: spearman([1, 2, 3, 4], broken),
        lambda: standing_before(broken, 3),
    ):
        with pytest.raises(InvalidOption, match="NaN"):
            measure()
    assert standing_before([0.5, 0.9, 0.5], 2) == 2
