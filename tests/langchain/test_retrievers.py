"""LogicRetriever gives the core's ranking, whatever it searches."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import LcseEmbeddings, LogicRetriever

from lcse_plugins import Candidate, Concept, LogicScorer, Not, RegionPool, VectorPool
from lcse_plugins.errors import InvalidOption, QueryError
from lcse_plugins.scoring.results import Ranking
from lcse_plugins.testing import ToyEncoder
from tests.langchain.flat_store import FlatStore

QUERIES = [
    "a dog",
    "no dog",
    "umbrella and no person",
    "a dog and a cat",
    "a dog or a cat",
    "neither a car nor a person",
    "(umbrella AND NOT person) OR (street AND NOT car)",
]


def agree(found: Sequence[Document], expected: Ranking) -> None:
    """Same pictures, same order, same numbers."""
    assert [document.page_content for document in found] == [result.id for result in expected]
    for document, result in zip(found, expected, strict=True):
        reasons = document.metadata["lcse"]
        assert document.metadata["relevance_score"] == pytest.approx(result.score, abs=1e-5)
        assert reasons["truth"] == pytest.approx(result.truth, abs=1e-5)
        assert reasons["holistic"] == pytest.approx(result.holistic, abs=1e-5)
        assert [item["concept"] for item in reasons["evidence"]] == [item.concept for item in result.evidence]


@pytest.mark.parametrize("query", QUERIES)
async def test_a_store_gives_the_cores_ranking(
    query: str, store: VectorStore, scorer: LogicScorer, gallery: list[Candidate]
) -> None:
    expected = scorer.rank(query, gallery, limit=5)
    retriever = LogicRetriever(source=store, scorer=scorer, k=5)
    agree(retriever.invoke(query), expected)
    agree(await retriever.ainvoke(query), expected)


@pytest.mark.parametrize("query", QUERIES)
async def test_a_pool_gives_the_cores_ranking(query: str, scorer: LogicScorer, gallery: list[Candidate]) -> None:
    expected = scorer.rank(query, gallery, limit=5)
    retriever = LogicRetriever(source=VectorPool.of(gallery), scorer=scorer, k=5)
    agree(retriever.invoke(query), expected)
    agree(await retriever.ainvoke(query), expected)


@pytest.mark.parametrize("query", QUERIES)
async def test_search_in_the_database_gives_the_cores_ranking(
    query: str, scorer: LogicScorer, gallery: list[Candidate], documents: list[Document]
) -> None:
    from qdrant_client import AsyncQdrantClient, QdrantClient, models
    from qdrant_lcse import AsyncLogicSearch, LogicSearch

    parameters = models.VectorParams(size=64, distance=models.Distance.COSINE)
    points = [
        models.PointStruct(
            id=str(document.id),
            vector=candidate.vector.tolist(),
            payload={"page_content": document.page_content, "metadata": document.metadata},
        )
        for document, candidate in zip(documents, gallery, strict=True)
    ]
    client = QdrantClient(":memory:")
    client.create_collection("pictures", parameters)
    client.upsert("pictures", points)
    expected = scorer.rank(query, gallery, limit=5)
    retriever = LogicRetriever(source=LogicSearch(client, "pictures", scorer), k=5)
    found = retriever.invoke(query)
    agree(found, expected)
    agree(await retriever.ainvoke(query), expected)
    written = {document.page_content: document for document in documents}[found[0].page_content]
    assert (found[0].id, found[0].metadata["row"]) == (written.id, written.metadata["row"])

    waiting = AsyncQdrantClient(":memory:")
    await waiting.create_collection("pictures", parameters)
    await waiting.upsert("pictures", points)
    native = LogicRetriever(source=AsyncLogicSearch(waiting, "pictures", scorer), k=5)
    agree(await native.ainvoke(query), expected)
    with pytest.raises(InvalidOption, match="ainvoke"):
        native.invoke(query)


async def test_few_candidates_are_never_called_exact_and_exact_search_finds_all(encoder: ToyEncoder) -> None:
    words = "dog cat car street person umbrella bench park sofa tree".split()
    names = [f"{a} {b} {c}{i}" for i, (a, b) in enumerate((a, b) for a in words for b in words) for c in words]
    store = InMemoryVectorStore.from_texts(names, LcseEmbeddings(encoder))
    pool = VectorPool(encoder.encode_images(names), ids=names)
    scorer = LogicScorer(encoder)
    for query in ["dog and no cat", "neither car nor person", "umbrella or bench", "no street"]:
        expected = [result.score for result in scorer.rank(query, pool, limit=10)]
        proved = await LogicRetriever(source=store, k=10, fetch_k=20, exact=True).ainvoke(query)
        assert [d.metadata["relevance_score"] for d in proved] == pytest.approx(expected, abs=1e-5)
        assert all(d.metadata["lcse"]["exact"] for d in proved)
        quick = LogicRetriever(source=store, k=10, fetch_k=20).invoke(query)
        if quick[0].metadata["lcse"]["exact"]:
            assert [d.metadata["relevance_score"] for d in quick] == pytest.approx(expected, abs=1e-5)
    assert not LogicRetriever(source=store, k=10, fetch_k=20).invoke("dog and no cat")[0].metadata["lcse"]["exact"]


async def test_k_and_min_truth_are_taken_per_call(store: VectorStore, scorer: LogicScorer) -> None:
    retriever = LogicRetriever(source=store, scorer=scorer, k=2)
    for found in (
        await retriever.ainvoke("umbrella and no person", k=12, min_truth=0.5),
        retriever.invoke("umbrella and no person", k=12, min_truth=0.5),
    ):
        assert {document.page_content for document in found} == {"umbrella", "umbrella bench"}
    assert len(await retriever.ainvoke("dog", k=3)) == len(retriever.invoke("dog", k=3)) == 3
    assert len(retriever.invoke("dog")) == 2
    assert len(LogicRetriever(source=store, scorer=scorer, min_truth=0.5, k=12).invoke("a dog and a cat")) == 1


def _filters(store: VectorStore) -> tuple[Any, Any]:
    """A filter that keeps even rows, and one that keeps nothing, in the store's own form."""
    if isinstance(store, InMemoryVectorStore):
        return (lambda document: document.metadata["even"]), (lambda document: False)
    if type(store).__name__ == "Chroma":
        return {"even": True}, {"row": 99}
    from qdrant_client import models

    def only(key: str, value: Any) -> models.Filter:
        return models.Filter(must=[models.FieldCondition(key=f"metadata.{key}", match=models.MatchValue(value=value))])

    return only("even", True), only("row", 99)


