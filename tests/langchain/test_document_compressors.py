"""LogicCompressor reorders what another retriever found."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import METADATA_KEY, LogicCompressor, LogicRetriever

from lcse_plugins import Candidate, LogicScorer
from lcse_plugins.errors import InvalidCandidate, InvalidOption
from tests.langchain.conftest import shown

QUERY = "umbrella and no person"


async def test_the_order_and_scores_are_the_cores(
    store: VectorStore, scorer: LogicScorer, gallery: list[Candidate]
) -> None:
    plain = store.similarity_search("umbrella person", k=12)
    before, expected = copy.deepcopy(plain), scorer.rank(QUERY, gallery)
    compressor = LogicCompressor(store=store)
    for found in (compressor.compress_documents(plain, QUERY), await compressor.acompress_documents(plain, QUERY)):
        assert shown(found)[:4] == [result.id for result in expected][:4]
        scores = [document.metadata["relevance_score"] for document in found]
        assert scores == pytest.approx([result.score for result in expected], abs=1e-5)
        assert found[0].metadata[METADATA_KEY]["reason"] == expected[0].reason
    assert plain == before
    assert compressor.compress_documents([], QUERY) == []


def test_in_a_compression_retriever_and_a_pipeline(memory: InMemoryVectorStore) -> None:
    plain = memory.as_retriever(search_kwargs={"k": 12})
    assert shown(plain.invoke(QUERY))[0] == "umbrella person"  # what plain similarity puts first
    compressor = LogicCompressor(store=memory, top_n=2)
    pipeline = DocumentCompressorPipeline(transformers=[compressor, LogicCompressor(store=memory, top_n=1)])
    for inner, count in ((compressor, 2), (pipeline, 1)):
        retriever = ContextualCompressionRetriever(base_compressor=inner, base_retriever=plain)
        assert shown(retriever.invoke(QUERY)) == ["umbrella", "umbrella bench"][:count]


def test_what_cannot_be_ranked(memory: InMemoryVectorStore, documents: list[Document]) -> None:
    lost = Document("a dog", metadata={"image_path": "no/such.png", "relevance_score": 9.0, "lcse": {"of": "before"}})
    mixed = [Document("a text"), lost, *documents]

    def ranked(**fields: Any) -> list[str]:
        found = LogicCompressor(store=memory, **fields).compress_documents(mixed, QUERY)
        return [document.page_content for document in found if document.page_content.startswith("a ")]

    assert ranked() == ["a text", "a dog"]
    assert ranked(min_truth=0.5) == ["a text"]  # nobody knows whether the lost picture would reach it
    assert ranked(on_missing="drop") == []
    with pytest.raises(InvalidCandidate, match="'a text' names no picture"):
        ranked(on_missing="raise")
    (last,) = LogicCompressor(store=memory).compress_documents([lost], QUERY)
    assert "there is no such file" in last.metadata["lcse"]["missing"]
    assert "relevance_score" not in last.metadata


@pytest.mark.parametrize("settings", [{"top_n": 0}, {"min_truth": -1}, {"mode": "magic"}, {"k": 3}, {"scorer": None}])
def test_wrong_settings_are_refused(scorer: LogicScorer, settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        LogicCompressor(**{"scorer": scorer, **settings})


def test_it_says_how_documents_were_fetched(memory: InMemoryVectorStore) -> None:
    def told(retriever: Any) -> Any:
        found = LogicCompressor(store=memory).compress_documents(retriever.invoke(QUERY), QUERY)
        return found[0].metadata[METADATA_KEY]

    by_words, by_logic = told(memory.as_retriever()), told(LogicRetriever(source=memory))
    assert (by_words["fetched"], by_logic["fetched"]) == ("words", "logic")
    assert any("favours what it excludes (person)" in note for note in by_words["notes"])
    assert not by_logic["notes"]
