"""The arithmetic against the published formulas, and the laws it must obey."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lcse_plugins import And, Calibration, Concept, Not, Or, Query, ScoringConfig, score_arrays
from lcse_plugins.errors import InvalidCandidate, InvalidOption, QueryError
from lcse_plugins.query import Plain, canonical, concepts, leaves
from lcse_plugins.scoring.calibration import CLIP_PRESET
from lcse_plugins.scoring.logic import probability, truth_logit
from lcse_plugins.scoring.results import ConceptEvidence
from tests import reference
from tests.strategies import NAMES, cosines, evidence, trees

A, B, C, D = (Concept(name) for name in NAMES[:4])
Floats = NDArray[np.float64]
CONFIG = ScoringConfig()
LCSE = ScoringConfig(mode="lcse")


def evaluate(query: Query, similar: dict[str, Floats], *, config: ScoringConfig) -> Floats:
    """The truth of a query, a probability."""
    logits = {name: (values - CLIP_PRESET.mu) * CLIP_PRESET.beta for name, values in similar.items()}
    return np.asarray(probability(truth_logit(canonical(query), logits, config=config)))


def power_mean(values: Floats, gamma: float) -> Floats:
    """The paper's mean of probabilities, as an AND takes it."""
    logits = {str(i): np.log(row) - np.log1p(-row) for i, row in enumerate(values)}
    query = And(tuple(Concept(name) for name in logits))
    config = ScoringConfig(mode="lcse", gamma_and=gamma)
    return np.asarray(probability(truth_logit(canonical(query), logits, config=config)))


SHAPES: dict[str, Query] = {
    "NOT": ~A,
    "AND": A & B,
    "OR": A | B,
    "BUT-NOT": A & ~B,
    "NEITHER": ~A & ~B,
    "three": A & B & ~C,
    "four": A | ~B | C | ~D,
    "nested": (A & ~B) | (C & D),
    "De Morgan": ~((A | ~B) & C),
    "plain": Plain((A, ~B, C)),
}


@pytest.fixture
def pool() -> tuple[Floats, dict[str, Floats]]:
    """Similarities as CLIP gives them: the published formula does not clip there."""
    rng = np.random.default_rng(7)
    return rng.uniform(0.1, 0.4, 200), {name: rng.uniform(0.05, 0.45, 200) for name in NAMES}


@pytest.mark.parametrize(
    "options",
    [
        *({"mode": m, "aggregator": a} for m in ("lcse", "factored") for a in ("power", "minmax", "probabilistic")),
        *({"gamma_and": a, "gamma_or": b} for a, b in ((-3.5, 4.0), (-0.5, 2.0), (0.5, 25.0))),
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_the_published_formulas(shape: str, options: dict[str, Any], pool: Any) -> None:
    holistic, similarities = pool
    config = ScoringConfig(**{"mode": "lcse", **options})
    scores = score_arrays(SHAPES[shape], holistic, similarities, calibration=CLIP_PRESET, config=config)
    for i, score in enumerate(scores):
        similar = {name: values[i] for name, values in similarities.items()}
        expected = reference.score(SHAPES[shape], holistic[i], similar, mu=0.22, beta=30.0, **options)
        assert score == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("query", "lcse", "anchored"),
    [(~A, 0.24, 0.19), (A & ~B, 0.3384690, 0.275), (A | B, 0.3264498, 0.2325), (~A & ~B, None, 0.2075)],
)
def test_canonical_numbers(query: Query, lcse: float | None, anchored: float) -> None:
    """Worked out by hand from the formulas, so that a change of method cannot pass unseen."""
    holistic, similarities = np.array([0.30]), {"dog": np.array([0.25]), "cat": np.array([0.18])}
    assert score_arrays(query, holistic, similarities, calibration=CLIP_PRESET)[0] == pytest.approx(anchored)
    if lcse is not None:
        scores = score_arrays(query, holistic, similarities, calibration=CLIP_PRESET, config=LCSE)
        assert scores[0] == pytest.approx(lcse, abs=1e-6)


@given(trees(plain=False), evidence(3), cosines(3), st.sampled_from([10.0, 30.0]))
def test_the_default_is_the_mean_of_what_is_affirmed_and_of_min_and_max(
    query: Query, similar: dict[str, Floats], holistic: Floats, beta: float
) -> None:
    """β has no part in it: a leaf counts as s, or as 2μ - s where it is negated."""
    tree, mu = canonical(query), 0.22
    if isinstance(tree, Concept):
        return

    def value(node: Query) -> Floats:
        match node:
            case Concept(text):
                return similar[text]
            case Not(Concept(text)):
                return np.asarray(2 * mu - similar[text])
            case And(children):
                return np.asarray(np.min([value(child) for child in children], axis=0))
            case Or(children):
                return np.asarray(np.max([value(child) for child in children], axis=0))
        raise AssertionError(node)

    parts = [value(~leaf if negated else leaf) for leaf, negated in leaves(tree)]
    from_text = not isinstance(tree, Or) and not all(negated for _, negated in leaves(tree))
    expected = (value(canonical(tree)) + (holistic if from_text else np.mean(parts, axis=0))) / 2
    scores = score_arrays(query, holistic, similar, calibration=Calibration(mu=mu, beta=beta))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)


