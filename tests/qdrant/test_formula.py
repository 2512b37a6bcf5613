"""The formula: equal to the core wherever a cosine can be, finite everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from qdrant_client import models
from qdrant_lcse import compile_formula
from qdrant_lcse.formula import LARGEST_FORMULA, SMALL_TREE

from lcse_plugins import Calibration, Concept, EncodedQuery, Parse, Query, ScoringConfig
from lcse_plugins.errors import InvalidOption
from lcse_plugins.query import canonical, concepts
from tests.strategies import trees

A, B, C, D = (Concept(name) for name in "abcd")
NAMES = ("a", "b", "c", "d")
Values = NDArray[np.float64]
CONFIGS = st.builds(
    ScoringConfig,
    mode=st.sampled_from(["lcse", "anchored", "factored", "routed", "holistic"]),
    aggregator=st.sampled_from(["power", "power", "minmax", "probabilistic"]),
    gamma_and=st.sampled_from([-1.0, -2, -0.5, 0.0, -10.0, 1.0, 3.3, -100.0, float("-inf")]),
    gamma_or=st.sampled_from([10.0, 1, 0.0, 2.5, 100.0, -1.0, float("inf")]),
)


def evaluate(node: Any, similarities: Values) -> Any:
    """The formula over (k, n) similarities, in float64 as the database computes it; raises where it would."""

    def of(part: Any) -> Any:
        return evaluate(part, similarities)

    match node:
        case float():
            assert node == np.float32(node), "constants travel as float32"
            return np.float64(node)
        case str():
            return similarities[int(node.removeprefix("$score[").removesuffix("]"))]
        case models.SumExpression():
            return sum(map(of, node.sum[1:]), of(node.sum[0]))
        case models.MultExpression():
            return np.prod(np.broadcast_arrays(*map(of, node.mult)), axis=0)
        case models.NegExpression():
            return -of(node.neg)
        case models.AbsExpression():
            return abs(of(node.abs))
        case models.DivExpression():
            return of(node.div.left) / of(node.div.right)
        case models.PowExpression():
            return of(node.pow.base) ** of(node.pow.exponent)
        case models.LnExpression():
            return np.log(of(node.ln))
        case models.ExpExpression():
            return np.exp(of(node.exp))
        case _:
            raise AssertionError(f"not every server knows {type(node).__name__}")


def encoded(query: Query, *, mu: float = 0.22, beta: float = 30.0, config: ScoringConfig | None = None) -> EncodedQuery:
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((1 + len(concepts(canonical(query))), 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[1:] *= rng.uniform(0.7, 1.0, (len(rows) - 1, 1))
    return EncodedQuery(
        Parse(text="q", query=query),
        rows[0].astype(np.float32),
        rows[1:].astype(np.float32),
        Calibration(mu=mu, beta=beta),
        config or ScoringConfig(),
    )


def possible_similarities(asked: EncodedQuery, *, seed: int) -> Values:
    """(n, 1 + m) products with unit images: at random, near zero, and at the very ends."""
    rng = np.random.default_rng(seed)
    m = len(asked.matrix)
    spread = rng.uniform(-1, 1, (300, m))
    ends = np.sign(rng.uniform(-1, 1, (60, m)))
    rows = np.concatenate([spread, 0.1 * spread, ends, np.ones((1, m)), -np.ones((1, m)), np.zeros((1, m))])
    return np.asarray((rows * np.linalg.norm(asked.matrix, axis=1)).astype(np.float32), dtype=np.float64)


def both(asked: EncodedQuery, similarities: Values, *, cosine: bool, **options: Any) -> tuple[Values, Values]:
    """The formula's scores and the core's."""
    formula = compile_formula(asked, cosine=cosine, **options)
    seen = similarities if len(formula.vectors) == len(asked.matrix) else similarities[:, 1:]
    if cosine:
        seen = seen / np.linalg.norm(formula.vectors.astype(np.float64), axis=1)
    with np.errstate(over="raise", divide="raise", invalid="raise", under="ignore"):
        scores = evaluate(formula.query.formula, seen.T)
    wanted, _ = asked.score_similarities(similarities)  # type: ignore[arg-type]
    return scores, np.asarray(wanted)


@settings(deadline=None, max_examples=150)
@given(
    trees(NAMES, max_leaves=6),
    CONFIGS,
    st.sampled_from([1.0, 5.0, 30.0, 60.0, 150.0]),
    st.sampled_from([-0.2, 0.05, 0.22, 0.4]),
    st.booleans(),
    st.integers(0, 99),
)
def test_equals_the_core_for_every_cosine(
    query: Query, config: ScoringConfig, beta: float, mu: float, cosine: bool, seed: int
) -> None:
    asked = encoded(query, mu=mu, beta=beta, config=config)
    try:
        scores, wanted = both(asked, possible_similarities(asked, seed=seed), cosine=cosine)
    except InvalidOption:
        assert config.aggregator == "probabilistic"
        assert beta > 60  # a product of five is then beyond float64
        return
    np.testing.assert_allclose(scores, wanted, atol=5e-6)


@pytest.mark.parametrize("beta", [30.0, 200.0, 450.0])
@pytest.mark.parametrize("query", [A | B, ~A | ~B, A & ~B, (A & ~B) | (C & ~D), (A | B) & (~C | D)])
def test_steep_evidence_stays_finite_and_equal(query: Query, beta: float) -> None:
    asked = encoded(query, beta=beta)
    scores, wanted = both(asked, possible_similarities(asked, seed=1), cosine=True)
    np.testing.assert_allclose(scores, wanted, atol=5e-6)


@settings(deadline=None, max_examples=60)
@given(trees(NAMES, max_leaves=5), CONFIGS, st.sampled_from([0.01, 0.3, 0.5, 0.9, 1.0]), st.integers(0, 99))
def test_demanded_truth_separates_at_the_threshold(
    query: Query, config: ScoringConfig, min_truth: float, seed: int
) -> None:
    asked = encoded(query, config=config)
    similarities = possible_similarities(asked, seed=seed)
    try:
        formula = compile_formula(asked, cosine=False, min_truth=min_truth)
    except InvalidOption:
        return
    scores, wanted = both(asked, similarities, cosine=False, min_truth=min_truth)
    _, truths = asked.score_similarities(similarities)  # type: ignore[arg-type]
    assert formula.threshold is not None
    kept = scores >= formula.threshold
    near = np.abs(np.log(truths) - np.log(min_truth)) < 1e-4
    near |= np.abs(np.log1p(-np.minimum(truths, 1 - 1e-12)) - np.log1p(-min(min_truth, 1 - 1e-12))) < 1e-4
    assert np.array_equal(kept[~near], (truths >= min_truth)[~near])
    np.testing.assert_allclose(scores[kept & ~near], wanted[kept & ~near], atol=5e-6)


def test_holistic_similarity_is_left_out_where_it_has_no_part() -> None:
    assert len(compile_formula(encoded(A & ~B), cosine=True).vectors) == 3
    factored = encoded(A & ~B, config=ScoringConfig(mode="factored"))
    assert len(compile_formula(factored, cosine=True).vectors) == 2


def test_refuses_what_no_formula_can_hold() -> None:
    with pytest.raises(InvalidOption, match="execution='client'"):
        compile_formula(encoded(A | B, beta=2000.0), cosine=True)
    deep: Query = A
    for _ in range(8):
        deep = ((deep | B) & C) | D
    with pytest.raises(InvalidOption, match="nodes"):
        compile_formula(encoded(deep), cosine=True)
    assert LARGEST_FORMULA >= 10_000


@settings(deadline=None)
@given(trees(max_leaves=SMALL_TREE), CONFIGS, st.sampled_from([None, 0.5]))
def test_small_trees_need_not_be_counted(query: Query, config: ScoringConfig, min_truth: float | None) -> None:
    def size(node: Any) -> int:
        parts = node if isinstance(node, list) else [value for _, value in node] if hasattr(node, "model_dump") else []
        return 1 + sum(map(size, parts))

    formula = compile_formula(encoded(query, config=config), cosine=True, min_truth=min_truth)
    assert size(formula.query.formula) < LARGEST_FORMULA / 4
