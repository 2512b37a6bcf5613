"""LogicRetriever gives the core's ranking over every source, and obeys its settings and the arguments of a call."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import METADATA_KEY, LcseEmbeddings, LogicCompressor, LogicRetriever, logic_search_tool
from langchain_lcse.stores import KNOWN_STORES
from langchain_qdrant import QdrantVectorStore
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_lcse import AsyncLogicSearch, LogicSearch

from lcse_plugins import Candidate, LogicScorer, VectorPool, parse
from lcse_plugins.errors import ImageError, InvalidCandidate, InvalidOption, QueryError, SearchUnavailable
from lcse_plugins.testing import ToyEncoder
from tests.langchain.conftest import SOURCES, STORES, FlatStore, fields_over, fill, shown

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


@pytest.fixture(params=SOURCES)
def anywhere(request: pytest.FixtureRequest) -> LogicRetriever:
    return LogicRetriever(**fields_over(request.param), k=5)


@pytest.mark.parametrize("query", QUERIES)
async def test_every_source_gives_the_cores_ranking(
    query: str, anywhere: LogicRetriever, scorer: LogicScorer, gallery: list[Candidate]
) -> None:
    expected = scorer.rank(query, gallery, limit=5)
    for found in (anywhere.invoke(query), await anywhere.ainvoke(query)):
        scores = [document.metadata["relevance_score"] for document in found]
        assert scores == pytest.approx([result.score for result in expected], abs=1e-5)
        assert found[0].metadata[METADATA_KEY]["reason"] == expected[0].reason
        assert sorted(shown(found)) == sorted(str(result.id) for result in expected)


async def test_an_asynchronous_search_is_awaited_only(scorer: LogicScorer) -> None:
    client = AsyncQdrantClient(":memory:")
    await client.create_collection("p", models.VectorParams(size=64, distance=models.Distance.COSINE))
    retriever = LogicRetriever(source=AsyncLogicSearch(client, "p", scorer))
    assert await retriever.ainvoke("dog") == []
    with pytest.raises(InvalidOption, match="ainvoke"):
        retriever.invoke("dog")


def test_a_qdrant_store_is_searched_by_its_own_logic_keys_and_vector_name(
    scorer: LogicScorer, gallery: list[Candidate], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = QdrantClient(":memory:")
    client.create_collection("p", {"seen": models.VectorParams(size=64, distance=models.Distance.COSINE)})
    keys: Any = {"content_payload_key": "text", "metadata_payload_key": "facts"}
    store = QdrantVectorStore(client, "p", LcseEmbeddings(scorer), vector_name="seen", **keys)
    documents = [Document(f"n{i}", id=str(uuid4()), metadata={"path": f"{c.id}.png"}) for i, c in enumerate(gallery)]
    fill(store, documents, gallery)
    ranked = LogicCompressor(store=store, top_n=1).compress_documents(store.similarity_search("umbrella", k=9), QUERY)
    assert ranked[0].metadata["path"] == "umbrella.png"
    for method in ("similarity_search_by_vector", "similarity_search"):
        monkeypatch.setattr(QdrantVectorStore, method, None)
    (found,) = LogicRetriever(source=store, k=1).invoke(QUERY, filter={"path": "umbrella bench.png"})
    assert (found.page_content, found.metadata["path"]) == ("n3", "umbrella bench.png")
    assert (found.metadata["_collection_name"], found.metadata["_id"]) == ("p", found.id)


async def test_arguments_of_a_call(anywhere: LogicRetriever) -> None:
    assert len(anywhere.invoke(QUERY)) == len(await anywhere.ainvoke(QUERY)) == 5
    assert len(anywhere.invoke(QUERY, k=2)) == len(anywhere.bind(k=2).invoke(QUERY)) == 2
    assert set(shown(anywhere.invoke(QUERY, min_truth=0.5))) == {"umbrella", "umbrella bench"}
    wanted: Any = {"even": True, "row": 6}
    if isinstance(anywhere.source, LogicSearch):  # which takes filters of its own
        wanted = models.FieldCondition(key="metadata.row", match=models.MatchValue(value=6))
        wanted = models.Filter(must=[wanted])
    assert [document.metadata["row"] for document in anywhere.invoke("no person", filter=wanted)] == [6]
    with pytest.raises(InvalidOption, match=r"takes no top_k; it takes .*exact, fetch_k, filter, "):
        anywhere.invoke(QUERY, top_k=3)


def test_a_pool_is_filtered_by_a_function() -> None:
    retriever = LogicRetriever(**fields_over("pool"), k=12)
    assert len(retriever.invoke("no dog", filter=lambda document: document.metadata["even"])) == 6
    assert retriever.invoke("no dog", filter={"row": 99}) == []
    with pytest.raises(InvalidOption, match="function of the document"):
        retriever.invoke("no dog", filter="even")


def test_a_store_that_filters_what_it_found_is_searched_to_its_end(
    scorer: LogicScorer, gallery: list[Candidate], documents: list[Document]
) -> None:
    copies = [d.model_copy(update={"id": f"{d.id}-{i}"}) for i in range(3) for d in documents]
    retriever = LogicRetriever(source=fill(STORES["faiss"](LcseEmbeddings(scorer)), copies, gallery * 3), k=36)
    assert len(retriever.invoke("no dog", filter={"even": True})) == 18


def test_search_kwargs_come_after_fields_and_calls(memory: InMemoryVectorStore, search: LogicSearch) -> None:
    assert len(LogicRetriever(source=memory, k=2, search_kwargs={"k": 3}).invoke(QUERY)) == 2
    assert len(LogicRetriever(source=memory, search_kwargs={"k": 3}).invoke(QUERY, k=1)) == 1
    page = LogicRetriever(source=search, search_kwargs={"offset": 1}).invoke(QUERY)
    assert shown(page)[0] == "umbrella bench"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"k": 0}, "k is a positive whole number"),
    ({"fetch_k": -1}, "fetch_k is a positive"),
    ({"min_truth": 2}, "min_truth lies between"),
    ({"mode": "magic"}, "mode"),
    ({"on_missing": "keep"}, "on_missing"),
    ({"limit": 3}, "has no limit; it has .*source, .*k"),
    ({"source": 7}, "a source is a vector store"),
    ({"source": VectorPool([[1.0, 2.0]])}, "pass scorer="),
    ({"scorer": LogicScorer(ToyEncoder(dimension=8))}, "use one encoder for both"),
    ({**fields_over("search"), "mode": "lcse"}, "has its own scorer"),
    ({"search_kwargs": {"nonsense": 1}}, "takes no nonsense"),
]


@pytest.mark.parametrize(("settings", "hint"), WRONG)
def test_wrong_settings_are_refused(memory: InMemoryVectorStore, settings: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidOption, match=hint):
        LogicRetriever(**{"source": memory, **settings})


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


def test_an_empty_store_gives_nothing(empty_store: VectorStore) -> None:
    assert LogicRetriever(source=empty_store).invoke("dog") == []


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


def test_vectors_that_do_not_fit_are_told(store: VectorStore) -> None:
    setattr(store, KNOWN_STORES[type(store).__name__].embeddings, None)
    other = LogicRetriever(source=store, scorer=LogicScorer(ToyEncoder(dimension=32)))
    with pytest.raises(ValueError, match=r"encoder|dimension"):
        other.invoke("dog and no cat")


def test_evidence_is_written_as_asked(memory: InMemoryVectorStore, scorer: LogicScorer) -> None:
    told, as_json, bare = (
        LogicRetriever(source=memory, evidence=evidence).invoke(QUERY) for evidence in ("dict", "json", "none")
    )
    assert json.loads(as_json[0].metadata[METADATA_KEY]) == told[0].metadata[METADATA_KEY]
    assert not any({METADATA_KEY, "relevance_score"} & document.metadata.keys() for document in bare)
    chroma = STORES["chroma"](LcseEmbeddings(scorer))
    assert chroma.add_documents(as_json)  # which takes texts and numbers only


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


def test_what_goes_wrong_is_told_and_a_bug_is_not_hidden(
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


class Trace(BaseCallbackHandler):
    """Each run and those above it."""

    def __init__(self) -> None:
        self.lines: dict[UUID, str] = {}
        self.metadata: list[Any] = []

    def _start(
        self, serialized: Any, asked: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **told: Any
    ) -> None:
        above = f" < {self.lines[parent_run_id]}" if parent_run_id else ""
        self.lines[run_id] = (told.get("name") or serialized["name"]) + above
        self.metadata.append(told.get("metadata"))

    on_chain_start = on_retriever_start = on_tool_start = _start  # type: ignore[assignment]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_parsing_and_scoring_are_child_spans(memory: InMemoryVectorStore, asynchronous: bool) -> None:
    async def traced(runnable: Runnable[Any, Any], asked: Any) -> Trace:
        trace = Trace()
        config: Any = {"callbacks": [trace]}
        await runnable.ainvoke(asked, config) if asynchronous else runnable.invoke(asked, config)
        return trace

    model = RunnableLambda(parse, name="model")  # a parser may be a chain around a language model
    scorer = LogicScorer(ToyEncoder(), parser=lambda text: model.invoke(text))
    retriever = LogicRetriever(source=memory, scorer=scorer)
    trace = await traced(logic_search_tool(retriever), {"query": QUERY})
    assert list(trace.lines.values()) == [
        "search_pictures",
        "LogicRetriever < search_pictures",
        "lcse_parse < LogicRetriever < search_pictures",
        "model < lcse_parse < LogicRetriever < search_pictures",
        "lcse_score < LogicRetriever < search_pictures",
    ]
    told = trace.metadata[1]
    assert (told["ls_retriever_name"], told["ls_vector_store_provider"]) == ("logic", "InMemoryVectorStore")
    assert (told["ls_embedding_provider"], told["ls_embedding_model"][:4]) == ("lcse", "toy/")
    compressor = LogicCompressor(store=memory, scorer=scorer)
    reranked = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=memory.as_retriever())
    lines = (await traced(reranked, QUERY)).lines.values()
    assert "model < lcse_parse < ContextualCompressionRetriever" in lines
    assert "lcse_score < ContextualCompressionRetriever" in lines