@given(trees(), cosines(4), evidence())
def test_no_logic_leaves_the_similarity_bit_for_bit(query: Query, holistic: Floats, similar: dict[str, Floats]) -> None:
    bare = Plain(tuple(Concept(name) for name in concepts(query)))
    for dtype in (np.float32, np.float64):
        given_holistic = holistic.astype(dtype)
        typed = {name: values.astype(dtype) for name, values in similar.items()}
        scores = score_arrays(bare, given_holistic, typed, calibration=CLIP_PRESET)
        assert scores.tobytes() == given_holistic.tobytes()
        assert scores is not given_holistic


@given(st.lists(st.floats(1e-6, 1 - 1e-6), min_size=1, max_size=6))
def test_power_mean_grows_with_its_exponent_from_the_smallest_to_the_largest(values: list[float]) -> None:
    table = np.array(values)[:, None]
    exponents = (-math.inf, -30.0, -1.0, -0.3, 0.0, 0.5, 1.0, 10.0, math.inf)
    means = [power_mean(table, gamma)[0] for gamma in exponents]
    assert all(low <= high + 1e-9 for low, high in itertools.pairwise(means))
    assert (means[0], means[-1]) == pytest.approx((min(values), max(values)), rel=1e-6)


@given(trees(), evidence(1, low=0.0, high=0.5), st.sampled_from(NAMES), st.floats(0.0, 0.3))
def test_truth_follows_each_concept(query: Query, similar: dict[str, Floats], name: str, more: float) -> None:
    signs = {negated for leaf, negated in leaves(canonical(query)) if leaf.text == name}
    if len(signs) != 1:
        return
    for aggregator in ("power", "minmax", "probabilistic"):
        config = ScoringConfig(aggregator=aggregator)
        before = evaluate(query, similar, config=config)[0]
        raised = {**similar, name: similar[name] + more}
        after = evaluate(query, raised, config=config)[0]
        assert after <= before + 1e-12 if signs == {True} else after >= before - 1e-12