async def test_a_filter_is_taken_per_call_and_may_leave_nothing(store: VectorStore, scorer: LogicScorer) -> None:
    even, nothing = _filters(store)
    retriever = LogicRetriever(source=store, scorer=scorer, k=12)
    for found in (retriever.invoke("no dog", filter=even), await retriever.ainvoke("no dog", filter=even)):
        assert len(found) == 6
        assert all(document.metadata["even"] for document in found)
    assert len(retriever.bind(filter=even).invoke("no dog")) == 6
    assert retriever.invoke("no dog", filter=nothing) == []
    assert await retriever.ainvoke("no dog", filter=nothing) == []


def test_a_pool_is_filtered_by_a_function(scorer: LogicScorer, gallery: list[Candidate]) -> None:
    retriever = LogicRetriever(source=VectorPool.of(gallery), scorer=scorer, k=2)
    wanted = [candidate for candidate in gallery if "bench" in str(candidate.id)]
    found = retriever.invoke("umbrella and no person", filter=lambda document: "bench" in document.page_content)
    agree(found, scorer.rank("umbrella and no person", wanted, limit=2))
    assert retriever.invoke("umbrella", filter=lambda document: False) == []


def test_a_filter_keeps_the_regions_of_a_pool(scorer: LogicScorer, gallery: list[Candidate]) -> None:
    vectors = np.stack([candidate.vector for candidate in gallery])
    pool = RegionPool(vectors, np.roll(vectors, 1, axis=0)[:, None, :], candidates=gallery, best=1)
    found = LogicRetriever(source=pool, scorer=scorer, k=4).invoke("no dog", filter=lambda document: True)
    agree(found, scorer.rank("no dog", pool, limit=4))


