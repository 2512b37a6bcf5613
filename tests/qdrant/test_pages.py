"""Pages and demanded truths: cut from one ranking, the same in every execution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from qdrant_client import QdrantClient, models
from qdrant_lcse import LogicSearch
from qdrant_lcse.embedded import EmbeddedClient

from lcse_plugins import Calibration, LogicScorer, Query, VectorPool
from tests.qdrant.data import (
    CAR,
    DOG,
    ENCODER,
    OPERATORS,
    PERSON,
    SCORER,
    UMBRELLA,
    Client,
    fill,
    image_vectors,
    opened,
)

VECTORS = image_vectors(600, seed=3)
EXECUTIONS = ["client", "nested", "two-trip"]


@pytest.fixture(scope="module", params=["local", "engine"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    made: Client = QdrantClient(":memory:")
    if request.param == "engine":
        made = EmbeddedClient(tmp_path_factory.mktemp("engine"))
    fill(made, "photos", VECTORS[:200])
    yield made
    made.close()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedClient]:
    with EmbeddedClient(tmp_path_factory.mktemp("engine")) as made:
        fill(made, "photos", VECTORS)
        yield made


@pytest.fixture(scope="module")
def equals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedClient]:
    with EmbeddedClient(tmp_path_factory.mktemp("engine")) as made:
        fill(made, "photos", np.random.default_rng(1).permutation(np.repeat(VECTORS[:40], 5, axis=0)))
        yield made


@pytest.fixture(scope="module", params=["local", "engine"])
def zeros(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with opened(request.param, tmp_path_factory.mktemp("zeros")) as made:
        fill(made, "photos", np.concatenate([np.zeros_like(VECTORS[:50]), VECTORS[50:200]]))
        yield made


def paged(search: LogicSearch, query: Query, *, limit: int, places: int, **options: Any) -> list[Any]:
    pages = [search.query(query, limit=limit, offset=start, **options) for start in range(0, places, limit)]
    return [point.id for page in pages for point in page]


@pytest.mark.parametrize("operator", ["BUT NOT", "NEITHER", "NESTED"])
@pytest.mark.parametrize("execution", EXECUTIONS)
def test_pages_are_cut_from_the_same_candidates(client: Client, operator: str, execution: Any) -> None:
    search, query = LogicSearch(client, "photos", SCORER, execution=execution), OPERATORS[operator]
    ids = paged(search, query, limit=20, places=200, candidates=90)
    assert 30 <= len(ids) < 200
    assert len(set(ids)) == len(ids)
    scores, _ = SCORER.encode(query).score_similarities(VECTORS[ids] @ SCORER.encode(query).matrix.T)
    assert np.all(np.diff(scores) <= 1e-6)
    assert ids == paged(LogicSearch(client, "photos", SCORER), query, limit=20, places=200, candidates=90)


@pytest.mark.parametrize("min_truth", [None, 0.1])
@pytest.mark.parametrize("execution", EXECUTIONS)
def test_pages_far_beyond_the_candidates_are_empty(client: Client, execution: Any, min_truth: float | None) -> None:
    search = LogicSearch(client, "photos", SCORER, execution=execution)
    for query in (OPERATORS["BUT NOT"], ~UMBRELLA):
        assert search.query(query, offset=10**9, candidates=90, min_truth=min_truth).points == []


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_exact_pages_reach_every_point(client: Client, execution: Any) -> None:
    search = LogicSearch(client, "photos", SCORER, execution=execution)
    best, _ = VectorPool(VECTORS[:200]).top(SCORER.encode(OPERATORS["BUT NOT"]))
    ids = paged(search, OPERATORS["BUT NOT"], limit=50, places=200, candidates=20, exact=True)
    assert ids == best.tolist()


@pytest.mark.parametrize("query", [DOG & ~CAR, OPERATORS["NESTED"], ~UMBRELLA], ids=str)
@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("min_truth", [None, 0.01])
def test_pages_neither_repeat_nor_lose_what_is_equal(
    equals: EmbeddedClient, query: Query, execution: Any, min_truth: float | None
) -> None:
    search = LogicSearch(equals, "photos", SCORER, execution=execution)
    options: Any = {"candidates": 3000, "min_truth": min_truth}
    ids = paged(search, query, limit=7, places=98, **options)
    assert len(set(ids)) == len(ids) >= 40
    assert ids == [point.id for point in search.query(query, limit=98, **options)]
    assert ids == [
        point.id
        for point in LogicSearch(equals, "photos", SCORER, execution="client").query(query, limit=98, **options)
    ]


@pytest.mark.parametrize("query", [DOG & ~CAR, OPERATORS["NEITHER"], ~UMBRELLA], ids=str)
@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("min_truth", [None, 0.01])
def test_zero_vectors_are_passed_over(
    zeros: Client, query: Query, execution: Any, min_truth: float | None, exact: bool
) -> None:
    search = LogicSearch(zeros, "photos", SCORER, execution=execution)
    best, _ = VectorPool(VECTORS[50:200]).top(SCORER.encode(query), limit=30, min_truth=min_truth)
    hits = search.query(query, limit=30, candidates=3000, exact=exact, min_truth=min_truth)
    assert [point.id for point in hits] == (50 + best).tolist()
    assert len(hits.explain().splitlines()) == len(hits)
    page = search.query(query, limit=7, offset=3, candidates=3000, exact=exact, min_truth=min_truth)
    assert [point.id for point in page] == [point.id for point in hits][3:10]


def test_exact_pages_neither_repeat_nor_lose_what_is_equal() -> None:
    made = QdrantClient(":memory:")
    fill(made, "photos", np.repeat(image_vectors(20, seed=3), 10, axis=0))
    ids = paged(LogicSearch(made, "photos", SCORER), DOG & ~CAR, limit=7, places=200, candidates=20, exact=True)
    assert sorted(ids) == list(range(200))


@pytest.mark.parametrize("query", [CAR | DOG, UMBRELLA & ~PERSON, ~UMBRELLA], ids=str)
@pytest.mark.parametrize("execution", ["nested", "two-trip"])
def test_a_point_holds_at_its_own_truth(engine: EmbeddedClient, query: Query, execution: Any) -> None:
    search = LogicSearch(engine, "photos", SCORER, execution=execution)
    everything: Any = {"limit": 600, "candidates": 12_000, "search_params": models.SearchParams(exact=True)}
    whole = {ranked.id: ranked for ranked in SCORER.rank(query, VECTORS)}
    for ranked in search.query(query, limit=20).ranking:
        hits = search.query(query, min_truth=ranked.truth, **everything)
        found = {point.id: point.score for point in hits}
        assert ranked.id in found
        assert [place for place, score in found.items() if abs(score - whole[place].score) > 1e-5] == []
        assert all(other.truth >= ranked.truth - 1e-6 for place, other in whole.items() if place in found)
        assert all(other.truth <= ranked.truth + 1e-6 for place, other in whole.items() if place not in found)


@pytest.mark.parametrize("exact", [False, True])
def test_pages_are_full_where_float32_leaves_truths_in_doubt(engine: EmbeddedClient, exact: bool) -> None:
    steep = LogicScorer(ENCODER, calibration=Calibration(mu=0.35, beta=45.0))
    options: Any = {"min_truth": 1.0, "candidates": 5000, "exact": exact}
    found = []
    for execution in EXECUTIONS:
        search = LogicSearch(engine, "photos", steep, execution=execution)  # type: ignore[arg-type]
        pages = [search.query(~UMBRELLA & ~PERSON, limit=20, offset=start, **options) for start in (0, 20, 40)]
        assert [len(page) for page in pages] == [20, 20, 11]
        found.append([point.id for page in pages for point in page])
    assert found[1] == found[2] == found[0]