@given(trees(plain=False), evidence(), cosines(4), st.randoms(use_true_random=False))
def test_equivalent_queries_are_edited_alike(
    query: Query, similar: dict[str, Floats], holistic: Floats, random: Any
) -> None:
    def rewritten(node: Query) -> Query:
        """The same statement in other words: De Morgan, double negation, other order and grouping."""
        match node:
            case Concept():
                return ~~node
            case Not(child):
                return Not(rewritten(child))
            case And(children) | Or(children) | Plain(children):
                parts = [rewritten(child) for child in children]
                random.shuffle(parts)
                kind = type(node)
                if len(parts) > 2:
                    parts = [kind((parts[0], parts[1])), *parts[2:]]
                other = Or if kind is And else And
                return Not(other(tuple(Not(part) for part in parts)))

    for config in (CONFIG, LCSE):
        plainly = score_arrays(query, holistic, similar, calibration=CLIP_PRESET, config=config)
        other = score_arrays(rewritten(query), holistic, similar, calibration=CLIP_PRESET, config=config)
        np.testing.assert_allclose(other, plainly, rtol=0, atol=1e-9)


@given(
    trees(),
    evidence(low=0.0, high=0.6),
    cosines(4),
    st.sampled_from(["power", "minmax", "probabilistic"]),
    st.sampled_from([30.0, 150.0, 450.0]),
)
def test_torch_and_single_precision_agree_with_numpy(
    query: Query, similar: dict[str, Floats], holistic: Floats, aggregator: Any, beta: float
) -> None:
    options: dict[str, Any] = {
        "calibration": Calibration(mu=0.22, beta=beta),
        "config": ScoringConfig(aggregator=aggregator),
    }
    similar = {name: values.astype(np.float32).astype(np.float64) for name, values in similar.items()}
    exact = score_arrays(query, holistic, similar, **options)
    for dtype, tolerance in ((np.float32, 2e-6), (np.float64, 1e-9)):
        arrays = {name: values.astype(dtype) for name, values in similar.items()}
        tensors = {name: torch.from_numpy(values) for name, values in arrays.items()}
        by_numpy = score_arrays(query, holistic.astype(dtype), arrays, **options)
        by_torch = score_arrays(query, torch.from_numpy(holistic.astype(dtype)), tensors, **options)
        assert isinstance(by_torch, torch.Tensor)
        for scores in (by_numpy, by_torch.numpy()):
            np.testing.assert_allclose(scores, exact, rtol=0, atol=tolerance)


@given(
    trees(),
    st.fixed_dictionaries({name: cosines(2, low=-1e30, high=1e30) for name in NAMES}),
    st.sampled_from([-math.inf, -1e6, -30.0, -1.0, 0.0, 0.7, 1e6]),
    st.sampled_from(["power", "minmax", "probabilistic"]),
    st.sampled_from(["lcse", "anchored", "factored", "routed"]),
)
def test_any_finite_input_gives_a_finite_score(
    query: Query, similar: dict[str, Floats], gamma: float, aggregator: Any, mode: Any
) -> None:
    config = ScoringConfig(gamma_and=gamma, aggregator=aggregator, mode=mode)
    for dtype in (np.float32, np.float64):
        typed = {name: values.astype(dtype) for name, values in similar.items()}
        scores = score_arrays(query, np.zeros(2, dtype), typed, calibration=CLIP_PRESET, config=config)
        assert np.isfinite(scores).all()
        assert scores.dtype == dtype


def test_modes_differ_only_where_there_is_logic(pool: Any) -> None:
    holistic, similarities = pool

    def scores(query: Query, mode: Any) -> Floats:
        config = ScoringConfig(mode=mode, aggregator="power")
        return np.asarray(score_arrays(query, holistic, similarities, calibration=CLIP_PRESET, config=config))

    by_mode = {mode: scores(A & ~B, mode) for mode in ("lcse", "anchored", "factored", "routed", "holistic")}
    np.testing.assert_array_equal(by_mode["holistic"], holistic)
    np.testing.assert_array_equal(by_mode["routed"], by_mode["factored"])
    assert not np.allclose(by_mode["lcse"], by_mode["factored"])
    np.testing.assert_allclose(by_mode["anchored"], (holistic + by_mode["factored"]) / 2, atol=1e-12)
    np.testing.assert_allclose(scores(A, "factored"), similarities["dog"], atol=1e-12)


