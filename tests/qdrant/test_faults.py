"""Over the wire and under stress: right answers, or errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_lcse import AsyncLogicSearch, Hits, LogicSearch
from qdrant_lcse.embedded import EmbeddedClient

from lcse_plugins import VectorPool
from lcse_plugins.errors import CollectionError, SearchUnavailable
from tests.qdrant.data import OPERATORS, SCORER, Client, fill, image_vectors
from tests.qdrant.served import Engine, served

VECTORS = image_vectors(300)
EXECUTIONS = ["client", "nested", "two-trip"]
BUT_NOT = OPERATORS["BUT NOT"]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with EmbeddedClient(tmp_path) as client:
        fill(client, "photos", VECTORS)
        with served(client) as running:
            yield running


@pytest.fixture
def remote(engine: Engine) -> Iterator[QdrantClient]:
    client = QdrantClient(url=engine.url, check_compatibility=False, timeout=5)
    yield client
    client.close()


def assert_true_scores(hits: Hits) -> None:
    encoded = SCORER.encode(hits.parse.query)
    scores, _ = encoded.score_similarities(VECTORS[[int(p.id) for p in hits.points]] @ encoded.matrix.T)
    np.testing.assert_allclose([point.score for point in hits.points], scores, atol=1e-5)


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_requests_survive_the_wire(engine: Engine, remote: QdrantClient, execution: Any) -> None:
    search = LogicSearch(remote, "photos", SCORER, execution=execution)
    for name, query in OPERATORS.items():
        hits = search.query(query, limit=5, candidates=12 * 301, exact=True)
        best, _ = VectorPool(VECTORS).top(SCORER.encode(query), limit=5)
        assert [point.id for point in hits] == best.tolist(), name
        assert hits.exact
        assert hits.points[0].payload == {"place": best[0], "tenant": best[0] % 7}


@pytest.mark.parametrize(("candidates", "execution"), [(1000, "nested"), (5000, "two-trip")])
def test_auto_saves_a_round_trip_where_nesting_is_small(
    engine: Engine, remote: QdrantClient, candidates: int, execution: str
) -> None:
    assert LogicSearch(remote, "photos", SCORER).query(BUT_NOT, candidates=candidates).execution == execution


@pytest.mark.parametrize(("execution", "trips"), [("nested", 1), ("two-trip", 2), ("client", 2)])
def test_round_trips(engine: Engine, remote: QdrantClient, execution: Any, trips: int) -> None:
    search = LogicSearch(remote, "photos", SCORER, execution=execution)
    search.query(BUT_NOT)
    engine.asked.clear()
    search.query_batch([BUT_NOT, OPERATORS["OR"], OPERATORS["NESTED"]])
    assert len(engine.asked) == trips


async def test_the_asynchronous_client_over_the_wire(engine: Engine) -> None:
    client = AsyncQdrantClient(url=engine.url, check_compatibility=False)
    hits = await AsyncLogicSearch(client, "photos", SCORER).query(BUT_NOT)
    assert hits.execution == "nested"
    assert_true_scores(hits)
    engine.status = 503
    with pytest.raises(SearchUnavailable):
        await AsyncLogicSearch(client, "photos", SCORER).query(BUT_NOT)
    await client.close()


def test_a_server_that_does_not_answer_in_time(engine: Engine) -> None:
    client = QdrantClient(url=engine.url, check_compatibility=False, timeout=1)
    search = LogicSearch(client, "photos", SCORER)
    search.query(BUT_NOT)
    engine.delay = 1.5
    with pytest.raises(SearchUnavailable, match="did not answer"):
        search.query(BUT_NOT)
    engine.delay = 0.0
    assert_true_scores(search.query(BUT_NOT))
    client.close()


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (500, SearchUnavailable),
        (503, SearchUnavailable),
        (429, SearchUnavailable),
        (409, SearchUnavailable),
        (400, CollectionError),
    ],
)
def test_statuses(engine: Engine, remote: QdrantClient, status: int, fault: type[Exception]) -> None:
    search = LogicSearch(remote, "photos", SCORER)
    search.query(BUT_NOT)
    engine.status = status
    with pytest.raises(fault) as caught:
        search.query(BUT_NOT)
    assert "photos" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_nobody_there() -> None:
    client = QdrantClient(url="http://127.0.0.1:9", check_compatibility=False)
    with pytest.raises(SearchUnavailable):
        LogicSearch(client, "photos", SCORER).query(BUT_NOT)
    client.close()


def test_the_collection_vanishes(engine: Engine, remote: QdrantClient) -> None:
    search = LogicSearch(remote, "photos", SCORER)
    search.query(BUT_NOT)
    engine.client.delete_collection("photos")
    with pytest.raises(CollectionError, match="no such collection"):
        search.query(BUT_NOT)


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_payloads_travel_for_hits_only(engine: Engine, remote: QdrantClient, execution: Any) -> None:
    huge = [models.PointStruct(id=i, vector=VECTORS[i].tolist(), payload={"text": "x" * 200_000}) for i in range(60)]
    engine.client.upsert("photos", huge)
    search = LogicSearch(remote, "photos", SCORER, execution=execution)
    everything = models.Filter(must=[models.HasIdCondition(has_id=list(range(60)))])
    engine.sent = 0
    hits = search.query(BUT_NOT, limit=2, query_filter=everything)
    assert len((hits.points[0].payload or {})["text"]) == 200_000
    assert engine.sent < 5 * 200_000  # two payloads and the vectors of the candidates, not sixty payloads


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_many_readers_while_one_writes(tmp_path: Path, execution: Any) -> None:
    with EmbeddedClient(tmp_path) as client:
        fill(client, "photos", VECTORS[:200])
        assert_readers_are_right(client, LogicSearch(client, "photos", SCORER, execution=execution))


def assert_readers_are_right(client: Client, search: LogicSearch) -> None:
    done = Event()

    def write() -> int:
        rounds = 0
        while not done.is_set():
            for i in range(200, 300):
                client.upsert("photos", [models.PointStruct(id=i, vector=VECTORS[i].tolist())])
            rounds += 1
        return rounds

    def read(turn: int) -> Hits:
        return search.query(list(OPERATORS.values())[turn % len(OPERATORS)], limit=5, candidates=300)

    with ThreadPoolExecutor(33) as pool:
        writer = pool.submit(write)
        found = list(pool.map(read, range(64)))
        done.set()
        assert writer.result() >= 1
    for hits in found:
        assert len(hits) == 5
        assert_true_scores(hits)