def test_more_than_there_are_gives_all_and_an_empty_store_nothing(
    store: VectorStore, scorer: LogicScorer, gallery: list[Candidate]
) -> None:
    retriever = LogicRetriever(source=store, scorer=scorer, k=500)
    assert len(retriever.invoke("umbrella and no person")) == len(gallery)


async def test_an_empty_store_gives_nothing(empty_store: VectorStore, scorer: LogicScorer) -> None:
    retriever = LogicRetriever(source=empty_store, scorer=scorer)
    assert retriever.invoke("umbrella and no person") == []
    assert await retriever.ainvoke("no dog", k=3) == []


@pytest.mark.parametrize("k", [0, -1, True, 2.5])
async def test_a_wrong_k_is_refused(memory: InMemoryVectorStore, k: Any) -> None:
    retriever = LogicRetriever(source=memory)
    with pytest.raises(InvalidOption, match="k is a positive whole number"):
        retriever.invoke("dog", k=k)
    with pytest.raises(InvalidOption, match="k is a positive whole number"):
        await retriever.ainvoke("dog", k=k)


class _Queries:
    """What makes a database searchable."""

    def query(self, text: str, **options: Any) -> Any:
        raise NotImplementedError


def test_wrong_settings_are_refused(memory: InMemoryVectorStore, scorer: LogicScorer, gallery: list[Candidate]) -> None:
    with pytest.raises(InvalidOption, match="k is a positive whole number, not 0"):
        LogicRetriever(source=memory, k=0)
    with pytest.raises(InvalidOption, match="k is a positive whole number, not True"):
        LogicRetriever(source=memory, k=True)
    with pytest.raises(InvalidOption, match="fetch_k is a positive"):
        LogicRetriever(source=memory, fetch_k=0)
    with pytest.raises(InvalidOption, match="min_truth lies between"):
        LogicRetriever(source=memory, min_truth=1.5)
    with pytest.raises(InvalidOption, match="pass scorer="):
        LogicRetriever(source=VectorPool.of(gallery))
    with pytest.raises(InvalidOption, match="LogicRetriever takes its options by keyword: source=…, scorer=…"):
        LogicRetriever(memory)  # type: ignore[call-arg, arg-type]
    with pytest.raises(InvalidOption, match="not list"):
        LogicRetriever(source=[1, 2], scorer=scorer)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="use one encoder for both"):
        LogicRetriever(source=memory, scorer=LogicScorer(ToyEncoder(dimension=8)))
    with pytest.raises(InvalidOption, match="has its own scorer"):
        LogicRetriever(source=_Queries(), scorer=scorer)
    with pytest.raises(InvalidOption, match="min_truth lies between"):
        LogicRetriever(source=memory).invoke("dog", min_truth=-1)
    with pytest.raises(InvalidOption, match="k is a positive whole number, not 'many'"):
        LogicRetriever(source=memory, k="many")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="top_k"):
        LogicRetriever(source=memory).invoke("dog", top_k=3)
    with pytest.raises(InvalidOption, match=r"LogicRetriever has no top_n; it has .*source, scorer, k, fetch_k"):
        LogicRetriever(source=memory, top_n=3)  # type: ignore[call-arg]


def test_a_setting_changed_later_takes_effect(memory: InMemoryVectorStore, gallery: list[Candidate]) -> None:
    retriever = LogicRetriever(source=memory, k=12)
    other = LogicScorer(ToyEncoder(), parser=lambda text: Not(Concept("cat")))
    expected = [result.id for result in other.rank("a cat", gallery)]
    assert [d.page_content for d in retriever.invoke("a cat")] != expected
    copied = retriever.model_copy(update={"scorer": other})
    retriever.scorer = other
    assert [d.page_content for d in retriever.invoke("a cat")] == expected
    assert [d.page_content for d in copied.invoke("a cat")] == expected
    retriever.scorer = LogicScorer(ToyEncoder(dimension=8))
    with pytest.raises(InvalidOption, match="use one encoder for both"):
        retriever.invoke("a cat")


