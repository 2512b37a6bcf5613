"""What `search_kwargs` says is done, in LangChain's words or the source's own, or refused: never passed over."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import LogicRetriever
from qdrant_client import QdrantClient, models
from qdrant_lcse import LogicSearch

from lcse_plugins import Candidate, LogicScorer, VectorPool
from lcse_plugins.errors import InvalidOption
from tests.langchain.flat_store import FlatStore

EVEN = models.Filter(must=[models.FieldCondition(key="even", match=models.MatchValue(value=True))])


def is_even(document: Document) -> bool:
    return bool(document.metadata["even"])


@pytest.fixture
def search(scorer: LogicScorer, gallery: list[Candidate]) -> LogicSearch:
    client = QdrantClient(":memory:")
    client.create_collection("pictures", models.VectorParams(size=64, distance=models.Distance.COSINE))
    points = [
        models.PointStruct(id=row, vector=candidate.vector.tolist(), payload={"even": row % 2 == 0})
        for row, candidate in enumerate(gallery)
    ]
    client.upsert("pictures", points)
    return LogicSearch(client, "pictures", scorer)


@pytest.fixture
def pool(gallery: list[Candidate], documents: list[Document]) -> VectorPool:
    pairs = zip(gallery, documents, strict=True)
    return VectorPool.of([Candidate(candidate.id, candidate.vector, payload=document) for candidate, document in pairs])


@pytest.mark.parametrize("word", ["query_filter", "filter"])
async def test_a_filter_holds_in_the_database(search: LogicSearch, word: str) -> None:
    retriever = LogicRetriever(source=search, k=12, search_kwargs={word: EVEN})
    for found in (retriever.invoke("no dog"), await retriever.ainvoke("no dog")):
        assert len(found) == 6
        assert all(map(is_even, found))


@pytest.mark.parametrize("source", ["memory", "pool"])
def test_a_filter_holds_in_memory(request: pytest.FixtureRequest, scorer: LogicScorer, source: str) -> None:
    held = LogicRetriever(
        source=request.getfixturevalue(source), scorer=scorer, k=12, search_kwargs={"filter": is_even}
    )
    assert len(held.invoke("no dog")) == 6
    assert len(held.invoke("no dog", filter=lambda document: True)) == 12


@pytest.mark.parametrize("settings", [{"k": 1}, {"limit": 1}])
def test_a_number_holds_in_the_database(search: LogicSearch, settings: dict[str, Any]) -> None:
    retriever = LogicRetriever(source=search, search_kwargs=settings)
    assert len(retriever.invoke("no dog")) == 1
    assert len(retriever.invoke("no dog", k=3)) == 3


@pytest.mark.parametrize("source", ["memory", "pool", "search"])
def test_what_every_source_is_asked_for_holds(request: pytest.FixtureRequest, scorer: LogicScorer, source: str) -> None:
    given = None if source == "search" else scorer
    settings = {"k": 12, "min_truth": 0.5, "fetch_k": 100, "exact": True}
    retriever = LogicRetriever(source=request.getfixturevalue(source), scorer=given, search_kwargs=settings)
    found = retriever.invoke("umbrella and no person")
    assert len(found) == 2
    assert all(document.metadata["lcse"]["truth"] >= 0.5 for document in found)


def test_it_may_be_changed_later_and_by_configuration(memory: InMemoryVectorStore) -> None:
    retriever = LogicRetriever(source=memory, search_kwargs={"k": 1})
    retriever.search_kwargs["k"] = 2
    assert len(retriever.invoke("dog")) == 2
    configurable = retriever.configurable_fields(search_kwargs=ConfigurableField(id="search"))
    assert len(configurable.invoke("dog", {"configurable": {"search": {"k": 3}}})) == 3


def test_two_values_for_one_thing_are_refused(search: LogicSearch) -> None:
    with pytest.raises(InvalidOption, match=r"k is given twice: 10, and 1 as search_kwargs\['limit'\]"):
        LogicRetriever(source=search, k=10, search_kwargs={"limit": 1})
    for twice in ({"limit": 1, "k": 2}, {"exact": True}):
        with pytest.raises(InvalidOption, match="is given twice"):
            LogicRetriever(source=search, k=4, fetch_k=1000, exact=False, search_kwargs=twice)
    with pytest.raises(InvalidOption, match="k is given twice"):
        LogicRetriever(source=search, search_kwargs={"limit": 1, "k": 2})
    with pytest.raises(InvalidOption, match="k is a positive whole number, not 0"):
        LogicRetriever(source=search, search_kwargs={"limit": 0})
    assert len(LogicRetriever(source=search, k=1, search_kwargs={"limit": 1}).invoke("no dog")) == 1


@pytest.mark.parametrize(
    ("source", "known"), [("memory", "filter"), ("pool", "filter"), ("search", "search_params"), ("picky", "flavour")]
)
def test_what_a_source_cannot_do_is_refused(
    request: pytest.FixtureRequest, scorer: LogicScorer, documents: list[Document], source: str, known: str
) -> None:
    class Picky(FlatStore):
        def similarity_search_by_vector(  # type: ignore[override]
            self, embedding: list[float], k: int = 4, flavour: str = ""
        ) -> list[Document]:
            raise NotImplementedError

    chosen = Picky(documents, [[1.0] * 64]) if source == "picky" else request.getfixturevalue(source)
    with pytest.raises(InvalidOption, match=f"cannot honour tenant in search_kwargs; it knows .*{known}"):
        LogicRetriever(source=chosen, scorer=None if source == "search" else scorer, search_kwargs={"tenant": 7})


def test_a_store_that_may_know_a_word_is_given_it(scorer: LogicScorer, documents: list[Document]) -> None:
    given: dict[str, Any] = {}

    class Curious(FlatStore):
        def similarity_search_by_vector(
            self, embedding: list[float], k: int = 4, fetch_k: int = 20, **kwargs: Any
        ) -> list[Document]:
            given.update(kwargs, k=k, fetch_k=fetch_k)
            return []

    settings = {"tenant": 7, "fetch_k": 50, "k": 2}
    LogicRetriever(source=Curious(documents, [[1.0] * 64]), scorer=scorer, search_kwargs=settings).invoke("dog")
    assert given == {"tenant": 7, "fetch_k": 50, "k": 1000}


@pytest.mark.parametrize("source", ["memory", "pool"])
async def test_a_filter_in_memory_is_a_function(
    request: pytest.FixtureRequest, scorer: LogicScorer, source: str
) -> None:
    chosen: Any = request.getfixturevalue(source)
    retriever = LogicRetriever(source=chosen, scorer=scorer)
    with pytest.raises(InvalidOption, match="a function of the document"):
        retriever.invoke("dog", filter={"even": True})
    with pytest.raises(InvalidOption, match="a function of the document"):
        await retriever.ainvoke("dog", filter={"even": True})
    with pytest.raises(InvalidOption, match="a function of the document"):
        LogicRetriever(source=chosen, scorer=scorer, search_kwargs={"filter": {"even": True}})
