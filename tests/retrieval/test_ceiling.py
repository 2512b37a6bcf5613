"""Ceilings: no score is above them, and they are close enough to be of use."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcse_plugins import Calibration, Concept, Plain, Query, ScoringConfig
from lcse_plugins.query import canonical, concepts, has_logic, shape_of
from lcse_plugins.retrieval.ceiling import CLOSE, Ceiling, ceiling_of, score_of_the_best
from lcse_plugins.scoring.edit import score_arrays
from tests.strategies import trees

A, B, C, D, E, F, G = (Concept(name) for name in ("dog", "cat", "car", "person", "tree", "bus", "boat"))
CALIBRATIONS = [Calibration(mu=0.22, beta=30.0), Calibration(mu=0.05, beta=30.0), Calibration(mu=0.2, beta=6.0)]
CONFIGS = st.builds(
    ScoringConfig,
    mode=st.just("lcse"),
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
    ("query", "axes"),
    [
        (A & B, [0, 0]),
        (A | B, [0, 1]),
        (A & ~B, [0, 1]),
        (~A & ~B, [0, 1]),
        (A & B & ~C, [0, 0, 1]),
        (A & B & C & D & ~E, [0, 0, 0, 0, 1]),
    ],
)
def test_the_offset_is_close_to_the_least_possible(query: Query, axes: list[int]) -> None:
    """Some image of those whose wanted concepts are all as likely comes near the ceiling."""
    calibration, config = Calibration(mu=0.2, beta=20.0), ScoringConfig()
    ceiling = ceiling_of(shape_of(query), calibration, config)
    assert ceiling is not None
    points = np.array(list(product(np.linspace(-1, 1, 101), repeat=2)))[:, axes]
    largest = float(rises(query, ceiling, points, calibration, config).max())
    assert largest <= ceiling.offset <= largest + 4 * CLOSE / calibration.beta


def test_queries_that_differ_in_words_alone_share_a_ceiling() -> None:
    calibration, config = CALIBRATIONS[0], ScoringConfig()
    first, second = (ceiling_of(shape_of(query), calibration, config) for query in (A & ~B, D & ~C))
    assert first is second


def test_what_a_query_does_not_tell_apart_weighs_the_same() -> None:
    ceiling = ceiling_of(shape_of(A & B & C & ~D & ~E), CALIBRATIONS[0], ScoringConfig())
    assert ceiling is not None
    assert len(set(ceiling.weights[:3])) == len(set(ceiling.weights[3:])) == 1
    assert ceiling.weights[3] < 0 <= ceiling.weights[0]


def test_a_side_of_an_or_reaches_highest_where_the_other_side_is_absent() -> None:
    calibration, config = CALIBRATIONS[0], ScoringConfig()
    alone, side = (ceiling_of(shape_of(A & ~B), calibration, config, absent=absent) for absent in (0, 2))
    assert alone is not None
    assert side is not None
    best = score_of_the_best(shape_of(A & ~B), calibration, config, absent=2)
    assert best > score_of_the_best(shape_of(A & ~B), calibration, config)
    points = np.random.default_rng(0).uniform(-1, 1, (2000, 4))
    points[:1000, 2:] = -1.0
    columns = {name: points[:, i] for i, name in enumerate(concepts((A & ~B) | (C & ~D)))}
    scores = score_arrays((A & ~B) | (C & ~D), np.zeros(2000), columns, calibration=calibration, config=config)
    ours = points[:, 0] - points[:, 1] > points[:, 2] - points[:, 3]
    assert np.all(scores[ours] <= (points[:, :2] @ side.weights + side.offset)[ours] + 1e-9)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (A & ~B, {"aggregator": "probabilistic"}),
        (A & ~B, {"gamma_and": -4.0}),
        (A & ~B, {"mode": "anchored"}),
        (A | B | C | D | E | F | G, {}),
        (((A & B) | C) & ((D & E) | F), {}),
        (~A, {}),
        (Plain((A, B)), {}),
    ],
)
def test_some_queries_have_none(query: Query, options: Any) -> None:
    assert ceiling_of(shape_of(query), CALIBRATIONS[0], ScoringConfig(**options)) is None
