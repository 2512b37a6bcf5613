"""LogicRetriever gives the core's ranking over every source, and obeys its settings and the arguments of a call."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import pickle
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from langchain_classic.retrievers import MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import METADATA_KEY, LcseEmbeddings, LogicCompressor, LogicRetriever, add_images
from langchain_qdrant import QdrantVectorStore
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_lcse import AsyncLogicSearch, LogicSearch

from lcse_plugins import Candidate, LogicScorer, VectorPool, demo_photos
from lcse_plugins.errors import ImageError, InvalidCandidate, InvalidOption, QueryError, SearchUnavailable
from lcse_plugins.testing import ToyEncoder
from tests.langchain.conftest import STORES, FlatStore, fill, shown

QUERY = "umbrella and no person"
QUERIES = [
    "a dog on a sofa",
    "no person",
    "dog and cat",
    "dog or cat",
    QUERY,
    "neither cars nor people",
    "(dog AND NOT cat) OR (umbrella AND NOT person)",
]


def scores_of(documents: list[Document]) -> list[float]:
    return [document.metadata["relevance_score"] for document in documents]


@pytest.mark.parametrize("query", QUERIES)
async def test_every_store_gives_the_cores_ranking(
    query: str, store: VectorStore, scorer: LogicScorer, gallery: list[Candidate]
) -> None:
    expected = scorer.rank(query, gallery, limit=5)
    retriever = LogicRetriever(source=store, k=5)
    for found in (retriever.invoke(query), await retriever.ainvoke(query)):
        assert scores_of(found) == pytest.approx([result.score for result in expected], abs=1e-5)
        assert found[0].metadata[METADATA_KEY]["reason"] == expected[0].reason
    assert sorted(shown(found)) == sorted(str(result.id) for result in expected)


async def test_pools_and_databases_give_the_cores_ranking(
    search: LogicSearch, scorer: LogicScorer, gallery: list[Candidate]
) -> None:
    pool = LogicRetriever(source=VectorPool.of(gallery), scorer=scorer, k=5)
    for query in QUERIES:
        expected = pytest.approx([result.score for result in scorer.rank(query, gallery, limit=5)], abs=1e-5)
        for retriever in (pool, LogicRetriever(source=search, k=5)):
            assert scores_of(retriever.invoke(query)) == expected
            assert scores_of(await retriever.ainvoke(query)) == expected
            assert retriever.invoke(query)[0].metadata[METADATA_KEY]["exact"]


def test_starter_photographs_rank_alike_in_every_store() -> None:
    scorer = LogicScorer("starter")
    memory = InMemoryVectorStore(LcseEmbeddings(scorer))
    kept = [memory.store[key] for key in add_images(memory, demo_photos()).ids]
    documents = [Document(id=entry["id"], page_content=entry["text"], metadata=entry["metadata"]) for entry in kept]
    photos = [Candidate(entry["text"], np.array(entry["vector"])) for entry in kept]
    for kind, make in STORES.items():
        retriever = LogicRetriever(source=fill(make(LcseEmbeddings(scorer)), documents, photos), k=10)
        for query in ("a dog and no person", "a kitchen", "a cat or a bird", "neither cars nor people", "no dog"):
            expected, found = scorer.rank(query, photos, limit=10), retriever.invoke(query)
            assert shown(found) == [str(result.id) for result in expected], kind
            assert scores_of(found) == pytest.approx([result.score for result in expected], abs=1e-5)


async def test_an_asynchronous_search_is_awaited_only(scorer: LogicScorer) -> None:
    client = AsyncQdrantClient(":memory:")
    await client.create_collection("p", models.VectorParams(size=64, distance=models.Distance.COSINE))
    vector = scorer.encoder.encode_images(["dog"])[0].tolist()
    await client.upsert("p", [models.PointStruct(id=1, vector=vector, payload={"path": "a.png"})])
    retriever = LogicRetriever(source=AsyncLogicSearch(client, "p", scorer))
    assert [d.metadata["path"] for d in await retriever.ainvoke("dog")] == ["a.png"]
    with pytest.raises(InvalidOption, match="ainvoke"):
        retriever.invoke("dog")


def test_a_qdrant_store_is_searched_by_its_own_logic(
    search: LogicSearch, scorer: LogicScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = QdrantVectorStore(search.client, "pictures", LcseEmbeddings(scorer))
    for method in ("similarity_search_by_vector", "similarity_search"):
        monkeypatch.setattr(QdrantVectorStore, method, None)
    (found,) = LogicRetriever(source=store, k=1).invoke(QUERY)
    assert (found.page_content, shown([found])) == ("photo number1", ["umbrella"])
    assert (found.metadata["_collection_name"], found.metadata["_id"]) == ("pictures", found.id)


def test_qdrant_chooses_how_many_candidates_to_score(search: LogicSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    query = search.query

    def seen(text: Any, **options: Any) -> Any:
        asked.append(options["candidates"])
        return query(text, **options)

    monkeypatch.setattr(search, "query", seen)
    retriever = LogicRetriever(source=search)
    retriever.invoke(QUERY)
    retriever.invoke(QUERY, fetch_k=50)
    assert asked == [None, 50]


def test_a_qdrant_stores_own_keys_and_vector_names_hold(scorer: LogicScorer, gallery: list[Candidate]) -> None:
    client = QdrantClient(":memory:")
    client.create_collection("p", {"seen": models.VectorParams(size=64, distance=models.Distance.COSINE)})
    keys: Any = {"content_payload_key": "text", "metadata_payload_key": "facts"}
    store = QdrantVectorStore(client, "p", LcseEmbeddings(scorer), vector_name="seen", **keys)
    documents = [Document(f"n{i}", id=str(uuid4()), metadata={"path": f"{c.id}.png"}) for i, c in enumerate(gallery)]
    fill(store, documents, gallery)
    (found,) = LogicRetriever(source=store, k=1).invoke(QUERY, filter={"path": "umbrella bench.png"})
    assert (found.page_content, found.metadata["path"]) == ("n3", "umbrella bench.png")
    ranked = LogicCompressor(store=store, top_n=1).compress_documents(store.similarity_search("umbrella", k=9), QUERY)
    assert ranked[0].metadata["path"] == "umbrella.png"


async def test_arguments_of_a_call(store: VectorStore) -> None:
    retriever = LogicRetriever(source=store, k=2)
    assert len(retriever.invoke(QUERY)) == len(await retriever.ainvoke(QUERY)) == 2
    assert len(retriever.invoke(QUERY, k=5)) == len(await retriever.ainvoke(QUERY, k=5)) == 5
    assert set(shown(retriever.invoke(QUERY, k=12, min_truth=0.5))) == {"umbrella", "umbrella bench"}
    even = retriever.invoke("no person", k=12, filter={"even": True})
    assert {document.metadata["row"] for document in even} == {0, 2, 4, 6, 8, 10}
    both = {"even": True, "row": 6}
    for found in (retriever.invoke("no person", filter=both), await retriever.ainvoke("no person", filter=both)):
        assert [document.metadata["row"] for document in found] == [6]
    assert retriever.invoke("no person", filter={"row": 99}) == []
    assert len(retriever.bind(k=3).invoke("dog")) == 3


def test_a_pool_is_filtered_by_a_function_or_by_values(
    scorer: LogicScorer, gallery: list[Candidate], documents: list[Document]
) -> None:
    rows = [Candidate(d.id, c.vector, payload=d) for c, d in zip(gallery, documents, strict=True)]
    retriever = LogicRetriever(source=VectorPool.of(rows), scorer=scorer, k=12)
    assert len(retriever.invoke("no dog", filter=lambda document: document.metadata["even"])) == 6
    assert [d.metadata["row"] for d in retriever.invoke("no dog", filter={"row": 3})] == [3]
    assert retriever.invoke("no dog", filter={"row": 99}) == []
    with pytest.raises(InvalidOption, match="function of the document"):
        retriever.invoke("no dog", filter="even")


def test_a_store_that_filters_what_it_found_is_searched_to_its_end(
    scorer: LogicScorer, gallery: list[Candidate], documents: list[Document]
) -> None:
    copies = [d.model_copy(update={"id": f"{d.id}-{i}"}) for i in range(3) for d in documents]
    retriever = LogicRetriever(source=fill(STORES["faiss"](LcseEmbeddings(scorer)), copies, gallery * 3), k=36)
    for wanted in ({"even": True}, lambda metadata: metadata["even"]):
        assert len(retriever.invoke("no dog", filter=wanted)) == 18


async def test_unknown_keywords_are_refused_by_name(store: VectorStore, search: LogicSearch) -> None:
    for retriever in (LogicRetriever(source=store), LogicRetriever(source=search)):
        with pytest.raises(InvalidOption, match=r"takes no top_k; it takes .*exact, fetch_k, filter, "):
            retriever.invoke(QUERY, top_k=3)
        with pytest.raises(InvalidOption, match=r"takes no top_k; it takes .*exact, fetch_k, filter, "):
            await retriever.ainvoke(QUERY, top_k=3)


def test_search_kwargs_come_after_fields_and_calls(memory: InMemoryVectorStore, search: LogicSearch) -> None:
    assert len(LogicRetriever(source=memory, search_kwargs={"k": 3}).invoke(QUERY)) == 3
    assert len(LogicRetriever(source=memory, k=2, search_kwargs={"k": 3}).invoke(QUERY)) == 2
    assert len(LogicRetriever(source=memory, search_kwargs={"k": 3}).invoke(QUERY, k=1)) == 1
    page = LogicRetriever(source=search, k=2, search_kwargs={"offset": 1}).invoke(QUERY)
    assert shown(page)[0] == "umbrella bench"
    with pytest.raises(InvalidOption, match="takes no nonsense"):
        LogicRetriever(source=memory, search_kwargs={"nonsense": 1})


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"k": 0}, "k is a positive whole number"),
    ({"k": True}, "k is a positive whole number"),
    ({"fetch_k": -1}, "fetch_k is a positive"),
    ({"min_truth": 2}, "min_truth lies between"),
    ({"mode": "magic"}, "mode"),
    ({"on_missing": "keep"}, "on_missing"),
    ({"limit": 3}, "has no limit; it has .*source, .*k"),
    ({"source": 7}, "a source is a vector store"),
    ({"source": VectorPool([[1.0, 2.0]])}, "pass scorer="),
    ({"scorer": LogicScorer(ToyEncoder(dimension=8))}, "use one encoder for both"),
]


@pytest.mark.parametrize(("settings", "hint"), WRONG)
def test_wrong_settings_are_refused(memory: InMemoryVectorStore, settings: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidOption, match=hint):
        LogicRetriever(**{"source": memory, **settings})


def test_a_database_has_its_own_scorer(search: LogicSearch) -> None:
    with pytest.raises(InvalidOption, match="has its own scorer"):
        LogicRetriever(source=search, scorer=search.scorer)
    with pytest.raises(InvalidOption, match="by keyword"):
        LogicRetriever(search)  # type: ignore[call-arg, arg-type]


def test_a_scorer_may_be_a_name_and_fields_describe_themselves() -> None:
    pool = VectorPool.of([Candidate("a", np.ones(256, np.float32))])
    scorer = LogicRetriever(source=pool, scorer="starter").scorer
    assert isinstance(scorer, LogicScorer)
    described = {name for name, field in LogicRetriever.model_fields.items() if field.description}
    assert described >= LogicRetriever.model_fields.keys() - {"name", "tags", "metadata"}


def test_few_candidates_are_never_called_exact(encoder: ToyEncoder) -> None:
    names = [f"dog{i} cat{i}" for i in range(200)]
    documents = [Document(id=name, page_content="x", metadata={"path": f"{name}.png"}) for name in names]
    candidates = [Candidate(n, v) for n, v in zip(names, encoder.encode_images(names), strict=True)]
    few = LogicRetriever(
        source=fill(InMemoryVectorStore(LcseEmbeddings(encoder)), documents, candidates), k=2, fetch_k=20
    )
    assert not few.invoke("dog7 and no cat9")[0].metadata[METADATA_KEY]["exact"]
    proved = few.invoke("dog7 and no cat9", exact=True)
    assert proved[0].metadata[METADATA_KEY]["exact"]
    assert proved[0].id == LogicScorer(encoder).rank("dog7 and no cat9", candidates)[0].id


async def test_an_empty_store_gives_nothing(empty_store: VectorStore) -> None:
    assert LogicRetriever(source=empty_store).invoke("dog") == []
    assert await LogicRetriever(source=empty_store).ainvoke("dog") == []


async def test_a_store_nobody_knows_takes_vectors_from_a_function(
    scorer: LogicScorer, gallery: list[Candidate], documents: list[Document], caplog: pytest.LogCaptureFixture
) -> None:
    rows = np.stack([candidate.vector for candidate in gallery])

    def vectors(found: Sequence[Document]) -> list[np.ndarray]:
        return [rows[document.metadata["row"]] for document in found]

    thrice = FlatStore(documents, rows, copies=3)
    retriever = LogicRetriever(source=thrice, scorer=scorer, k=12, vectors=vectors)
    for found in (retriever.invoke(QUERY), await retriever.ainvoke(QUERY)):
        assert shown(found) == [result.id for result in scorer.rank(QUERY, gallery)]  # and none of them thrice
    with pytest.raises(InvalidCandidate, match="1 vectors for 12 documents"):
        LogicRetriever(source=thrice, scorer=scorer, vectors=lambda found: [[1.0]]).invoke(QUERY)
    store = FlatStore(documents, rows)
    with caplog.at_level(logging.WARNING), pytest.raises(ImageError, match="no such file"):
        LogicRetriever(source=store, scorer=scorer).invoke("dog")
    assert (thrice.asked[0], store.asked) == (1000, [100])
    assert "FlatStore gives no vectors back" in caplog.text


async def test_vectors_that_do_not_fit_are_told(store: VectorStore) -> None:
    for name in ("embedding", "_embeddings", "_embedding_function", "embedding_function"):
        if hasattr(store, name):
            setattr(store, name, None)
    other = LogicRetriever(source=store, scorer=LogicScorer(ToyEncoder(dimension=32)))
    with pytest.raises(ValueError, match=r"encoder|dimension"):
        other.invoke("dog and no cat")
    with pytest.raises(ValueError, match=r"encoder|dimension"):
        await other.ainvoke("dog and no cat")


def test_evidence_is_written_as_asked(memory: InMemoryVectorStore, scorer: LogicScorer) -> None:
    told, as_json, bare = (
        LogicRetriever(source=memory, evidence=evidence).invoke(QUERY) for evidence in ("dict", "json", "none")
    )
    assert json.loads(as_json[0].metadata[METADATA_KEY]) == told[0].metadata[METADATA_KEY]
    assert not any({METADATA_KEY, "relevance_score"} & document.metadata.keys() for document in bare)
    assert shown(bare) == shown(told) == shown(as_json)
    chroma = STORES["chroma"](LcseEmbeddings(scorer))
    assert chroma.add_documents(as_json)  # which takes texts and numbers only


def test_several_queries_find_a_document_once(store: VectorStore) -> None:
    ways = "umbrella without a person\numbrella, but no person\nan umbrella and no person"
    retriever = LogicRetriever(source=store, k=4, evidence="none")
    several = MultiQueryRetriever.from_llm(retriever, FakeListChatModel(responses=[ways]))
    found = shown(several.invoke(QUERY))
    assert len(found) == len(set(found)) >= 4


def test_nothing_that_was_given_is_changed(memory: InMemoryVectorStore) -> None:
    before = copy.deepcopy(memory.store)
    retriever = LogicRetriever(source=memory)
    retriever.invoke(QUERY)[0].metadata["lcse"]["evidence"].clear()
    assert retriever.invoke(QUERY)[0].metadata["lcse"]["evidence"]
    assert memory.store == before


def test_copies_pickles_and_later_settings(memory: InMemoryVectorStore, gallery: list[Candidate]) -> None:
    retriever = LogicRetriever(source=VectorPool.of(gallery), scorer=LogicScorer(ToyEncoder()), k=3)
    expected = retriever.invoke(QUERY)
    for other in (copy.deepcopy(retriever), pickle.loads(pickle.dumps(retriever)), retriever.model_copy()):
        assert other.invoke(QUERY) == expected
    retriever.k = 1
    assert [document.id for document in retriever.invoke(QUERY)] == [expected[0].id]
    fields = {"k": ConfigurableField(id="k"), "mode": ConfigurableField(id="mode")}
    configured = LogicRetriever(source=memory).configurable_fields(**fields)
    found = configured.invoke(QUERY, {"configurable": {"k": 2, "mode": "lcse"}})
    assert (len(found), found[0].metadata["lcse"]["mode"]) == (2, "lcse")


async def test_many_calls_at_once_are_not_mixed_up(store: VectorStore) -> None:
    retriever = LogicRetriever(source=store, k=3)
    expected = [shown(retriever.invoke(query)) for query in QUERIES]
    answers = await asyncio.gather(*(retriever.ainvoke(query) for query in QUERIES * 5))
    assert [shown(answer) for answer in answers] == expected * 5


async def test_what_goes_wrong_is_told_and_a_bug_is_not_hidden(
    memory: InMemoryVectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(document: Document) -> bool:
        raise ValueError("not a number")

    def fail(*_: Any, **__: Any) -> None:
        raise TimeoutError("late")

    retriever = LogicRetriever(source=memory)
    with pytest.raises(QueryError, match=r"dog AND \("):
        retriever.invoke("dog AND (")
    with pytest.raises(InvalidCandidate, match=r"not a number.*does it take such filters"):
        retriever.invoke("dog", filter=refuse)
    with pytest.raises(KeyError):
        retriever.invoke("dog", filter=lambda document: document.metadata["nothing"])
    monkeypatch.setattr(memory, "similarity_search_by_vector", fail)
    with pytest.raises(SearchUnavailable, match="InMemoryVectorStore did not answer"):
        retriever.invoke("dog")
    with pytest.raises(SearchUnavailable, match="did not answer"):
        await retriever.ainvoke("dog")
