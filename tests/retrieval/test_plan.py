"""Search plans: where candidates are looked for, and when a result may be called complete."""

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
from lcse_plugins.query import canonical, concepts
from lcse_plugins.retrieval.plan import Plan
from lcse_plugins.retrieval.sources import SearchRequest, advance, search_steps
from lcse_plugins.scoring.calibration import CLIP_PRESET
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.testing import ToyEncoder
from tests.strategies import NAMES, trees

A, B = Concept("dog"), Concept("cat")
ENCODER = ToyEncoder(dimension=24)
CONFIGS = st.builds(
    ScoringConfig,
    mode=st.sampled_from(["lcse", "anchored", "factored", "routed", "holistic"]),
    aggregator=st.sampled_from(["power", "minmax", "probabilistic"]),
    gamma_and=st.sampled_from([-4.0, -1.0, -0.5, 0.5]),
    gamma_or=st.sampled_from([0.5, 10.0]),
)


def gallery(n: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    names = [" ".join([*rng.choice(NAMES, rng.integers(1, 4)), f"scene{i}"]) for i in range(n)]
    return ENCODER.encode_images(names)


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


def plan_of(query: Query, **options: Any) -> tuple[Plan, FloatArray, FloatArray]:
    rng = np.random.default_rng(1)
    text = rng.standard_normal(8).astype(np.float32)
    rows = rng.standard_normal((len(concepts(query)), 8)).astype(np.float32)
    config = ScoringConfig(**options)
    return Plan(canonical(query), text, rows, calibration=CLIP_PRESET, config=config), text, rows


@pytest.mark.parametrize(
    ("query", "weights"),
    [(~A, [-2]), (A & ~B, [0, -1]), (~A & ~B, [-1, -1]), (A & B, [0, 0]), (A | B, [0, 0])],
)
def test_gradient_vectors(query: Query, weights: list[float]) -> None:
    plan, text, rows = plan_of(query, mode="lcse")
    np.testing.assert_allclose(plan.search_vectors[0], text + np.array(weights, np.float32) @ rows, atol=1e-5)


def test_only_linear_scores_are_called_linear() -> None:
    linear, text, rows = plan_of(~A, mode="lcse")
    assert linear.linear is not None
    np.testing.assert_allclose(linear.linear.vector, text - 2 * rows[0], atol=1e-6)
    assert linear.linear.offset == pytest.approx(2 * CLIP_PRESET.mu)
    assert plan_of(A)[0].linear is not None
    assert plan_of(A & ~B)[0].linear is None


def test_gradient_is_the_derivative_of_the_score() -> None:
    scorer = LogicScorer(ENCODER, calibration=Calibration(mu=0.0, beta=7.0))
    for aggregator in ("power", "minmax", "probabilistic"):
        scorer.config = ScoringConfig(aggregator=aggregator)
        encoded = scorer.encode((A & ~B) | Concept("person"))
        step = 1e-4 * np.eye(1 + len(encoded.concepts))
        scores = encoded.score_similarities(np.concatenate([step, -step]))[0]
        slope = (scores[: len(step)] - scores[len(step) :]) / 2e-4
        if aggregator == "minmax":
            continue  # a kink: any weights between the branches are a subgradient
        np.testing.assert_allclose(encoded.plan.search_vectors[0], slope @ encoded.matrix, atol=1e-4)


@settings(deadline=None)
@given(trees(max_leaves=7), CONFIGS, st.integers(0, 1000))
def test_bounds_are_never_below_the_score(query: Query, config: ScoringConfig, seed: int) -> None:
    rng = np.random.default_rng(seed)
    encoded = LogicScorer(ENCODER, config=config).encode(query)
    vectors = rng.standard_normal((50, ENCODER.dimension))
    vectors = np.concatenate([vectors, gallery(30, seed), encoded.matrix, -encoded.matrix])
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    if encoded.plan.bounds is not None:
        assert_bounded(encoded, vectors)


@pytest.mark.parametrize("gamma_and", [-4.0, -1.0, -0.5, 0.5, 1.0])
def test_bounds_hold_for_a_conjunction_of_any_softness(gamma_and: float) -> None:
    vectors = np.random.default_rng(0).standard_normal((500, ENCODER.dimension)).astype(np.float32)
    config = ScoringConfig(mode="factored", gamma_and=gamma_and)
    encoded = LogicScorer(ENCODER, config=config).encode(A & B)
    assert_bounded(encoded, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def assert_bounded(encoded: EncodedQuery, vectors: FloatArray) -> None:
    assert encoded.plan.bounds is not None
    scores, _ = encoded.score_similarities(vectors @ encoded.matrix.T)
    ceiling = np.max([vectors @ bound.vector + bound.offset for bound in encoded.plan.bounds], axis=0)
    assert np.all(ceiling >= scores - 1e-5)


@settings(deadline=None, max_examples=60)
@given(trees(max_leaves=6), CONFIGS, st.integers(0, 50), st.sampled_from([5, 20, 80]), st.booleans())
def test_a_claimed_top_is_the_exhaustive_top(
    query: Query, config: ScoringConfig, seed: int, depth: int, exact: bool
) -> None:
    vectors = gallery(300, seed)
    scorer = LogicScorer(ENCODER, config=config)
    found = scorer.search(query, Flat(vectors), limit=5, depth=depth, exact=exact)
    best = scorer.rank(query, vectors, limit=5)
    assert found.exact or not exact
    if found.exact:
        np.testing.assert_allclose([r.score for r in found], [r.score for r in best], atol=1e-5)


def test_exact_search_need_not_read_everything() -> None:
    vectors = gallery(5000, 3)
    source = Flat(vectors)
    assert LogicScorer(ENCODER).search(A & ~B, source, limit=5, depth=100, exact=True).exact
    assert source.deepest < len(vectors)


def test_a_negation_is_one_search() -> None:
    source = Flat(gallery(500, 0))
    found = LogicScorer(ENCODER).search(~A, source, limit=5, depth=5)
    assert found.exact
    assert source.fetched == 5


def test_what_has_no_vector_takes_no_place_among_the_best() -> None:
    source, scorer = Flat(gallery(60, 0)), LogicScorer(ENCODER)
    steps = search_steps(scorer.encode(~A), limit=5, depth=8, exact=True)
    step = advance(steps)
    while isinstance(step, SearchRequest):
        step = advance(steps, [[*[None] * 6, *source.nearest(vector, step.depth)[6:]] for vector in step.vectors])
    assert step.exact
    assert [r.id for r in step] == [r.id for r in scorer.rank(~A, source.vectors)[6:11]]


def test_a_search_is_at_least_as_deep_as_what_is_wanted() -> None:
    assert len(LogicScorer(ENCODER).search(A & ~B, Flat(gallery(200, 0)), limit=60, depth=2)) == 60


class Unordered:
    """An id that cannot be compared."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __repr__(self) -> str:
        return f"Unordered({self.place:03})"


@pytest.mark.parametrize("kind", [int, "{:03}".format, Unordered])
def test_which_of_equal_images_comes_first_does_not_depend_on_depth(kind: Any) -> None:
    ids = [kind(place) for place in range(80)]

    class Copies(Flat):
        def nearest(self, vector: FloatArray, depth: int) -> Sequence[Candidate]:
            found = super().nearest(vector, depth)
            return [Candidate(ids[int(str(one.id))], one.vector) for one in found[::-1]]

    source = Copies(np.repeat(gallery(8, 0), 10, axis=0))
    tops = [LogicScorer(ENCODER).search(A | B, source, limit=40, depth=depth, exact=True) for depth in (40, 60, 200)]
    assert [r.id for r in tops[0]] == [r.id for r in tops[1]] == [r.id for r in tops[2]]
    for equal in (tops[0][start : start + 10] for start in range(0, 40, 10)):
        assert [r.id for r in equal] == sorted((r.id for r in equal), key=ids.index)


def test_an_approximate_source_proves_nothing() -> None:
    class Graph(Flat):
        exhaustive = False

    found = LogicScorer(ENCODER).search(A & ~B, Graph(gallery(50, 0)), limit=5, depth=100, exact=True)
    assert not found.exact
    assert len(found) == 5


@pytest.mark.parametrize(
    "query",
    [
        " AND ".join(f"(a{i} OR b{i})" for i in range(32)),
        " AND ".join(f"w{i}" for i in range(64)),
        " OR ".join(f"NOT w{i}" for i in range(64)),
    ],
)
@pytest.mark.parametrize("exact", [False, True])
def test_very_wide_queries_are_searched_within_bounds(query: str, exact: bool) -> None:
    """2^32 ways of satisfying one, or as many concepts as are taken: few vectors, little memory, the right answer."""
    vectors, scorer = gallery(60, 4), LogicScorer(ENCODER)
    tracemalloc.start()
    try:
        found = scorer.search(query, Flat(vectors), limit=5, depth=100, exact=exact)
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
    assert [r.id for r in found] == [r.id for r in scorer.rank(query, vectors, limit=5)]
