"""The first pass: its bounds hold, and what it returns is the exact top."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcse_plugins import Concept, LogicScorer, Query, ScoringConfig, VectorPool
from lcse_plugins.encoders import FloatArray
from lcse_plugins.retrieval import first_pass as module
from lcse_plugins.retrieval import pool as pool_module
from lcse_plugins.retrieval.first_pass import FirstPass, rounding_reach
from lcse_plugins.retrieval.leaders import Leaders
from lcse_plugins.retrieval.quantised import QuantisedRows
from lcse_plugins.testing import ToyEncoder
from tests.strategies import NAMES, trees

ENCODER = ToyEncoder(dimension=48)
A, B = Concept("dog"), Concept("cat")
BOUNDED = st.builds(
    ScoringConfig,
    mode=st.sampled_from(["lcse", "anchored", "factored", "routed", "holistic"]),
    aggregator=st.sampled_from(["power", "minmax"]),
    gamma_and=st.sampled_from([-1.0, -0.5, 0.5]),
    gamma_or=st.sampled_from([0.5, 10.0]),
)


def gallery(n: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    names = [" ".join([*rng.choice(NAMES, rng.integers(1, 4)), f"scene{i}"]) for i in range(n)]
    return ENCODER.encode_images(names)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small pool has many blocks, several threads and several looks."""
    monkeypatch.setattr(module, "BLOCK", 97)
    monkeypatch.setattr(module, "FIRST_BLOCK", 31)
    monkeypatch.setattr(module, "FIRST_LOOK", 5)
    monkeypatch.setattr(module, "SECOND_LOOK", 23)
    monkeypatch.setattr(module, "CACHED_ROWS", 41)
    monkeypatch.setattr(module, "FEW", 7)


POOLS = [gallery(700, seed) for seed in range(3)]


