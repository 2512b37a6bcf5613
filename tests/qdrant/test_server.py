"""A real server, over REST and gRPC: the core's ranking, proofs that hold, strict mode, deadlines, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from qdrant_client import QdrantClient, models
from qdrant_lcse import AsyncLogicSearch, LogicSearch

from lcse_plugins import VectorPool
from lcse_plugins.errors import CollectionError, SearchUnavailable
from tests.qdrant.data import (
    BUT_NOT,
    INT8,
    OPERATORS,
    PAPER,
    SCORER,
    TENANTS,
    assert_top,
    fill,
    image_vectors,
    random_trees,
    tenant,
)
from tests.qdrant.server import Node, running

pytestmark = [pytest.mark.qdrant_server, pytest.mark.xdist_group("qdrant")]

POINTS = 4_000
VECTORS = image_vectors(POINTS)
TREES = random_trees(60)
KINDS: dict[str, dict[str, Any]] = {
    "cosine": {},
    "dot": {"distance": models.Distance.DOT},
    "int8": {"quantization_config": INT8},
    "named": {"using": "image"},
}
EXHAUSTIVE = models.SearchParams(exact=True)


@pytest.fixture(scope="module", autouse=True)
def filled(server: Node) -> Iterator[None]:
    client = server.client()
    for name, options in KINDS.items():
        fill(client, f"lcse-{name}", VECTORS, indexed=True, **options)
    yield
    for name in KINDS:
        client.delete_collection(f"lcse-{name}")
    client.close()


@pytest.fixture(params=["REST", "gRPC"])
def client(server: Node, request: pytest.FixtureRequest) -> Iterator[QdrantClient]:
    client = server.client(grpc=request.param == "gRPC")
    yield client
    client.close()


def search_in(client: QdrantClient, kind: str = "cosine", scorer: Any = SCORER, **options: Any) -> LogicSearch:
    return LogicSearch(client, f"lcse-{kind}", scorer, vector_name=KINDS[kind].get("using"), **options)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_queries_prove_the_exhaustive_ranking(client: QdrantClient, kind: str) -> None:
    search = search_in(client, kind)
    for query in [*OPERATORS.values(), *TREES[::3]]:
        hits = search.query(query, exact=True)
        assert hits.exact
        assert_top(hits, query, VECTORS)


@pytest.mark.parametrize("kind", KINDS)
def test_candidates_find_nearly_all_and_their_scores_are_true(client: QdrantClient, kind: str) -> None:
    search, shares = search_in(client, kind), []
    for query in [*OPERATORS.values(), *TREES]:
        hits, encoded = search.query(query), SCORER.encode(query)
        _, best = VectorPool(VECTORS).top(encoded, limit=10)
        ids = [int(point.id) for point in hits]
        own, _ = encoded.score_similarities(VECTORS[ids] @ encoded.matrix.T)
        np.testing.assert_allclose([point.score for point in hits], own, atol=1e-5)
        shares.append(np.mean(own >= best[-1] - 1e-5))
    assert np.mean(shares) > 0.98


def test_one_tenant_scanned_gives_its_exhaustive_ranking(client: QdrantClient) -> None:
    places = np.arange(3, POINTS, TENANTS)
    options: Any = {"candidates": 12 * POINTS, "search_params": EXHAUSTIVE, "query_filter": tenant(3)}
    for query in [*OPERATORS.values(), *TREES]:
        assert_top(search_in(client).query(query, **options), query, VECTORS, places=places)
    for query in TREES[::10]:
        assert_top(search_in(client, scorer=PAPER).query(query, **options), query, VECTORS, scorer=PAPER, places=places)


@pytest.mark.parametrize("operator", ["AND", "BUT NOT", "NEITHER", "NESTED", "DEEP"])
def test_recall_holds_at_large_limits(client: QdrantClient, operator: str) -> None:
    hits = search_in(client).query(OPERATORS[operator], limit=500)
    best, _ = VectorPool(VECTORS).top(SCORER.encode(OPERATORS[operator]), limit=500)
    assert len(hits) == 500
    assert len({point.id for point in hits} & set(best.tolist())) >= 485


def test_demanded_truth_and_pages(client: QdrantClient) -> None:
    search = search_in(client)
    for name in ("NOT", "BUT NOT", "NESTED"):
        for min_truth in (0.3, 0.9):
            hits = search.query(OPERATORS[name], min_truth=min_truth, exact=True)
            assert_top(hits, OPERATORS[name], VECTORS, min_truth=min_truth)
        pages = [search.query(OPERATORS[name], limit=5, offset=offset, exact=True).points for offset in (0, 5, 10)]
        whole = search.query(OPERATORS[name], limit=15, exact=True).points
        assert [point.id for page in pages for point in page] == [point.id for point in whole]


def test_what_may_skip_points_proves_nothing(client: QdrantClient) -> None:
    search = search_in(client)
    for params in (models.SearchParams(indexed_only=True), models.SearchParams(indexed_only=True, exact=True)):
        for name in ("NOT", "AND", "NEITHER", "NESTED"):
            for exact in (False, True):
                assert not search.query(OPERATORS[name], search_params=params, exact=exact).exact
    for name in ("AND", "BUT NOT", "NESTED"):
        assert not search.query(OPERATORS[name], candidates=20).exact


def test_strict_mode_is_obeyed_and_told(client: QdrantClient) -> None:
    strict = models.StrictModeConfig(
        enabled=True, search_allow_exact=False, max_query_limit=100, search_max_hnsw_ef=128, condition_max_size=90
    )
    fill(client, "lcse-strict", VECTORS, indexed=True, strict_mode_config=strict)
    search = LogicSearch(client, "lcse-strict", SCORER)
    for query in [*OPERATORS.values(), *TREES[::5]]:
        for options in ({}, {"exact": True}, {"limit": 100}, {"min_truth": 0.9}, {"limit": 60, "offset": 60}):
            hits = search.query(query, **options)
            assert not hits.exact
    deep = search.query(OPERATORS["DEEP"], limit=90)
    assert any("strict mode allows 100 points" in note for note in deep.notes)
    assert deep.notes[0] in deep.explain()
    assert any("no exact search" in note for note in search.query(BUT_NOT, exact=True).notes)
    with pytest.raises(CollectionError, match=r"[Ll]imit"):
        search.query(BUT_NOT, limit=101)
    client.delete_collection("lcse-strict")


def test_selectors_and_only_what_is_asked_for(client: QdrantClient) -> None:
    search = search_in(client, "named")
    (point,) = search.query(BUT_NOT, limit=1, with_payload=["place"], with_vectors=["image"])
    assert point.payload == {"place": point.id}
    vector: Any = point.vector
    np.testing.assert_allclose(vector["image"], VECTORS[int(point.id)], atol=1e-6)
    excluded = models.PayloadSelectorExclude(exclude=["place"])
    (point,) = search.query(BUT_NOT, limit=1, with_payload=excluded)
    assert point.payload == {"tenant": int(point.id) % TENANTS}
    threshold = search.query(BUT_NOT, limit=5).points[2].score
    assert len(search.query(BUT_NOT, limit=5, score_threshold=threshold)) == 3
    assert len(search.query(BUT_NOT, limit=2, consistency="all")) == 2


def test_a_deadline_for_the_whole_query(client: QdrantClient) -> None:
    search = search_in(client)
    assert len(search.query(BUT_NOT, timeout=30.5)) == 10
    with pytest.raises(SearchUnavailable, match="timeout"):
        search.query(BUT_NOT, exact=True, timeout=1e-9)


def test_refusals_of_the_server(client: QdrantClient) -> None:
    with pytest.raises(CollectionError, match=r"^collection 'lcse-missing': Qdrant refused.*[Nn]ot found.*$"):
        LogicSearch(client, "lcse-missing", SCORER).query(BUT_NOT)


def test_a_wrong_key_is_a_refusal() -> None:
    with running(service=", api_key: secret") as (node,):
        for grpc in (False, True):
            client = node.client(grpc=grpc, api_key=None)
            with pytest.raises(CollectionError, match=r"refused the request \((401|UNAUTHENTICATED)"):
                LogicSearch(client, "photos", SCORER).query(BUT_NOT)
            client.close()


@pytest.mark.parametrize("grpc", [False, True])
async def test_async_search_over_the_wire(server: Node, grpc: bool) -> None:
    client = server.aclient(grpc=grpc)
    search = AsyncLogicSearch(client, "lcse-cosine", SCORER)
    for query in OPERATORS.values():
        assert_top(await search.query(query, exact=True), query, VECTORS)
    await client.close()
