"""LogicSearch as its users meet it: options, kinds of collections, evidence, and errors before any search."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints
from uuid import UUID

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_lcse import AsyncLogicSearch, Hits, LogicSearch
from qdrant_lcse.embedded import EmbeddedClient
from qdrant_lcse.options import QueryOptions

from lcse_plugins import Calibration, Concept, LogicScorer, Query, ScoringConfig, VectorPool
from lcse_plugins.errors import CollectionError, InvalidOption
from lcse_plugins.testing import ToyEncoder
from tests.qdrant.data import ENCODER, OPERATORS, PERSON, SCORER, UMBRELLA, fill, image_vectors

VECTORS = image_vectors(120)
BUT_NOT = UMBRELLA & ~PERSON
EXECUTIONS = ["client", "nested", "two-trip"]
BEAM = models.SearchParams(hnsw_ef=77)


@pytest.fixture(scope="module")
def client() -> Iterator[QdrantClient]:
    with warnings.catch_warnings():
        made = QdrantClient(":memory:")
    fill(made, "photos", VECTORS)
    yield made
    made.close()


@pytest.fixture(params=EXECUTIONS)
def search(request: pytest.FixtureRequest, client: QdrantClient) -> LogicSearch:
    return LogicSearch(client, "photos", SCORER, execution=request.param)


def test_points_carry_scores_payload_and_evidence(search: LogicSearch) -> None:
    hits = search.query("umbrella and no person", limit=5, candidates=2000)
    assert len(hits) == 5
    assert hits.parse.query == BUT_NOT
    assert hits.execution == search.execution
    assert [point.score for point in hits] == sorted((point.score for point in hits), reverse=True)
    for point, ranked in zip(hits.points, hits.ranking, strict=True):
        assert point.id == ranked.id == ranked.candidate.payload["place"]
        assert point.score == ranked.score
        assert point.vector is None
        similarities = VECTORS[int(point.id)] @ SCORER.encode(BUT_NOT).matrix.T
        assert [item.concept for item in ranked.evidence] == ["umbrella", "person"]
        assert ranked.evidence[1].negated
        np.testing.assert_allclose([item.similarity for item in ranked.evidence], similarities[1:], atol=1e-6)
        assert ranked.holistic == pytest.approx(ranked.score - ranked.correction)
    assert "umbrella ✓" in hits.explain()


def test_evidence_needs_no_further_call(search: LogicSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    hits = search.query(BUT_NOT, limit=3, candidates=900)

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("the database was asked again")

    for method in ("query_batch_points", "retrieve", "scroll"):
        monkeypatch.setattr(type(search.client), method, refuse)
    assert [ranked.id for ranked in hits.ranking] == [point.id for point in hits.points]
    assert hits.ranking is hits.ranking


def test_hits_can_be_made_by_hand() -> None:
    point = models.ScoredPoint(id=1, version=0, score=0.5)
    hits = Hits([point], True, SCORER.encode(BUT_NOT).parse, "client")
    assert list(hits) == [point]
    with pytest.raises(InvalidOption, match="without evidence"):
        hits.explain()
    ranking = SCORER.rank(BUT_NOT, VECTORS[:1])
    seen = Hits([point], True, ranking.parse, "client", find_ranking=lambda: ranking)
    assert "umbrella" in seen.explain()


@pytest.mark.parametrize("query", [BUT_NOT, ~PERSON])
def test_hits_travel_with_their_evidence(search: LogicSearch, query: Query) -> None:
    hits = search.query(query, limit=3, candidates=900)
    for other in (pickle.loads(pickle.dumps(hits)), copy.deepcopy(hits), copy.copy(hits)):
        assert (other.points, other.exact, other.parse, other.execution) == (
            hits.points,
            hits.exact,
            hits.parse,
            hits.execution,
        )
        assert other.explain() == hits.explain()


def test_hits_made_without_evidence_travel_too() -> None:
    hits = Hits([models.ScoredPoint(id=1, version=0, score=0.5)], True, SCORER.encode(BUT_NOT).parse, "client")
    assert pickle.loads(pickle.dumps(hits)).points == hits.points


@pytest.mark.parametrize(
    "payload",
    [
        {"path": "album/rome.jpg"},
        {"page_content": "album/rome.jpg", "metadata": {}},
        {"page_content": "Rome at night", "metadata": {"source": "album/rome.jpg"}},
        {"_node_content": '{"class_name": "ImageNode", "image_path": "album/rome.jpg", "metadata": {}}'},
    ],
)
def test_explain_names_the_picture_whoever_stored_it(payload: dict[str, Any]) -> None:
    client = QdrantClient(":memory:")
    params = models.VectorParams(size=VECTORS.shape[1], distance=models.Distance.COSINE)
    client.create_collection("photos", vectors_config=params)
    client.upsert("photos", [models.PointStruct(id=1, vector=VECTORS[0].tolist(), payload=payload)])
    assert LogicSearch(client, "photos", SCORER).query(BUT_NOT).explain().startswith("rome.jpg: score")


def test_says_whether_the_database_runs_in_this_process(search: LogicSearch, tmp_path: Path) -> None:
    assert search.in_process
    assert LogicSearch(EmbeddedClient(tmp_path), "photos", SCORER).in_process
    assert not LogicSearch(QdrantClient("http://localhost:1", check_compatibility=False), "photos", SCORER).in_process


def test_a_small_collection_is_scored_whole(client: QdrantClient) -> None:
    search = LogicSearch(client, "photos", SCORER)
    nested = (UMBRELLA & ~PERSON) | (Concept("dog") & ~Concept("car"))
    assert len(SCORER.encode(nested).plan.search_vectors) > 1
    assert search.query(nested, candidates=len(VECTORS) + 1).exact
    assert not search.query(nested, candidates=len(VECTORS) // 2).exact


def test_pages_follow_each_other(search: LogicSearch) -> None:
    whole = search.query(BUT_NOT, limit=9, candidates=2000)
    pages = [search.query(BUT_NOT, limit=3, offset=start, candidates=2000) for start in (0, 3, 6)]
    assert [p.id for page in pages for p in page.points] == [p.id for p in whole.points]
    assert [r.id for r in pages[2].ranking] == [p.id for p in whole.points[6:]]


def test_a_batch_is_its_queries_one_by_one(search: LogicSearch) -> None:
    queries = [OPERATORS[name] for name in ("NOT", "BUT NOT", "OR")]
    together = search.query_batch(queries, limit=4, candidates=900)
    alone = [search.query(query, limit=4, candidates=900) for query in queries]
    assert [[p.id for p in hits] for hits in together] == [[p.id for p in hits] for hits in alone]
    assert search.query_batch([], limit=4) == []


def test_only_what_was_asked_for_comes_back(search: LogicSearch) -> None:
    bare = search.query(BUT_NOT, limit=2, with_payload=False)
    assert [(point.payload, point.vector) for point in bare] == [(None, None), (None, None)]
    assert [point.vector for point in search.query(BUT_NOT, limit=2, with_vectors=None)] == [None, None]  # type: ignore[arg-type]
    some = search.query(BUT_NOT, limit=2, with_payload=["tenant"], with_vectors=True)
    for point in some:
        assert set(point.payload or {}) == {"tenant"}
        np.testing.assert_allclose(np.asarray(point.vector), VECTORS[int(point.id)], atol=1e-6)


def test_a_filter_holds_for_every_search(search: LogicSearch) -> None:
    tenant = models.Filter(must=[models.FieldCondition(key="tenant", match=models.MatchValue(value=2))])
    hits = search.query(BUT_NOT, limit=50, query_filter=tenant, candidates=2000)
    places = np.arange(2, 120, 7)
    best, _ = VectorPool(VECTORS[places]).top(SCORER.encode(BUT_NOT))
    assert [point.id for point in hits] == places[best].tolist()
    assert hits.exact
    nobody = models.Filter(must=[models.FieldCondition(key="tenant", match=models.MatchValue(value=99))])
    assert search.query(BUT_NOT, query_filter=nobody).points == []


def test_the_engine_filters_as_local_mode_does(client: QdrantClient, tmp_path: Path) -> None:
    def tenant(match: Any) -> models.FieldCondition:
        return models.FieldCondition(key="tenant", match=match)

    two, late = tenant(models.MatchValue(value=2)), models.FieldCondition(key="place", range=models.Range(gte=60))
    filters = [
        models.Filter(should=[two, late]),
        models.Filter(must_not=[two]),
        models.Filter(min_should=models.MinShould(conditions=[two, late], min_count=2)),
        models.Filter(must=[tenant(models.MatchAny(any=[1, 2]))]),
        models.Filter(must=[tenant(models.MatchExcept(**{"except": [1, 2]}))]),
        models.Filter(must=[models.IsEmptyCondition(is_empty=models.PayloadField(key="place"))]),
        models.Filter(must=[models.Filter(must=[late]), models.HasIdCondition(has_id=[5, 70, 80])]),
    ]
    with EmbeddedClient(tmp_path) as made:
        fill(made, "photos", VECTORS)
        for wanted in filters:
            there, here = (
                LogicSearch(source, "photos", SCORER).query(BUT_NOT, limit=120, query_filter=wanted)
                for source in (made, client)
            )
            assert {point.id for point in there} == {point.id for point in here}, wanted
        near = models.FieldCondition(
            key="where", geo_radius=models.GeoRadius(center=models.GeoPoint(lon=0, lat=0), radius=1)
        )
        with pytest.raises(InvalidOption, match="geo_radius"):
            LogicSearch(made, "photos", SCORER).query(BUT_NOT, query_filter=models.Filter(must=[near]))


@pytest.mark.parametrize("name", ["photos", "", "../photos", "a/b"])
def test_embedded_collections_have_names_of_their_own(tmp_path: Path, name: str) -> None:
    params = models.VectorParams(size=4, distance=models.Distance.COSINE)
    with EmbeddedClient(tmp_path / "engine") as made:
        made.create_collection("photos", vectors_config=params)
        with pytest.raises(CollectionError):
            made.create_collection(name, vectors_config=params)


def test_queries_without_logic_rank_as_the_encoder_does(search: LogicSearch, client: QdrantClient) -> None:
    hits = search.query("umbrella", limit=20)
    plain = client.query_points("photos", query=ENCODER.encode_texts(["umbrella"])[0].tolist(), limit=20)
    assert [point.id for point in hits] == [point.id for point in plain.points]
    assert hits.execution == "linear"


def watched(client: QdrantClient | EmbeddedClient, monkeypatch: pytest.MonkeyPatch) -> list[models.QueryRequest]:
    """The queries that the client is asked from now on."""
    sent: list[models.QueryRequest] = []
    run = client.query_batch_points

    def ask(collection_name: str, requests: list[models.QueryRequest], **options: Any) -> Any:
        sent.extend(requests)
        return run(collection_name, requests, **options)

    monkeypatch.setattr(client, "query_batch_points", ask)
    return sent


@pytest.mark.parametrize("min_truth", [1.0 - 1e-12, 1.0])
def test_near_certainty_is_demanded_alike_everywhere(client: QdrantClient, min_truth: float) -> None:
    for query, beta, count in ((BUT_NOT, 80.0, 2), (~UMBRELLA & ~PERSON, 60.0, 25)):
        steep = LogicScorer(ENCODER, calibration=Calibration(mu=0.35, beta=beta))
        found = []
        for execution in EXECUTIONS:
            search = LogicSearch(client, "photos", steep, execution=execution)  # type: ignore[arg-type]
            hits = search.query(query, min_truth=min_truth, limit=120, candidates=2000)
            found.append([point.id for point in hits])
        assert len(found[0]) == count
        assert found[1] == found[2] == found[0]


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_candidates_are_searched_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, execution: Any) -> None:
    """Over everything where a proof is asked for, and with the beam that is given, wherever they stand in a request."""
    only = models.Filter(must=[models.FieldCondition(key="tenant", match=models.MatchValue(value=3))])
    with EmbeddedClient(tmp_path) as engine:
        fill(engine, "photos", VECTORS)
        search, sent = LogicSearch(engine, "photos", SCORER, execution=execution), watched(engine, monkeypatch)
        for given, wanted in (({"exact": True}, (True, None)), ({"search_params": BEAM}, (False, 77))):
            sent.clear()
            search.query(BUT_NOT, candidates=40, query_filter=only, **given)
            inner: Any = sent[0].prefetch[0].prefetch if execution == "nested" else sent[:1]  # type: ignore[index]
            assert {(one.params.exact, one.params.hnsw_ef) for one in inner} == {wanted}
            assert all(one.filter == only for one in inner)


@pytest.mark.parametrize(("most", "wanted"), [(len(VECTORS), (True, None)), (len(VECTORS) - 1, (False, 2048))])
@pytest.mark.parametrize("query", [~UMBRELLA, ~UMBRELLA & ~PERSON])
def test_what_affirms_nothing_is_scanned_for_in_small_collections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: Any, most: int, wanted: Any
) -> None:
    monkeypatch.setattr("qdrant_lcse.search_base.SCANNED", most)
    with EmbeddedClient(tmp_path) as engine:
        fill(engine, "photos", VECTORS)
        sent = watched(engine, monkeypatch)
        hits = LogicSearch(engine, "photos", SCORER).query(query, limit=5)
        assert (sent[0].params.exact, sent[0].params.hnsw_ef) == wanted  # type: ignore[union-attr]
        if query == ~UMBRELLA:
            assert hits.exact == wanted[0]
        plain = LogicSearch(engine, "photos", LogicScorer(ENCODER, config=ScoringConfig(mode="holistic")))
        plain.query(query, limit=5)
        assert (sent[-1].params.exact, sent[-1].params.hnsw_ef) == (False, None)  # type: ignore[union-attr]


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("query", [UMBRELLA & PERSON, ~UMBRELLA & ~PERSON])
def test_a_conjunction_is_one_search_by_the_least_product(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: Any, execution: Any
) -> None:
    (vectors,) = SCORER.encode(query).plan.searches
    with EmbeddedClient(tmp_path) as engine:
        fill(engine, "photos", VECTORS)
        sent = watched(engine, monkeypatch)
        LogicSearch(engine, "photos", SCORER, execution=execution).query(query, candidates=20, limit=5)
        inner: Any = sent[0].prefetch[0].prefetch if execution == "nested" else sent[:1]  # type: ignore[index]
        (searched,) = inner
        assert isinstance(searched.query, models.RecommendQuery)
        request = models.QueryRequest(query=searched.query, params=models.SearchParams(exact=True), limit=20)
        (found,) = engine.query_batch_points("photos", [request])
    least = (VECTORS @ vectors.T).min(axis=1)
    np.testing.assert_allclose(least[[point.id for point in found.points]], np.sort(least)[::-1][:20], atol=1e-6)


def test_one_negation_is_one_plain_search(client: QdrantClient, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = watched(client, monkeypatch)
    hits = LogicSearch(client, "photos", SCORER, execution="nested").query("no umbrella")
    assert hits.execution == "linear"
    assert hits.exact
    assert len(sent) == 1
    assert isinstance(sent[0].query, models.NearestQuery)
    assert sent[0].prefetch is None


def test_named_vectors_and_uuids(tmp_path: Path) -> None:
    ids = [str(UUID(int=i)) for i in range(len(VECTORS))]
    best, _ = VectorPool(VECTORS).top(SCORER.encode(BUT_NOT), limit=3)
    for made in (QdrantClient(":memory:"), EmbeddedClient(tmp_path)):
        fill(made, "named", VECTORS, ids=ids, vector_name="image")
        for execution in EXECUTIONS:
            found = LogicSearch(made, "named", SCORER, vector_name="image", execution=execution)  # type: ignore[arg-type]
            hits = found.query(BUT_NOT, limit=3, candidates=2000, with_vectors=["image"])
            assert [point.id for point in hits] == [ids[i] for i in best]
            assert isinstance(hits.points[0].vector, dict)
        with pytest.raises(CollectionError, match=r"no unnamed vectors.*'image'"):
            LogicSearch(made, "named", SCORER).query(BUT_NOT)
        made.close()


def test_points_without_the_vector_are_passed_over() -> None:
    made = QdrantClient(":memory:")
    params = models.VectorParams(size=48, distance=models.Distance.COSINE)
    made.create_collection("mixed", vectors_config={"image": params, "text": params})
    vectors = {i: {"image": VECTORS[i].tolist()} if i % 2 else {"text": VECTORS[i].tolist()} for i in range(40)}
    made.upsert("mixed", [models.PointStruct(id=i, vector=v) for i, v in vectors.items()])
    for execution in EXECUTIONS:
        found = LogicSearch(made, "mixed", SCORER, vector_name="image", execution=execution)  # type: ignore[arg-type]
        hits = found.query(BUT_NOT, limit=40)
        assert sorted(int(point.id) for point in hits) == list(range(1, 40, 2))


def test_what_cannot_be_scored_is_refused_before_any_search() -> None:
    made = QdrantClient(":memory:")
    made.create_collection("euclid", vectors_config=models.VectorParams(size=48, distance=models.Distance.EUCLID))
    made.create_collection("manhattan", vectors_config=models.VectorParams(size=48, distance=models.Distance.MANHATTAN))
    many = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    cosine = models.Distance.COSINE
    made.create_collection(
        "many", vectors_config=models.VectorParams(size=48, distance=cosine, multivector_config=many)
    )
    made.create_collection("short", vectors_config=models.VectorParams(size=8, distance=cosine))
    made.create_collection("long", vectors_config=models.VectorParams(size=48, distance=models.Distance.DOT))
    made.upsert("long", [models.PointStruct(id=1, vector=(3 * VECTORS[0]).tolist())])
    reasons = {
        "nowhere": "not found",
        "euclid": "Euclid",
        "manhattan": "Manhattan",
        "many": "several vectors per point",
        "short": "8 dimensions, the encoder's 48",
        "long": "length 3.0",
    }
    for name, reason in reasons.items():
        with pytest.raises(CollectionError, match=reason) as caught:
            LogicSearch(made, name, SCORER).query(BUT_NOT)
        assert caught.value.collection == name
    with pytest.raises(CollectionError, match="no vectors named 'image'"):
        LogicSearch(made, "short", SCORER, vector_name="image").query(BUT_NOT)


@pytest.mark.parametrize(
    "options",
    [
        {"limit": 0},
        {"limit": "5"},
        {"limit": 2.5},
        {"limit": None},
        {"offset": -1},
        {"offset": "a"},
        {"candidates": 0},
        {"candidates": None},
        {"min_truth": 1.5},
        {"timeout": 0},
        {"query_filter": {"must": []}},
        {"search_params": {"exact": True}},
        {"with_payload": "place"},
        {"with_payload": [1]},
        {"with_vectors": "image"},
    ],
)
def test_options_out_of_range(search: LogicSearch, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        search.query(BUT_NOT, **options)


def test_a_client_of_the_other_kind(client: QdrantClient) -> None:
    waiting = AsyncQdrantClient(":memory:")
    with pytest.raises(InvalidOption, match="use AsyncLogicSearch"):
        LogicSearch(waiting, "photos", SCORER)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="use LogicSearch"):
        AsyncLogicSearch(client, "photos", SCORER)  # type: ignore[arg-type]


@pytest.mark.parametrize("scorer", [ENCODER, "starter", None])
def test_what_is_no_scorer(client: QdrantClient, scorer: Any) -> None:
    with pytest.raises(InvalidOption, match=r"LogicScorer\(encoder\)"):
        LogicSearch(client, "photos", scorer)


def test_an_option_it_does_not_have(search: LogicSearch) -> None:
    with pytest.raises(InvalidOption, match="has no option top; it has limit, query_filter"):
        search.query_batch([BUT_NOT], top=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("query", ["dog", BUT_NOT])
async def test_a_batch_is_a_list(search: LogicSearch, query: Any) -> None:
    with pytest.raises(InvalidOption, match=r"wrap it as \[query\]"):
        search.query_batch(query)
    with pytest.raises(InvalidOption, match=r"wrap it as \[query\]"):
        await AsyncLogicSearch(AsyncQdrantClient(":memory:"), "photos", SCORER).query_batch(query)


def test_unknown_execution(client: QdrantClient) -> None:
    with pytest.raises(InvalidOption, match="two-trip"):
        LogicSearch(client, "photos", SCORER, execution="fast")  # type: ignore[arg-type]


def test_auto_scores_here_what_no_formula_can_hold(tmp_path: Path) -> None:
    deep: Any = UMBRELLA
    for _ in range(8):
        deep = ((deep | Concept("dog")) & PERSON) | Concept("car")
    with EmbeddedClient(tmp_path) as made:
        fill(made, "photos", VECTORS)
        assert LogicSearch(made, "photos", SCORER).query(BUT_NOT).execution == "two-trip"
        assert LogicSearch(made, "photos", SCORER).query(deep).execution == "client"
        with pytest.raises(InvalidOption, match="nodes"):
            LogicSearch(made, "photos", SCORER, execution="nested").query(deep)


def test_a_graph_proves_nothing_however_deep_it_is_searched(tmp_path: Path) -> None:
    with EmbeddedClient(tmp_path) as made:
        fill(made, "photos", VECTORS)
        search = LogicSearch(made, "photos", SCORER, execution="client")
        assert not search.query(BUT_NOT, candidates=10_000).exact
        assert search.query(BUT_NOT, candidates=10_000, exact=True).exact


def test_a_collection_made_anew_is_looked_at_anew() -> None:
    made = QdrantClient(":memory:")
    fill(made, "photos", VECTORS)
    search = LogicSearch(made, "photos", SCORER)
    search.query(BUT_NOT)
    made.delete_collection("photos")
    with pytest.raises(CollectionError, match="not found"):
        search.query(BUT_NOT)
    fill(made, "photos", VECTORS, distance=models.Distance.EUCLID)
    with pytest.raises(CollectionError, match="Euclid"):
        search.query(BUT_NOT)


def made_anew(made: QdrantClient | EmbeddedClient, execution: Any, **options: Any) -> LogicSearch:
    """A search that knows the collection as it was, before it was filled with these options."""
    fill(made, "photos", VECTORS)
    search = LogicSearch(made, "photos", SCORER, execution=execution)
    search.query(BUT_NOT)
    fill(made, "photos", **{"vectors": VECTORS, **options})
    return search


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize("execution", EXECUTIONS)
def test_another_distance_is_noticed(tmp_path: Path, embedded: bool, execution: Any) -> None:
    made = EmbeddedClient(tmp_path) if embedded else QdrantClient(":memory:")
    for query in (BUT_NOT, ~UMBRELLA):
        search = made_anew(made, execution, distance=models.Distance.DOT)
        best, scores = VectorPool(VECTORS).top(SCORER.encode(query), limit=5)
        hits = search.query_batch([query], limit=5, candidates=2000)[0]
        assert [point.id for point in hits] == best.tolist()
        np.testing.assert_allclose([point.score for point in hits], scores, atol=1e-5)
        unfit: dict[str, Any] = {
            "Euclid": {"distance": models.Distance.EUCLID},
            "length 3.0": {"distance": models.Distance.DOT, "vectors": 3 * VECTORS},
        }
        for fault, options in unfit.items():
            search = made_anew(made, execution, **options)
            for _ in range(2):
                with pytest.raises(CollectionError, match=fault):
                    search.query(query)
    made.close()


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize("execution", EXECUTIONS)
def test_other_vectors_are_noticed(tmp_path: Path, embedded: bool, execution: Any) -> None:
    made = EmbeddedClient(tmp_path) if embedded else QdrantClient(":memory:")
    others: dict[str, Any] = {
        "32 dimensions, the encoder's 48": {"vectors": VECTORS[:, :32]},
        "no unnamed vectors": {"vector_name": "image"},
    }
    for reason, options in others.items():
        search = made_anew(made, execution, **options)
        for _ in range(2):
            with pytest.raises(CollectionError, match=reason):
                search.query(BUT_NOT)
    made.close()


@pytest.mark.parametrize("execution", EXECUTIONS)
async def test_other_vectors_are_noticed_by_the_asynchronous_face(execution: Any) -> None:
    made = AsyncQdrantClient(":memory:")
    search = AsyncLogicSearch(made, "photos", SCORER, execution=execution)
    for size in (48, 32):
        await made.delete_collection("photos")
        await made.create_collection("photos", models.VectorParams(size=size, distance=models.Distance.COSINE))
        await made.upsert("photos", [models.PointStruct(id=1, vector=VECTORS[0, :size].tolist())])
        if size == 48:
            assert len(await search.query(BUT_NOT)) == 1
    with pytest.raises(CollectionError, match="32 dimensions, the encoder's 48"):
        await search.query(BUT_NOT)


def test_a_refusal_that_is_not_of_the_schema_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made, asked = QdrantClient(":memory:"), list[int]()
    fill(made, "photos", VECTORS)
    search = LogicSearch(made, "photos", SCORER)
    search.query(BUT_NOT)

    def refuse(**_: Any) -> None:
        asked.append(1)
        raise ValueError("no index for this filter")

    monkeypatch.setattr(made, "query_batch_points", refuse)
    with pytest.raises(CollectionError, match="no index for this filter"):
        search.query(BUT_NOT)
    assert len(asked) == 1


def test_a_collection_found_the_same_is_not_doubted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made, looks = QdrantClient(":memory:"), list[str]()
    fill(made, "photos", VECTORS)
    ask, look = made.query_batch_points, made.get_collection

    def shifted(*arguments: Any, **options: Any) -> Any:
        answers = ask(*arguments, **options)
        for point in answers[0].points:
            point.score += 0.5
        return answers

    def watched_look(collection_name: str) -> Any:
        looks.append(collection_name)
        return look(collection_name)

    monkeypatch.setattr(made, "query_batch_points", shifted)
    monkeypatch.setattr(made, "get_collection", watched_look)
    search = LogicSearch(made, "photos", SCORER)
    counts = [(search.query(~UMBRELLA), len(looks))[1] for _ in range(4)]
    assert counts == [1, 2, 2, 2]


def test_a_dot_collection_is_looked_at_until_it_has_points() -> None:
    made = QdrantClient(":memory:")
    made.create_collection("photos", vectors_config=models.VectorParams(size=48, distance=models.Distance.DOT))
    search = LogicSearch(made, "photos", SCORER)
    assert search.query(BUT_NOT).points == []
    made.upsert("photos", [models.PointStruct(id=1, vector=(3 * VECTORS[0]).tolist())])
    with pytest.raises(CollectionError, match=r"length 3\.0"):
        search.query(BUT_NOT)


def test_embedded_collections_can_be_opened_again(tmp_path: Path) -> None:
    with EmbeddedClient(tmp_path) as made:
        fill(made, "photos", VECTORS)
        first = LogicSearch(made, "photos", SCORER).query(BUT_NOT)
    with EmbeddedClient(tmp_path) as made:
        again = LogicSearch(made, "photos", SCORER).query(BUT_NOT)
        assert [point.id for point in again] == [point.id for point in first]
        assert made.delete_collection("photos")
        assert not made.collection_exists("photos")


@pytest.mark.parametrize("execution", EXECUTIONS)
async def test_the_asynchronous_face_gives_the_same_answer(client: QdrantClient, execution: Any) -> None:
    made = AsyncQdrantClient(":memory:")
    await made.create_collection("photos", vectors_config=models.VectorParams(size=48, distance=models.Distance.COSINE))
    points = [models.PointStruct(id=i, vector=row) for i, row in enumerate(VECTORS.tolist())]
    await made.upsert("photos", points)
    search = AsyncLogicSearch(made, "photos", SCORER, execution=execution)
    hits = await search.query("umbrella and no person", limit=5, candidates=2000)
    wanted = LogicSearch(client, "photos", SCORER, execution=execution).query(BUT_NOT, limit=5, candidates=2000)
    assert [p.id for p in hits] == [p.id for p in wanted]
    assert [p.score for p in hits] == pytest.approx([p.score for p in wanted])
    assert hits.execution == execution
    assert len(await search.query_batch([BUT_NOT, UMBRELLA], limit=2)) == 2
    with pytest.raises(CollectionError, match="not found"):
        await AsyncLogicSearch(made, "nowhere", SCORER).query(BUT_NOT)


UNUSUAL: Any = {
    "limit": 3,
    "query_filter": models.Filter(must=[models.FieldCondition(key="tenant", match=models.MatchValue(value=2))]),
    "candidates": 50,
    "exact": True,
    "min_truth": 0.9,
    "offset": 2,
    "with_payload": ["tenant"],
    "with_vectors": True,
    "search_params": models.SearchParams(hnsw_ef=77),
    "timeout": 9,
}


class Recorder:
    """A client that remembers what it is asked, and asks another."""

    def __init__(self, client: EmbeddedClient) -> None:
        self.client, self.asked = client, list[tuple[str, dict[str, Any]]]()

    def ask(self, method: str, arguments: dict[str, Any]) -> Any:
        self.asked.append((method, arguments))
        return getattr(self.client, method)(**arguments)

    def get_collection(self, **arguments: Any) -> Any:
        return self.ask("get_collection", arguments)

    def query_batch_points(self, **arguments: Any) -> Any:
        return self.ask("query_batch_points", arguments)

    def retrieve(self, **arguments: Any) -> Any:
        return self.ask("retrieve", arguments)


class AwaitedRecorder(Recorder):
    async def get_collection(self, **arguments: Any) -> Any:
        return super().get_collection(**arguments)

    async def query_batch_points(self, **arguments: Any) -> Any:
        return super().query_batch_points(**arguments)

    async def retrieve(self, **arguments: Any) -> Any:
        return super().retrieve(**arguments)


async def test_both_faces_ask_for_every_option_alike(tmp_path: Path) -> None:
    with EmbeddedClient(tmp_path) as engine:
        fill(engine, "photos", VECTORS)

        def asked(**options: Any) -> Any:
            client: Any = Recorder(engine)
            LogicSearch(client, "photos", SCORER, execution="client").query(BUT_NOT, **options)
            return client.asked

        assert set(UNUSUAL) == set(get_type_hints(QueryOptions))
        for option, value in UNUSUAL.items():
            client: Any = AwaitedRecorder(engine)
            await AsyncLogicSearch(client, "photos", SCORER, execution="client").query(BUT_NOT, **{option: value})
            assert client.asked == asked(**{option: value}), option
            assert client.asked != asked(), option


def test_another_encoder_of_the_same_length_still_answers(client: QdrantClient) -> None:
    other = LogicScorer(ToyEncoder({"umbrella": np.eye(48)[0], "person": np.eye(48)[1]}))
    assert len(LogicSearch(client, "photos", other).query(BUT_NOT)) == 10
