"""Candidate vectors: gradients of the score from where its best images are seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcse_plugins import Concept, LogicScorer, Query, ScoringConfig
from lcse_plugins.encoders import FloatArray
from lcse_plugins.query import Or
from lcse_plugins.retrieval.candidates import ALIKE, MAX_VECTORS
from lcse_plugins.testing import ToyEncoder
from tests.strategies import trees

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
    assert 1 <= len(vectors) <= MAX_VECTORS
    assert np.isfinite(vectors).all()
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    assert np.all((units @ units.T)[~np.eye(len(units), dtype=bool)] < ALIKE + 1e-3)


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
    assert len(LogicScorer(ENCODER).encode(many).plan.search_vectors) <= MAX_VECTORS


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
