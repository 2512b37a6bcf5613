"""One answer: every execution, backend and kind of collection gives the core's exhaustive ranking."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from qdrant_client import models
from qdrant_client.conversions.common_types import get_args_subscribed
from qdrant_client.hybrid import formula
from qdrant_lcse import Hits, LogicSearch

from lcse_plugins import LogicScorer, Query, VectorPool
from lcse_plugins.query import canonical, has_logic
from lcse_plugins.retrieval.candidates import MAX_VECTORS
from lcse_plugins.scoring.config import Aggregator, Mode, ScoringConfig
from tests.qdrant.data import ENCODER, OPERATORS, SCORER, SERVER, Client, fill, image_vectors, opened, random_trees

EXHAUSTIVE = models.SearchParams(exact=True)
POINTS = 5_000
TENANTS = 7
COVERING = MAX_VECTORS
"""Candidates for each point: they are shared out among the candidate searches, each of which then reaches all."""

EVERY = int(os.environ.get("LCSE_CONGRUENCE_EVERY", "40"))
"""Of the random trees, every so many runs. With 1 all of them run, in every execution, on every kind of collection and
over all points, in local mode too, which takes hours."""

FEW = 100 if EVERY > 1 else POINTS
"""Points in local mode where it computes formulas, which it does in Python: 5,000 take it seconds for each query."""

TENANT = np.arange(3, POINTS, TENANTS)
ONE_TENANT: Any = {
    "candidates": COVERING * (len(TENANT) + 1),
    "search_params": EXHAUSTIVE,
    "query_filter": models.Filter(must=[models.FieldCondition(key="tenant", match=models.MatchValue(value=3))]),
}
"""All points of one tenant, every one of them scored."""

VECTORS = image_vectors(POINTS)
TREES = random_trees(200)
QUERIES = [*OPERATORS.values(), *TREES[::EVERY]]
EXECUTIONS = ["client", "nested", "two-trip"]
DISTANCES = {"cosine": models.Distance.COSINE, "dot": models.Distance.DOT, "int8": models.Distance.COSINE}
LOCAL = ["cosine", "dot"]


@pytest.fixture(scope="module", params=["engine", SERVER])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with opened(request.param, tmp_path_factory.mktemp("engine")) as client:
        for name, distance in DISTANCES.items():
            fill(client, f"lcse-{name}", VECTORS, distance=distance, quantised=name == "int8")
            if request.param == "engine":
                assert client.get_collection(f"lcse-{name}").indexed_vectors_count == POINTS
        yield client
        for name in DISTANCES:
            client.delete_collection(f"lcse-{name}")


@pytest.fixture(scope="module")
def local() -> Iterator[Client]:
    with opened("local", Path()) as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(formula, "get_args_subscribed", cache(get_args_subscribed))  # otherwise most of its time
        for name in LOCAL:
            fill(client, f"lcse-{name}", VECTORS, distance=DISTANCES[name])
            fill(client, f"lcse-{name}-few", VECTORS[:FEW], distance=DISTANCES[name])
        yield client


def assert_ranking(
    hits: Hits, query: Query, vectors: Any, *, scorer: LogicScorer = SCORER, places: Any = None, **options: Any
) -> None:
    """The hits are the exhaustive top of the core: the same scores, and the same points where scores differ."""
    encoded = scorer.encode(query)
    best, scores = VectorPool(vectors if places is None else vectors[places]).top(encoded, limit=10, **options)
    best = best if places is None else places[best]
    found = [point.score for point in hits.points]
    np.testing.assert_allclose(found, scores, atol=1e-5)
    own, _ = encoded.score_similarities(vectors[[int(point.id) for point in hits.points]] @ encoded.matrix.T)
    np.testing.assert_allclose(found, own, atol=1e-5)
    apart = np.abs(np.diff(scores)) > 2e-5
    clear = np.concatenate([[True], apart]) & np.concatenate([apart, [False]])
    assert np.array_equal(np.array([point.id for point in hits.points])[clear], best[clear])


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("stored", DISTANCES)
def test_covering_candidates_give_the_exhaustive_ranking(database: Client, stored: str, execution: Any) -> None:
    search = LogicSearch(database, f"lcse-{stored}", SCORER, execution=execution)
    for query in _share(stored, list(DISTANCES)) if execution == "client" else QUERIES:
        hits = search.query(query, candidates=COVERING * (POINTS + 1), search_params=EXHAUSTIVE)
        assert hits.exact
        assert hits.execution in (execution, "linear")
        assert_ranking(hits, query, VECTORS)


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_random_trees_over_one_tenant(database: Client, execution: Any) -> None:
    for stored, trees in zip(DISTANCES, _dealt(TREES, 3), strict=True):
        search = LogicSearch(database, f"lcse-{stored}", SCORER, execution=execution)
        for query in trees[:: 5 if execution == "client" else 1]:  # vectors on the way make it slow
            hits = search.query(query, **ONE_TENANT)
            assert {int(point.id) for point in hits.points} <= set(TENANT.tolist())
            assert_ranking(hits, query, VECTORS, places=TENANT)


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("stored", DISTANCES)
def test_exact_queries_prove_the_exhaustive_ranking(database: Client, stored: str, execution: Any) -> None:
    search = LogicSearch(database, f"lcse-{stored}", SCORER, execution=execution)
    for query in _share(stored, list(DISTANCES)):
        hits = search.query(query, candidates=1000, exact=True)
        assert hits.exact
        assert_ranking(hits, query, VECTORS)


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("stored", LOCAL)
def test_local_mode_ranks_as_the_core_does(local: Client, stored: str, execution: Any) -> None:
    name, points = (f"lcse-{stored}", POINTS) if execution == "client" else (f"lcse-{stored}-few", FEW)
    search = LogicSearch(local, name, SCORER, execution=execution)
    for query in _share(stored, LOCAL):
        for options in ({"candidates": COVERING * (points + 1)}, {"candidates": points // 16, "exact": True}):
            hits = search.query(query, **options)  # type: ignore[arg-type]
            assert hits.exact
            assert hits.execution in (execution, "linear")
            assert_ranking(hits, query, VECTORS[:points])


def test_auto_scores_here_in_local_mode(local: Client) -> None:
    hits = LogicSearch(local, "lcse-cosine", SCORER).query(OPERATORS["NESTED"], candidates=300, exact=True)
    assert (hits.execution, hits.exact) == ("client", True)


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("operator", ["AND", "OR", "BUT NOT", "NEITHER", "NESTED"])
def test_few_candidates_are_never_called_exact(database: Client, operator: str, execution: Any) -> None:
    search = LogicSearch(database, "lcse-cosine", SCORER, execution=execution)
    for params in (None, EXHAUSTIVE):
        assert not search.query(OPERATORS[operator], candidates=20, search_params=params).exact


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize("aggregator", get_args(Aggregator))
def test_every_mode_and_aggregator(database: Client, mode: Mode, aggregator: Aggregator) -> None:
    scorer = LogicScorer(ENCODER, config=ScoringConfig(mode=mode, aggregator=aggregator))
    queries = [OPERATORS["BUT NOT"], OPERATORS["NESTED"], OPERATORS["PLAIN"]]
    for execution in ("nested", "two-trip"):
        search = LogicSearch(database, "lcse-cosine", scorer, execution=execution)
        for query, hits in zip(queries, search.query_batch(queries, **ONE_TENANT), strict=True):
            assert_ranking(hits, query, VECTORS, scorer=scorer, places=TENANT)


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("operator", ["NOT", "BUT NOT", "NESTED", "PLAIN"])
def test_demanded_truth(database: Client, operator: str, execution: Any) -> None:
    search = LogicSearch(database, "lcse-cosine", SCORER, execution=execution)
    for min_truth in (0.3, 0.9):
        hits = search.query(OPERATORS[operator], min_truth=min_truth, **ONE_TENANT)
        assert_ranking(hits, OPERATORS[operator], VECTORS, places=TENANT, min_truth=min_truth)
        assert all(ranked.truth >= min_truth - 1e-6 for ranked in hits.ranking)


def test_random_trees_are_not_all_alike() -> None:
    assert len(set(TREES)) > 150
    assert sum(has_logic(canonical(tree)) for tree in TREES) > 150


def _dealt(items: Sequence[Query], hands: int) -> list[Sequence[Query]]:
    return [items[start::hands] for start in range(hands)]


def _share(stored: str, kinds: Sequence[str]) -> Sequence[Query]:
    """The queries for one kind of collection: dealt out among the kinds, unless everything is to run."""
    return QUERIES if EVERY == 1 else _dealt(QUERIES, len(kinds))[kinds.index(stored)]