def test_copies_and_pickles_answer_alike(
    memory: InMemoryVectorStore, scorer: LogicScorer, gallery: list[Candidate]
) -> None:
    for source in (memory, VectorPool.of(gallery)):
        retriever = LogicRetriever(source=source, scorer=scorer)
        found = retriever.invoke("no dog")
        assert copy.deepcopy(retriever).invoke("no dog") == found
        assert pickle.loads(pickle.dumps(retriever)).invoke("no dog") == found


def test_an_unreadable_query_is_told(memory: InMemoryVectorStore) -> None:
    with pytest.raises(QueryError):
        LogicRetriever(source=memory).invoke("  ")
    with pytest.raises(QueryError):
        LogicRetriever(source=memory).invoke("(dog AND cat")


def test_what_the_store_holds_is_not_changed(memory: InMemoryVectorStore) -> None:
    before = copy.deepcopy(memory.store)
    retriever = LogicRetriever(source=memory, k=12)
    first = retriever.invoke("umbrella and no person")
    first[0].metadata["mine"] = True
    assert memory.store == before
    second = retriever.invoke("umbrella and no person")
    assert [d.metadata["relevance_score"] for d in second] == [d.metadata["relevance_score"] for d in first]
    assert "mine" not in second[0].metadata


def test_a_pools_documents_are_not_changed(scorer: LogicScorer, gallery: list[Candidate]) -> None:
    kept = [Document(page_content=str(candidate.id), metadata={"tags": ["a"]}) for candidate in gallery]
    pool = VectorPool.of([Candidate(i, c.vector, payload=kept[i]) for i, c in enumerate(gallery)])
    found = LogicRetriever(source=pool, scorer=scorer, k=1).invoke("umbrella and no person")
    assert found[0].metadata["tags"] == ["a"]
    assert all(document.metadata == {"tags": ["a"]} for document in kept)


def test_the_reasons_are_json_and_speak(memory: InMemoryVectorStore) -> None:
    document = LogicRetriever(source=memory, k=1).invoke("umbrella and no person")[0]
    reasons = document.metadata["lcse"]
    assert json.loads(json.dumps(reasons)) == reasons
    assert reasons["reason"].startswith("score ")
    assert reasons["score"] == pytest.approx(reasons["holistic"] + reasons["correction"])
    assert {item["concept"]: item["negated"] for item in reasons["evidence"]} == {"umbrella": False, "person": True}
    assert reasons["parse"]["query"] == "umbrella and no person"


async def test_many_calls_at_once_are_not_mixed_up(store: VectorStore, scorer: LogicScorer) -> None:
    words = ["umbrella", "person", "bench", "car", "street", "dog", "park", "cat", "sofa"]
    queries = [f"{a} and no {b}" for a in words for b in words if a != b]
    retriever = LogicRetriever(source=store, scorer=scorer, k=3)
    expected = {query: [d.page_content for d in retriever.invoke(query)] for query in queries}
    asked = (queries * 3)[:200]
    found = await asyncio.gather(*(retriever.ainvoke(query) for query in asked))
    for query, documents in zip(asked, found, strict=True):
        assert [document.page_content for document in documents] == expected[query]
        assert {document.metadata["lcse"]["parse"]["query"] for document in documents} == {query}


async def test_a_cancelled_call_stops_its_search(scorer: LogicScorer, documents: list[Document]) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    class Slow(FlatStore):
        async def asimilarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> Any:
            started.set()
            try:
                await asyncio.sleep(60)
            finally:
                stopped.set()

    retriever = LogicRetriever(source=Slow(documents, [[1.0] * 64] * len(documents)), scorer=scorer)
    call = asyncio.ensure_future(retriever.ainvoke("dog and no cat"))
    await asyncio.wait_for(started.wait(), 30)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(stopped.wait(), 30)
