"""Ceilings: no score is above them, and they are close enough to be of use."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcse_plugins import Calibration, Concept, LogicScorer, Query, ScoringConfig
from lcse_plugins.ceiling import CLOSE, Ceiling, ceiling_of
from lcse_plugins.edit import score_arrays
from lcse_plugins.query import canonical, concepts, has_logic, shape_of
from lcse_plugins.testing import ToyEncoder
from tests.strategies import trees

A, B, C, D, E = (Concept(name) for name in ("dog", "cat", "car", "person", "tree"))
CALIBRATIONS = [Calibration(mu=0.22, beta=30.0), Calibration(mu=0.05, beta=30.0), Calibration(mu=0.2, beta=6.0)]
CONFIGS = st.builds(
    ScoringConfig,
    mode=st.sampled_from(["lcse", "anchored", "factored", "routed"]),
    aggregator=st.sampled_from(["power", "power", "minmax"]),
    gamma_and=st.sampled_from([-1.0, -1.0, -0.5, 0.5]),
    gamma_or=st.sampled_from([10.0, 0.5]),
)


def rises(query: Query, ceiling: Ceiling, points: Any, calibration: Calibration, config: ScoringConfig) -> Any:
    """How far scores are above the weighted similarities, at (n, m) similarities of the concepts."""
    columns = {name: points[:, i] for i, name in enumerate(concepts(query))}
    scores = score_arrays(query, np.zeros(len(points)), columns, calibration=calibration, config=config)
    return scores - points @ ceiling.weights


@settings(deadline=None)
@given(trees(max_leaves=5), CONFIGS, st.sampled_from(CALIBRATIONS), st.integers(0, 10_000))
def test_no_score_is_above_the_ceiling(
    query: Query, config: ScoringConfig, calibration: Calibration, seed: int
) -> None:
    tree = canonical(query)
    ceiling = ceiling_of(shape_of(tree), calibration, config) if has_logic(tree) else None
    if ceiling is None:
        return
    rng, shape = np.random.default_rng(seed), (200, len(concepts(tree)))
    anywhere, near = rng.uniform(-1, 1, shape), calibration.mu + rng.normal(0, 4 / calibration.beta, shape)
    corners, equal = rng.choice([-1.0, 1.0], shape), np.repeat(rng.uniform(-1, 1, (200, 1)), shape[1], axis=1)
    points = np.concatenate([anywhere, near.clip(-1, 1), corners, equal])
    assert np.all(rises(tree, ceiling, points, calibration, config) <= ceiling.offset + 1e-9)


@pytest.mark.parametrize(
    ("query", "axes", "mode"),
    [
        (A & B, [0, 0], "lcse"),
        (A | B, [0, 1], "lcse"),
        (A & ~B, [0, 1], "lcse"),
        (~A & ~B, [0, 1], "lcse"),
        (A & B & ~C, [0, 0, 1], "lcse"),
        (A & B & C & D & ~E, [0, 0, 0, 0, 1], "lcse"),
        (A & B, [0, 0], "anchored"),
        (A & B & ~C, [0, 0, 1], "anchored"),
        (~A & ~B, [0, 1], "anchored"),
        (A & ~B, [0, 1], "factored"),
    ],
)
def test_the_offset_is_close_to_the_least_possible(query: Query, axes: list[int], mode: Any) -> None:
    """Some image of those whose wanted concepts are all as likely comes near the ceiling."""
    calibration, config = Calibration(mu=0.2, beta=20.0), ScoringConfig(mode=mode)
    ceiling = ceiling_of(shape_of(query), calibration, config)
    assert ceiling is not None
    points = np.array(list(product(np.linspace(-1, 1, 101), repeat=2)))[:, axes]
    largest = float(rises(query, ceiling, points, calibration, config).max())
    assert largest <= ceiling.offset <= largest + 4 * CLOSE / calibration.beta


def test_queries_that_differ_in_words_alone_share_a_ceiling() -> None:
    calibration, config = CALIBRATIONS[0], ScoringConfig()
    first, second = (ceiling_of(shape_of(query), calibration, config) for query in (A & ~B, D & ~C))
    assert first is second


def test_what_is_wanted_together_weighs_the_same() -> None:
    ceiling = ceiling_of(shape_of(A & B & C & ~D), CALIBRATIONS[0], ScoringConfig())
    assert ceiling is not None
    assert len(set(ceiling.weights[:3])) == 1
    assert ceiling.weights[3] < 0 <= ceiling.weights[0]


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (A & ~B, {"aggregator": "probabilistic"}),
        (A & ~B, {"gamma_and": -4.0}),
        (A | B, {"mode": "anchored"}),
        ((A & ~B) | (C & ~D), {}),
        (A & ~B & ~C & ~D & ~E, {}),
        (~A, {}),
    ],
)
def test_some_queries_have_none(query: Query, options: Any) -> None:
    assert ceiling_of(shape_of(query), CALIBRATIONS[0], ScoringConfig(**options)) is None


@pytest.mark.parametrize("query", [A & B, A & ~B, ~A & ~B, A & B & ~C])
def test_few_images_reach_the_best_under_the_ceiling(query: Query) -> None:
    encoder = ToyEncoder(dimension=48)
    rng = np.random.default_rng(0)
    shown = rng.random((5000, 4)) < 0.3
    rows = shown @ encoder.encode_texts(["dog", "cat", "car", "person"]) + 0.35 * rng.standard_normal((5000, 48))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    encoded = LogicScorer(encoder).encode(query)
    assert encoded.plan.ceiling is not None
    highest = rows @ encoded.plan.ceiling.vector + encoded.plan.ceiling.offset
    scores = encoded.scores(rows @ encoded.matrix.T)
    assert np.all(highest >= scores - 1e-5)
    assert np.mean(highest >= np.sort(scores)[-10]) < 0.1
