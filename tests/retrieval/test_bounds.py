"""Bounds: the largest of them is never below a score, and few images can reach the best under them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcse_plugins import Calibration, Concept, LogicScorer, Or, Query, ScoringConfig
from lcse_plugins.query import canonical, concepts, shape_of
from lcse_plugins.retrieval.bounds import bounds_of
from lcse_plugins.scoring.edit import edits_nothing, holistic_share, score_arrays
from lcse_plugins.testing import ToyEncoder
from tests.strategies import trees

A, B, C, D = (Concept(name) for name in ("dog", "cat", "car", "person"))
CALIBRATION = Calibration(mu=0.2, beta=20.0)
CONFIGS = st.builds(
    ScoringConfig,
    mode=st.sampled_from(["lcse", "lcse", "anchored", "factored", "routed"]),
    aggregator=st.sampled_from(["power", "power", "minmax", "probabilistic"]),
    gamma_and=st.sampled_from([-1.0, -1.0, -4.0, -0.5, 0.5]),
    gamma_or=st.sampled_from([10.0, 0.5]),
)


@settings(deadline=None)
@given(
    st.one_of(trees(max_leaves=6), st.lists(trees(max_leaves=4), min_size=2, max_size=3).map(tuple).map(Or)),
    CONFIGS,
    st.sampled_from([CALIBRATION, Calibration(mu=0.05, beta=30.0)]),
    st.integers(0, 10_000),
)
def test_no_score_is_above_all_bounds(query: Query, config: ScoringConfig, calibration: Calibration, seed: int) -> None:
    tree = canonical(query)
    if edits_nothing(tree, config):
        return
    bounds = bounds_of(shape_of(tree), calibration, config)
    if bounds is None:
        return
    rng, size = np.random.default_rng(seed), (300, len(concepts(tree)))
    near = calibration.mu + rng.normal(0, 4 / calibration.beta, size)
    points = np.concatenate([rng.uniform(-1, 1, size), near.clip(-1, 1), rng.choice([-1.0, 1.0], size)])
    holistic = rng.uniform(-1, 1, len(points))
    columns = {name: points[:, i] for i, name in enumerate(concepts(tree))}
    scores = score_arrays(tree, holistic, columns, calibration=calibration, config=config)
    highest = (points @ bounds.weights.T + bounds.offsets).max(axis=1) + holistic_share(tree, config) * holistic
    assert np.all(scores <= highest + 1e-9)


@pytest.mark.parametrize(
    ("query", "mode", "number"),
    [
        (~A, "lcse", 1),
        (A & B & ~C, "lcse", 2),
        ((A & ~B) | (C & ~D), "lcse", 4),
        (A & ~B, "anchored", 1),
        (A & B & C & ~D, "anchored", 1),
        (A | B, "anchored", 2),
        (A & (B | C), "anchored", 2),
        ((A & B) | (C & ~D), "factored", 2),
    ],
)
def test_common_queries_have_few(query: Query, mode: Any, number: int) -> None:
    bounds = bounds_of(shape_of(query), CALIBRATION, ScoringConfig(mode=mode))
    assert bounds is not None
    assert len(bounds.offsets) == number


def test_a_query_that_would_need_very_many_has_none() -> None:
    many = Or(tuple(Concept(str(i)) for i in range(200)))
    assert bounds_of(many, CALIBRATION, ScoringConfig()) is None


@pytest.mark.parametrize("mode", ["lcse", "anchored"])
@pytest.mark.parametrize("query", [A & B, A & ~B, ~A & ~B, A & B & ~C, A | B, A | B | C, (A & ~B) | (C & ~D)])
def test_few_images_reach_the_best(query: Query, mode: Any) -> None:
    encoder = ToyEncoder(dimension=48)
    rng = np.random.default_rng(0)
    shown = rng.random((5000, 4)) < 0.3
    rows = shown @ encoder.encode_texts(["dog", "cat", "car", "person"]) + 0.35 * rng.standard_normal((5000, 48))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    encoded = LogicScorer(encoder, config=ScoringConfig(mode=mode)).encode(query)
    assert encoded.plan.bounds is not None
    highest = np.max([rows @ bound.vector + bound.offset for bound in encoded.plan.bounds], axis=0)
    scores, _ = encoded.score_similarities(rows @ encoded.matrix.T)
    assert np.all(highest >= scores - 1e-5)
    assert np.mean(highest >= np.sort(scores)[-10]) < (0.1 if mode == "anchored" else 0.3)
