"""LogicSearch in local mode: the core's ranking, its options, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_lcse import AsyncLogicSearch, LogicSearch, read_langchain_payload, read_llama_index_payload

from lcse_plugins import Concept, LogicScorer, ScoringConfig
from lcse_plugins.errors import CollectionError, InvalidCandidate, InvalidOption, QueryError
from tests.qdrant.data import (
    BUT_NOT,
    ENCODER,
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

POINTS = 250
VECTORS = image_vectors(POINTS)
TREES = random_trees(24)


@pytest.fixture(scope="module")
def client() -> Iterator[QdrantClient]:
    client = QdrantClient(":memory:")
    fill(client, "cosine", VECTORS)
    fill(client, "dot", VECTORS, distance=models.Distance.DOT)
    yield client
    client.close()


@pytest.fixture(scope="module")
def search(client: QdrantClient) -> LogicSearch:
    return LogicSearch(client, "cosine", SCORER)


@pytest.mark.parametrize("name", ["cosine", "dot"])
def test_all_operators_and_random_trees(client: QdrantClient, name: str) -> None:
    search = LogicSearch(client, name, SCORER)
    for query in [*OPERATORS.values(), *TREES]:
        hits = search.query(query)
        assert hits.exact
        assert hits.execution in ("client", "linear")
        assert_top(hits, query, VECTORS)


@pytest.mark.parametrize("query", OPERATORS.values(), ids=OPERATORS)
def test_exact_searches_deeper_until_the_result_is_proved(client: QdrantClient, query: Any) -> None:
    search = LogicSearch(client, "cosine", SCORER, execution="formula")
    hits = search.query(query, limit=5, candidates=12, exact=True)
    assert hits.exact
    assert hits.execution in ("formula", "linear")
    assert_top(hits, query, VECTORS, limit=5)


@pytest.mark.parametrize("mode", ["anchored", "lcse", "factored", "routed", "holistic"])
@pytest.mark.parametrize("aggregator", ["minmax", "power", "probabilistic"])
def test_every_mode_and_aggregator(client: QdrantClient, mode: Any, aggregator: Any) -> None:
    scorer = LogicScorer(ENCODER, config=ScoringConfig(mode=mode, aggregator=aggregator))
    search = LogicSearch(client, "cosine", scorer)
    for name in ("BUT NOT", "NESTED", "PLAIN"):
        assert_top(search.query(OPERATORS[name], exact=True), OPERATORS[name], VECTORS, scorer=scorer)


def test_filters_limits_and_offsets(search: LogicSearch) -> None:
    places = np.arange(3, POINTS, TENANTS)
    assert_top(search.query(BUT_NOT, query_filter=tenant(3)), BUT_NOT, VECTORS, places=places)
    pages = [search.query(BUT_NOT, limit=4, offset=offset).points for offset in (0, 4, 8)]
    whole = search.query(BUT_NOT, limit=12).points
    assert [point.id for page in pages for point in page] == [point.id for point in whole]
    assert search.query(BUT_NOT, offset=POINTS).points == []


def test_demanded_truth_and_lowest_score(search: LogicSearch) -> None:
    for query in (BUT_NOT, OPERATORS["NOT"], OPERATORS["PLAIN"]):
        for min_truth in (0.3, 0.9):
            assert_top(search.query(query, min_truth=min_truth), query, VECTORS, min_truth=min_truth)
    whole = search.query(BUT_NOT)
    kept = search.query(BUT_NOT, score_threshold=whole.points[3].score)
    assert [point.id for point in kept] == [point.id for point in whole.points[:4]]


def test_defaults_of_the_search_stand_unless_a_query_says_otherwise(client: QdrantClient) -> None:
    search = LogicSearch(client, "cosine", SCORER, limit=3, min_truth=0.5)
    assert len(search.query(BUT_NOT)) == 3
    assert len(search.query(BUT_NOT, limit=5)) == 5
    assert_top(search.query(BUT_NOT), BUT_NOT, VECTORS, limit=3, min_truth=0.5)
    paper = LogicSearch(client, "cosine", ENCODER, mode="lcse").query(BUT_NOT)
    assert paper.ranking.mode == "lcse"
    assert_top(paper, BUT_NOT, VECTORS, scorer=PAPER)


def test_payload_and_vectors_as_asked_for(client: QdrantClient, search: LogicSearch) -> None:
    plain = search.query(BUT_NOT, limit=1).points[0]
    assert plain.payload == {"place": plain.id, "tenant": int(plain.id) % TENANTS}
    assert plain.vector is None
    (lean,) = search.query(BUT_NOT, limit=1, with_payload=["tenant"], with_vectors=True).points
    assert lean.payload == {"tenant": int(lean.id) % TENANTS}
    np.testing.assert_allclose(np.asarray(lean.vector), VECTORS[int(lean.id)], atol=1e-6)
    assert search.query(BUT_NOT, limit=1, with_payload=False).points[0].payload is None


def test_hits_tell_their_reasons(search: LogicSearch) -> None:
    hits = search.query(BUT_NOT, limit=3)
    lines = hits.explain().splitlines()
    assert len(lines) == 4
    assert "umbrella: " in lines[0]
    assert "no person: " in lines[0]
    assert lines[-1] == hits.ranking.summary
    assert [ranked.id for ranked in hits.ranking] == [point.id for point in hits]
    assert [ranked.candidate.payload for ranked in hits.ranking] == [point.payload for point in hits]


def test_batches_answer_as_single_queries_do(search: LogicSearch) -> None:
    queries = list(OPERATORS.values())
    for hits, query in zip(search.query_batch(queries, limit=5), queries, strict=True):
        assert [point.id for point in hits] == [point.id for point in search.query(query, limit=5)]
    assert search.query_batch([]) == []


async def test_async_search_answers_as_the_blocking_one(search: LogicSearch) -> None:
    client = AsyncQdrantClient(":memory:")
    params = models.VectorParams(size=VECTORS.shape[1], distance=models.Distance.DOT)
    await client.create_collection("cosine", vectors_config=params)
    points = [models.PointStruct(id=i, vector=row.tolist()) for i, row in enumerate(VECTORS)]
    await client.upsert("cosine", points)
    waiting = AsyncLogicSearch(client, "cosine", SCORER)
    hits = await waiting.query(BUT_NOT)
    assert [point.id for point in hits] == [point.id for point in search.query(BUT_NOT)]
    await client.delete_collection("cosine")
    with pytest.raises(CollectionError):
        await waiting.query(BUT_NOT)
    with pytest.raises(InvalidOption, match="use AsyncLogicSearch"):
        LogicSearch(client, "cosine", SCORER)  # type: ignore[arg-type]


def test_points_without_a_usable_vector_are_left_out() -> None:
    client = QdrantClient(":memory:")
    rows = VECTORS[:60].copy()
    rows[::3] = 0
    fill(client, "holes", rows)
    sound = np.flatnonzero(rows.any(axis=1))
    for query in OPERATORS.values():
        assert_top(LogicSearch(client, "holes", SCORER).query(query), query, rows, places=sound)


def test_an_empty_collection_has_no_hits() -> None:
    client = QdrantClient(":memory:")
    params = models.VectorParams(size=ENCODER.dimension, distance=models.Distance.DOT)
    client.create_collection("empty", vectors_config=params)
    hits = LogicSearch(client, "empty", SCORER).query(BUT_NOT)
    assert (hits.points, hits.exact) == ([], True)


def test_a_collection_made_anew_is_looked_at_anew() -> None:
    client = QdrantClient(":memory:")
    fill(client, "photos", VECTORS[:20])
    search = LogicSearch(client, "photos", SCORER)
    assert len(search.query(BUT_NOT)) == 10
    fill(client, "photos", VECTORS[:20], using="image")
    with pytest.raises(CollectionError, match=r"no unnamed vectors; pass vector_name= one of \['image'\]"):
        search.query(BUT_NOT)


@pytest.mark.parametrize(
    ("params", "using", "said"),
    [
        (models.VectorParams(size=48, distance=models.Distance.EUCLID), None, "only Cosine and Dot"),
        (models.VectorParams(size=16, distance=models.Distance.COSINE), None, "have 16 dimensions, the encoder's 48"),
        (models.VectorParams(size=48, distance=models.Distance.COSINE), "image", "no vectors named 'image'"),
        (
            models.VectorParams(
                size=48,
                distance=models.Distance.COSINE,
                multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
            ),
            None,
            "several vectors per point",
        ),
    ],
)
def test_collections_that_cannot_be_scored_are_refused(params: Any, using: Any, said: str) -> None:
    client = QdrantClient(":memory:")
    client.create_collection("photos", vectors_config=params)
    with pytest.raises(CollectionError, match=said):
        LogicSearch(client, "photos", SCORER, vector_name=using).query(BUT_NOT)


def test_a_dot_collection_must_hold_unit_vectors() -> None:
    client = QdrantClient(":memory:")
    fill(client, "long", 2 * VECTORS[:20], distance=models.Distance.DOT)
    with pytest.raises(CollectionError, match=r"a vector of length 2\.000"):
        LogicSearch(client, "long", SCORER).query(BUT_NOT)


@pytest.mark.parametrize(
    "options",
    [
        *({"limit": 0}, {"offset": -1}, {"min_truth": 1.5}, {"candidates": 0}, {"timeout": 0}, {"timeout": "soon"}),
        *({"query_filter": {"must": []}}, {"search_params": {"exact": True}}, {"with_payload": 3}),
        *({"with_vectors": [1]}, {"score_threshold": "high"}),
    ],
)
def test_options_out_of_range_are_refused(search: LogicSearch, options: Any) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        search.query(BUT_NOT, **options)


def test_other_mistakes_are_told(client: QdrantClient, search: LogicSearch) -> None:
    with pytest.raises(InvalidOption, match="unknown execution 'nested'"):
        LogicSearch(client, "cosine", SCORER, execution="nested")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="is scored in the client"):
        LogicSearch(client, "cosine", PAPER, execution="formula").query(BUT_NOT)
    with pytest.raises(InvalidOption, match="wrap it as"):
        search.query_batch("dog")
    with pytest.raises(InvalidOption, match="no option depth"):
        search.query_batch(["dog"], depth=3)  # type: ignore[call-arg]
    with pytest.raises(QueryError):
        search.query(7)  # type: ignore[arg-type]
    with pytest.raises(CollectionError, match="missing"):
        LogicSearch(client, "missing", SCORER).query(BUT_NOT)


def test_a_query_with_very_many_ways_is_scored_here(client: QdrantClient) -> None:
    words = [Concept(f"thing {i}") for i in range(24)]
    query = (words[0] | words[1]) & (words[2] | words[3]) & (words[4] | words[5]) & (words[6] | words[7])
    hits = LogicSearch(client, "cosine", SCORER, execution="auto").query(query & ~words[8])
    assert hits.execution == "client"
    assert_top(hits, query & ~words[8], VECTORS)


@pytest.mark.parametrize("payload", [None, {}, {"path": "a.jpg"}, {"_node_content": "not json"}, {"_node_content": 3}])
def test_payloads_of_others_are_refused(payload: dict[str, object] | None) -> None:
    for read in (read_langchain_payload, read_llama_index_payload):
        with pytest.raises(InvalidCandidate):
            read(payload)


def test_payloads_of_langchain_may_have_other_keys() -> None:
    stored = read_langchain_payload({"text": "a dog", "meta": {"x": 1}}, content_key="text", metadata_key="meta")
    assert (stored.text, stored.metadata) == ("a dog", {"x": 1})
