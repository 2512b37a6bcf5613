"""Candidate vectors: slopes of the score where its best images are, one by one and for conjunctions together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcse_plugins import And, Calibration, Candidate, Concept, LogicScorer, Or, Query, ScoringConfig
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.retrieval.sources import SearchRequest, advance, search_steps
from lcse_plugins.testing import ToyEncoder
from tests.strategies import trees

MOST = 12
"""Vectors that one query is searched for with."""

A, B, C, D = (Concept(name) for name in ("dog", "cat", "red car", "person"))
ENCODER = ToyEncoder(dimension=32)


def photographs(n: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    shown = (rng.random((n, 4)) < 0.4) @ ENCODER.encode_texts(["dog", "cat", "red car", "person"])
    rows = shown + 0.4 * rng.standard_normal((n, 32))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


@settings(deadline=None, max_examples=60)
@given(trees(max_leaves=10), st.sampled_from(["lcse", "anchored", "factored"]), st.sampled_from(["power", "minmax"]))
def test_a_few_finite_vectors_in_different_directions(query: Query, mode: str, aggregator: str) -> None:
    config = ScoringConfig(mode=mode, aggregator=aggregator)  # type: ignore[arg-type]
    vectors = LogicScorer(ENCODER, config=config).encode(query).plan.search_vectors
    assert 1 <= len(vectors) <= MOST
    assert np.isfinite(vectors).all()
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    assert np.all((units @ units.T)[~np.eye(len(units), dtype=bool)] < 0.951)


def test_every_branch_has_its_own() -> None:
    ways = LogicScorer(ENCODER).encode((A & ~B) | (C & ~D)).plan.search_vectors
    own = []
    for wanted, unwanted in (("dog", "cat"), ("red car", "person")):
        image, spoiled = ENCODER.encode_images([wanted, f"{wanted} {unwanted}"])
        assert max(ways @ image) > max(ways @ spoiled)
        own.append(int(np.argmax(ways @ image)))
    assert own[0] != own[1]


def test_a_wide_or_stays_within_bounds() -> None:
    many = Or(tuple(Concept(f"thing {i}") & ~Concept(f"other {i}") for i in range(20)))
    assert len(LogicScorer(ENCODER).encode(many).plan.search_vectors) <= MOST


@pytest.mark.parametrize("query", [A & B, A | B, A & ~B, ~A & ~B, (A & ~B) | (C & ~D)])
def test_they_find_the_best_images(query: Query) -> None:
    vectors, scorer = photographs(3000, 7), LogicScorer(ENCODER)
    encoded = scorer.encode(query)
    best = {ranked.id for ranked in scorer.rank(query, vectors, limit=10)}

    def found(rows: FloatArray, depth: int) -> int:
        return len(best & set(np.argsort(-(vectors @ rows.T), axis=0)[:depth].ravel().tolist()))

    assert found(encoded.plan.search_vectors, 60) >= 9
    if all(encoded.negated.values()):  # the text names just what it excludes
        assert found(encoded.holistic_vector[None, :], 60 * len(encoded.plan.search_vectors)) == 0


VECTORS = photographs(6000, 3)
ALIKE: dict[str, Query] = {
    "two": A & B,
    "three": A & B & C,
    "four": A & B & C & D,
    "neither": ~A & ~B,
    "none of three": ~A & ~B & ~C,
    "none of four": ~(A | B | C | D),
}
MIXED = [(A & B & ~C, [2, 1]), (A & B & ~C & ~D, [2, 2]), (A & ~B & ~C, [3, 1, 1])]
CONFIGS: list[dict[str, Any]] = [
    {},
    {"mode": "lcse"},
    {"mode": "factored"},
    {"mode": "lcse", "aggregator": "probabilistic"},
]


def least_products(vectors: FloatArray) -> FloatArray:
    return np.asarray((VECTORS @ vectors.T).min(axis=1))


def best_of(scores: FloatArray, count: int) -> set[int]:
    return set(np.argsort(-scores, kind="stable")[:count].tolist())


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("calibration", [None, Calibration(mu=0.2, beta=20.0)])
@pytest.mark.parametrize("query", ALIKE.values(), ids=list(ALIKE))
def test_one_search_finds_the_best_images(
    query: Query, calibration: Calibration | None, config: dict[str, Any]
) -> None:
    scorer = LogicScorer(ENCODER, config=ScoringConfig(**config), calibration=calibration)
    encoded = scorer.encode(query)
    (vectors,) = encoded.plan.searches
    assert vectors.shape == (len(encoded.concepts), ENCODER.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    best = {ranked.id for ranked in scorer.rank(query, VECTORS, limit=10)}
    assert len(best & best_of(least_products(vectors), 100)) >= 9


@pytest.mark.parametrize("mode", ["lcse", "anchored", "factored"])
@pytest.mark.parametrize(("query", "sizes"), MIXED, ids=str)
def test_what_is_wanted_is_searched_for_apart_from_what_is_not(query: Query, sizes: list[int], mode: Any) -> None:
    scorer = LogicScorer(ENCODER, config=ScoringConfig(mode=mode))
    plan = scorer.encode(query).plan
    assert [len(vectors) for vectors in plan.searches] == sizes[: 1 + len(plan.search_vectors)]
    best = {ranked.id for ranked in scorer.rank(query, VECTORS, limit=10)}
    together = set[int]().union(*(best_of(least_products(vectors), 60) for vectors in plan.searches))
    apart = set[int]().union(*(best_of(VECTORS @ vector, 60) for vector in plan.search_vectors[: len(plan.searches)]))
    assert len(best & together) >= max(8, len(best & apart))


@pytest.mark.parametrize(
    ("query", "config"),
    [
        (A | B, {}),
        (A & ~B, {}),
        (A & (B | C), {}),
        ((A & ~B) | (C & ~D), {}),
        (A & ~A & B, {}),
        (And(tuple(Concept(f"thing {i}") for i in range(MOST + 1))), {}),
        (A & B, {"mode": "lcse", "gamma_and": 0.5}),
        (A & B, {"mode": "holistic"}),
        (~A, {}),
        (A, {}),
    ],
    ids=str,
)
def test_other_queries_are_searched_for_by_single_vectors(query: Query, config: dict[str, Any]) -> None:
    plan = LogicScorer(ENCODER, config=ScoringConfig(**config)).encode(query).plan
    assert all(vectors.shape == (1, ENCODER.dimension) for vectors in plan.searches)
    np.testing.assert_array_equal(np.concatenate(plan.searches), plan.search_vectors)


def test_vectors_without_a_direction_are_not_searched_for() -> None:
    encoded = LogicScorer(ENCODER, config=ScoringConfig(mode="factored")).encode(A & B)
    zero = type(encoded.plan)(
        encoded.tree,
        encoded.holistic_vector,
        np.zeros_like(encoded.concept_vectors),
        calibration=encoded.calibration,
        config=encoded.config,
    )
    assert all(len(vectors) == 1 for vectors in zero.searches)


@settings(deadline=None, max_examples=60)
@given(trees(max_leaves=8), st.sampled_from(["lcse", "anchored", "factored"]), st.booleans())
def test_searching_jointly_proves_the_same_result(query: Query, mode: Any, exact: bool) -> None:
    scorer = LogicScorer(ENCODER, config=ScoringConfig(mode=mode))
    encoded, pool = scorer.encode(query), photographs(120, 5)

    def found(rows: FloatArray, depth: int) -> list[Candidate]:
        products = (pool @ np.atleast_2d(rows).T).min(axis=1)
        return [Candidate(int(i), pool[i]) for i in np.argsort(-products, kind="stable")[:depth]]

    steps = search_steps(
        encoded, limit=5, depth=8 if exact else len(pool) + 1, exact=exact, searches=encoded.plan.searches
    )
    step = advance(steps)
    while isinstance(step, SearchRequest):
        step = advance(steps, [found(rows, step.depth) for rows in step.vectors])
    assert step.exact
    assert [ranked.id for ranked in step] == [ranked.id for ranked in scorer.rank(query, pool, limit=5)]
