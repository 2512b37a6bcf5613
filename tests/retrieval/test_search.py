"""Searching by vectors: which ones find the best images, what bounds promise, when a result may be called complete."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcse_plugins import Calibration, Candidate, Concept, LogicScorer, Query, ScoringConfig
from lcse_plugins.encoders import FloatArray
from lcse_plugins.retrieval.sources import SearchRequest, advance, search_steps
from lcse_plugins.testing import ToyEncoder
from tests.strategies import NAMES, trees

A, B, C, D = (Concept(name) for name in ("dog", "cat", "red car", "person"))
XOR = (A & ~B) | (B & ~A)
ENCODER = ToyEncoder(dimension=32)
CONFIGS = st.builds(
    ScoringConfig,
    mode=st.sampled_from(["lcse", "anchored", "factored", "routed", "holistic"]),
    aggregator=st.sampled_from(["power", "minmax", "probabilistic"]),
    gamma_and=st.sampled_from([-4.0, -1.0, -0.5, 0.5]),
    gamma_or=st.sampled_from([0.5, 10.0]),
)


def gallery(n: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    return ENCODER.encode_images([f"{' '.join(rng.choice(NAMES, rng.integers(1, 4)))} scene{i}" for i in range(n)])


def photographs(n: int, seed: int) -> FloatArray:
    """Each shows some of four things, blurred."""
    rng = np.random.default_rng(seed)
    shown = (rng.random((n, 4)) < 0.3) @ ENCODER.encode_texts(["dog", "cat", "red car", "person"])
    rows = shown + 0.35 * rng.standard_normal((n, 32))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


class Flat:
    """A collection that can only be searched by vector, exhaustively."""

    exhaustive = True

    def __init__(self, vectors: FloatArray) -> None:
        self.vectors = vectors
        self.fetched = 0
        self.deepest = 0

    def nearest(self, vector: FloatArray, depth: int) -> Sequence[Candidate]:
        best = np.argsort(-(self.vectors @ vector), kind="stable")[:depth]
        self.fetched += len(best)
        self.deepest = max(self.deepest, depth)
        return [Candidate(id=int(i), vector=self.vectors[i]) for i in best]


# search vectors


@settings(max_examples=60)
@given(st.one_of(trees(max_leaves=10), st.just(XOR)), CONFIGS)
def test_a_few_vectors_that_point_in_different_directions(query: Query, config: ScoringConfig) -> None:
    vectors = LogicScorer(ENCODER, config=config).encode(query).plan.search_vectors
    assert 1 <= len(vectors) <= 12
    assert np.isfinite(vectors).all()
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    assert (lengths > 1e-6).all()
    assert np.all((vectors / lengths @ (vectors / lengths).T)[~np.eye(len(vectors), dtype=bool)] < 0.951)


@pytest.mark.parametrize("query", [A & B, A | B, A & ~B, ~A & ~B, A & B & ~C, (A & ~B) | (C & ~D), XOR])
def test_they_find_the_best_images(query: Query) -> None:
    vectors, scorer = photographs(3000, 7), LogicScorer(ENCODER)
    encoded = scorer.encode(query)
    best = {ranked.id for ranked in scorer.rank(query, vectors, limit=10)}

    def found(rows: FloatArray, depth: int) -> int:
        return len(best & set(np.argsort(-(vectors @ rows.T), axis=0)[:depth].ravel().tolist()))

    assert found(encoded.plan.search_vectors, 60) >= 9
    if all(encoded.negated.values()):  # the text names just what it excludes
        assert found(encoded.holistic_vector[None, :], 60 * len(encoded.plan.search_vectors)) == 0


# bounds


@settings(max_examples=100)
@given(
    trees(max_leaves=7),
    CONFIGS,
    st.sampled_from([Calibration(mu=0.2, beta=20.0), Calibration(mu=0.05, beta=30.0)]),
    st.integers(0, 1000),
)
def test_no_score_is_above_all_bounds(query: Query, config: ScoringConfig, calibration: Calibration, seed: int) -> None:
    encoded = LogicScorer(ENCODER, config=config, calibration=calibration).encode(query)
    if encoded.plan.bounds is None:
        return
    rows = np.random.default_rng(seed).standard_normal((200, ENCODER.dimension))
    rows = np.concatenate([rows, gallery(30, seed), encoded.matrix, -encoded.matrix])
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    scores, _ = encoded.score_similarities(rows @ encoded.matrix.T)
    highest = np.max([rows @ bound.vector + bound.offset for bound in encoded.plan.bounds], axis=0)
    assert np.all(highest >= scores - 1e-5)


@pytest.mark.parametrize(("mode", "share"), [("anchored", 0.1), ("lcse", 0.3)])
@pytest.mark.parametrize("query", [A & B, A & ~B, ~A & ~B, A & B & ~C, A | B, A | B | C, (A & ~B) | (C & ~D)])
def test_few_images_can_reach_the_best(query: Query, mode: Any, share: float) -> None:
    rows = photographs(5000, 0)
    encoded = LogicScorer(ENCODER, mode=mode).encode(query)
    assert encoded.plan.bounds is not None
    assert len(encoded.plan.bounds) <= 6
    highest = np.max([rows @ bound.vector + bound.offset for bound in encoded.plan.bounds], axis=0)
    scores, _ = encoded.score_similarities(rows @ encoded.matrix.T)
    assert np.mean(highest >= np.sort(scores)[-10]) < share


# searches


@settings(max_examples=60)
@given(trees(max_leaves=6), CONFIGS, st.integers(0, 50), st.sampled_from([5, 20, 80]), st.booleans())
def test_a_claimed_top_is_the_exhaustive_top(
    query: Query, config: ScoringConfig, seed: int, depth: int, exact: bool
) -> None:
    vectors, scorer = gallery(300, seed), LogicScorer(ENCODER, config=config)
    found = scorer.search(query, Flat(vectors), limit=5, depth=depth, exact=exact)
    assert found.exact or not exact
    if found.exact:
        best = scorer.rank(query, vectors, limit=5)
        np.testing.assert_allclose([r.score for r in found], [r.score for r in best], atol=1e-5)


def test_how_much_is_read() -> None:
    scorer, source = LogicScorer(ENCODER), Flat(gallery(5000, 3))
    assert scorer.search(A & ~B, source, limit=5, depth=100, exact=True).exact
    assert source.deepest < 5000
    source = Flat(gallery(500, 0))
    assert scorer.search(~A, source, limit=5, depth=5).exact
    assert source.fetched == 5  # a negation is one search
    assert len(scorer.search(A & ~B, source, limit=60, depth=2)) == 60


def test_an_approximate_source_proves_nothing() -> None:
    source = Flat(gallery(50, 0))
    source.exhaustive = False
    found = LogicScorer(ENCODER).search(A & ~B, source, limit=5, depth=100, exact=True)
    assert (found.exact, len(found)) == (False, 5)


def test_what_has_no_vector_takes_no_place_among_the_best() -> None:
    source, scorer = Flat(gallery(60, 0)), LogicScorer(ENCODER)
    steps = search_steps(scorer.encode(~A), limit=5, depth=8, exact=True)
    step = advance(steps)
    while isinstance(step, SearchRequest):
        step = advance(steps, [[*[None] * 6, *source.nearest(vector, step.depth)[6:]] for vector in step.vectors])
    assert step.exact
    assert [r.id for r in step] == [r.id for r in scorer.rank(~A, source.vectors)[6:11]]


def test_which_of_equal_images_comes_first_does_not_depend_on_depth() -> None:
    class Copies(Flat):
        def nearest(self, vector: FloatArray, depth: int) -> Sequence[Candidate]:
            return super().nearest(vector, depth)[::-1]

    source = Copies(np.repeat(gallery(8, 0), 10, axis=0))
    tops = [LogicScorer(ENCODER).search(A | B, source, limit=40, depth=depth, exact=True) for depth in (40, 60, 200)]
    assert [r.id for r in tops[0]] == [r.id for r in tops[1]] == [r.id for r in tops[2]]
    assert [int(str(r.id)) % 10 for r in tops[0]] == list(range(10)) * 4


@pytest.mark.parametrize(
    "query",
    [
        " AND ".join(f"(a{i} OR b{i})" for i in range(32)),
        " AND ".join(f"w{i}" for i in range(64)),
        " OR ".join(f"NOT w{i}" for i in range(64)),
    ],
)
def test_very_wide_queries_are_searched_within_bounds(query: str) -> None:
    """2^32 ways of satisfying one, or as many concepts as are taken: few vectors, little memory, the right answer."""
    vectors, scorer = gallery(60, 4), LogicScorer(ENCODER)
    tracemalloc.start()
    try:
        found = scorer.search(query, Flat(vectors), limit=5, depth=100, exact=True)
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
    assert [r.id for r in found] == [r.id for r in scorer.rank(query, vectors, limit=5)]