@pytest.mark.parametrize("query", SHAPES.values())
@pytest.mark.parametrize("dtype", [np.float16, np.float32, torch.float16, torch.bfloat16])
def test_scores_have_the_precision_of_the_similarity(query: Query, dtype: Any, pool: Any) -> None:
    holistic, similarities = pool
    exact = score_arrays(query, holistic, similarities, calibration=CLIP_PRESET)
    given = holistic.astype(dtype) if isinstance(dtype, type) else torch.tensor(holistic).to(dtype)
    mixed = similarities if isinstance(dtype, type) else {k: torch.tensor(v) for k, v in similarities.items()}
    scores = score_arrays(query, given, mixed, calibration=CLIP_PRESET)
    assert scores.dtype == dtype
    np.testing.assert_allclose(np.asarray(scores.tolist()), exact, atol=5e-3)


@pytest.mark.parametrize(
    ("holistic", "similarities", "message"),
    [
        (np.zeros(3), {"dog": np.zeros(3)}, "no similarities for concept 'cat'"),
        (np.zeros(3), {"dog": np.zeros(3), "cat": np.zeros(2)}, "shape"),
        (np.array([0, np.nan]), {"dog": np.zeros(2), "cat": np.zeros(2)}, "holistic hold NaN"),
        (np.zeros(1), {"dog": np.array([np.inf]), "cat": np.zeros(1)}, "'dog' hold NaN or infinite"),
        (np.zeros(1, dtype=int), {"dog": np.zeros(1), "cat": np.zeros(1)}, "must be floats"),
        ([0.1], {"dog": np.zeros(1), "cat": np.zeros(1)}, "holistic must be an array"),
        (np.zeros(1), {"dog": np.zeros(1), "cat": [0.1]}, "'cat' must be an array"),
        (np.zeros(1), {"dog": np.zeros(1), "cat": torch.zeros(1)}, "two array libraries"),
    ],
)
def test_bad_arrays_are_refused(holistic: Any, similarities: Any, message: str) -> None:
    with pytest.raises(InvalidCandidate, match=message):
        score_arrays(A & B, holistic, similarities, calibration=CLIP_PRESET)
    with pytest.raises(QueryError, match="tree"):
        score_arrays("a dog", np.zeros(1), {}, calibration=CLIP_PRESET)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("mode", "magic"), ("aggregator", "median"), ("gamma_and", math.nan), ("gamma_or", 1e7)),
        *(("templates", ()), ("templates", ("photo",))),
    ],
)
def test_bad_options_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption):
        ScoringConfig(**{name: value})


def test_a_mode_has_its_own_aggregator() -> None:
    assert (ScoringConfig().mode, ScoringConfig().aggregator) == ("anchored", "minmax")
    assert ScoringConfig(mode="lcse").aggregator == "power"
    assert ScoringConfig().with_mode("lcse") == ScoringConfig(mode="lcse")
    assert ScoringConfig(aggregator="power").with_mode("factored").aggregator == "power"


@pytest.mark.parametrize(
    ("presence", "probability", "word", "text"),
    [
        (0.97, 0.9999, "clear", "cat: clear, 97 %"),
        (0.6, 0.97, "likely", "cat: likely, 60 %"),
        (0.2, 0.7, "unclear", "cat: unclear, 20 %"),
        (0.01, 0.2, "not seen", "cat: not seen"),
        (None, 0.995, "clear", "cat: clear"),
        (None, 0.96, "likely", "cat: likely"),
        (None, 0.6, "unclear", "cat: unclear"),
        (None, 0.4, "not seen", "cat: not seen"),
    ],
)
def test_evidence_in_words(presence: float | None, probability: float, word: str, text: str) -> None:
    item = ConceptEvidence("cat", False, 0.3, probability, presence)
    assert (item.word, item.text) == (word, text)
    assert item.to_json()["presence"] == presence
    assert replace(item, negated=True).text == (f"no {text}" if word == "not seen" else text)