@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("limit", [80, 160, 170])
@pytest.mark.parametrize("query", [~A | ~B, A | ~B, ~A & ~B & ~Concept("person")])
def test_no_image_is_found_twice(query: Query, limit: int, quantised: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where bounds leave many in question, and all the others have been looked at."""
    monkeypatch.setattr(pool_module, "LARGE", 1)
    found, _ = VectorPool(POOLS[0], quantised=quantised).top(LogicScorer(ENCODER).encode(query), limit=limit)
    assert len(set(found.tolist())) == limit


@settings(deadline=None)
@given(trees(max_leaves=7), BOUNDED, st.sampled_from(range(3)), st.sampled_from([1, 5, 40, 800]))
def test_the_top_is_exact(query: Query, config: ScoringConfig, which: int, limit: int) -> None:
    scorer = LogicScorer(ENCODER, config=config)
    plain = VectorPool(POOLS[which])
    expected = [r.score for r in scorer.rank(query, plain, limit=limit)]
    quantised = VectorPool(POOLS[which], quantised=True, cached_columns=2)
    for _ in range(2):  # the second time with columns remembered
        found = scorer.rank(query, quantised, limit=limit)
        np.testing.assert_allclose([r.score for r in found], expected, rtol=0, atol=1e-6)
    for most_left in (module.MOST_LEFT, 0.0):  # then without ceilings
        with patch.object(pool_module, "LARGE", 1), patch.object(module, "MOST_LEFT", most_left):
            found = scorer.rank(query, VectorPool(POOLS[which]), limit=limit)
        np.testing.assert_allclose([r.score for r in found], expected, rtol=0, atol=1e-6)


@settings(deadline=None)
@given(trees(max_leaves=8), BOUNDED, st.integers(0, 10_000))
def test_the_ceiling_is_never_below_the_score(query: Query, config: ScoringConfig, seed: int) -> None:
    encoded = LogicScorer(ENCODER, config=config).encode(query)
    similar = np.random.default_rng(seed).uniform(-1, 1, (64, 1 + len(encoded.concepts))).astype(np.float32)
    if not encoded.edits_nothing:
        assert np.all(encoded.score_ceiling(similar) >= encoded.scores(similar) - 1e-5)


@settings(deadline=None)
@given(trees(max_leaves=6), BOUNDED, st.integers(0, 10_000))
def test_a_score_moves_no_further_than_its_reach(query: Query, config: ScoringConfig, seed: int) -> None:
    rng = np.random.default_rng(seed)
    encoded = LogicScorer(ENCODER, config=config).encode(query)
    reach = rounding_reach(encoded)
    assert reach is not None
    if encoded.plan.linear is not None:
        return
    similar: Any = rng.uniform(-0.5, 0.9, (64, 1 + len(encoded.concepts)))
    moved: Any = rng.uniform(-0.05, 0.05, similar.shape)
    change = np.abs(encoded.scores(similar + moved) - encoded.scores(similar))
    assert np.all(change <= reach[0] * np.abs(moved[:, 0]) + reach[1] * np.abs(moved[:, 1:]).max(axis=1) + 1e-9)


@pytest.mark.parametrize("options", [{"aggregator": "probabilistic"}, {"gamma_and": -4.0}])
def test_without_a_bound_the_pool_reads_full_precision(options: Any) -> None:
    scorer = LogicScorer(ENCODER, config=ScoringConfig(**options))
    encoded = scorer.encode(A & ~B)
    assert rounding_reach(encoded) is None
    assert FirstPass(QuantisedRows(POOLS[0])).leaders(encoded, 5, lambda rows: np.zeros(len(rows), np.float32)) is None
    found = scorer.rank(A & ~B, VectorPool(POOLS[0], quantised=True), limit=5)
    assert [r.id for r in found] == [r.id for r in scorer.rank(A & ~B, POOLS[0], limit=5)]


def test_few_rows_are_read_in_full() -> None:
    vectors = gallery(5000, 9)
    encoded = LogicScorer(ENCODER).encode(A & ~B)
    read = 0

    def score_rows(rows: Any) -> FloatArray:
        nonlocal read
        read += len(rows)
        return encoded.scores(vectors[rows] @ encoded.matrix.T)

    assert FirstPass(QuantisedRows(vectors)).leaders(encoded, 10, score_rows) is not None
    assert read < len(vectors) / 20


def test_copies_are_as_close_as_they_say() -> None:
    rows, queries = POOLS[0], QuantisedRows(POOLS[1][:4])
    copy = QuantisedRows(rows)
    back = copy.codes * copy.scales[:, None]
    np.testing.assert_allclose(np.linalg.norm(rows - back, axis=1), copy.errors, atol=1e-6)
    products = copy.products(queries, slice(10, 50))
    expected = (queries.codes * queries.scales[:, None]) @ back[10:50].T
    np.testing.assert_allclose(products, expected, atol=1e-5)


def test_columns_are_remembered_and_bounded() -> None:
    first = FirstPass(QuantisedRows(POOLS[0]), cached_columns=3)
    scorer = LogicScorer(ENCODER)
    for query in ((A & ~B) | (Concept("person") & ~Concept("car")), A | (B & ~Concept("umbrella"))):
        encoded = scorer.encode(query | Concept("tree"))
        first.leaders(encoded, 3, lambda rows, e=encoded: e.scores(POOLS[0][rows] @ e.matrix.T))  # type: ignore[misc]
        assert len(first._columns) == 3


def test_columns_of_concepts_with_one_vector_are_remembered_as_they_are() -> None:
    encoded = LogicScorer(ENCODER).encode((A & ~B) | (Concept("person") & ~Concept("car")))
    same = replace(encoded, concept_vectors=encoded.concept_vectors[[0, 0, 2, 3]])
    first = FirstPass(QuantisedRows(POOLS[0]), cached_columns=4)
    first.leaders(same, 3, lambda rows: same.scores(POOLS[0][rows] @ same.matrix.T))
    for name, column in first._columns.known([row.tobytes() for row in same.matrix[1:]]).items():
        np.testing.assert_allclose(column, POOLS[0] @ np.frombuffer(name, np.float32), atol=0.01)


def test_leaders_keep_ties_in_order_of_position() -> None:
    leaders = Leaders(2)
    leaders.add(np.array([7, 5]), np.array([1.0, 1.0], np.float32))
    leaders.add(np.array([3, 1]), np.array([1.0, 0.5], np.float32))
    positions, scores = leaders.ranked()
    assert positions.tolist() == [3, 5]
    assert scores.tolist() == [1.0, 1.0]
