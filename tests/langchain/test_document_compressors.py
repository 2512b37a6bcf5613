"""LogicCompressor reorders what another retriever found."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import LcseEmbeddings, LogicCompressor, LogicRetriever

from lcse_plugins import Candidate, LogicScorer
from lcse_plugins.errors import ImageError, InvalidCandidate, InvalidOption
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.testing import ToyEncoder

QUERY = "umbrella and no person"


@pytest.fixture
def compressor(scorer: LogicScorer, gallery: list[Candidate]) -> LogicCompressor:
    table = {str(candidate.id): candidate.vector for candidate in gallery}
    return LogicCompressor(scorer=scorer, vectors=lambda found: [table.get(d.page_content) for d in found])


async def test_the_order_and_scores_are_the_cores(
    compressor: LogicCompressor, scorer: LogicScorer, gallery: list[Candidate], documents: list[Document]
) -> None:
    before = copy.deepcopy(documents)
    expected = scorer.rank(QUERY, gallery)
    for found in (
        compressor.compress_documents(documents, QUERY),
        await compressor.acompress_documents(documents, QUERY),
    ):
        assert [document.page_content for document in found] == [result.id for result in expected]
        scores = [document.metadata["relevance_score"] for document in found]
        assert scores == pytest.approx([result.score for result in expected], abs=1e-6)
        assert found[0].metadata["lcse"]["evidence"][1] == pytest.approx(expected[0].evidence[1].to_json())
    assert documents == before


async def test_in_a_compression_retriever_and_a_pipeline(store: VectorStore, scorer: LogicScorer) -> None:
    plain = store.as_retriever(search_kwargs={"k": 12})
    assert plain.invoke(QUERY)[0].page_content == "umbrella person"  # what plain similarity puts first
    compressor = LogicCompressor(scorer=scorer, store=store, top_n=2)
    pipeline = DocumentCompressorPipeline(
        transformers=[compressor, LogicCompressor(scorer=scorer, store=store, top_n=1)]
    )
    for inner, count in ((compressor, 2), (pipeline, 1)):
        retriever = ContextualCompressionRetriever(base_compressor=inner, base_retriever=plain)
        for found in (retriever.invoke(QUERY), await retriever.ainvoke(QUERY)):
            assert [document.page_content for document in found] == ["umbrella", "umbrella bench"][:count]


def test_min_truth_and_top_n(compressor: LogicCompressor, documents: list[Document]) -> None:
    strict = compressor.model_copy(update={"min_truth": 0.5})
    assert {d.page_content for d in strict.compress_documents(documents, QUERY)} == {"umbrella", "umbrella bench"}
    few = compressor.model_copy(update={"top_n": 3})
    assert len(few.compress_documents(documents, QUERY)) == 3
    many = compressor.model_copy(update={"top_n": 300})
    assert len(many.compress_documents(documents, QUERY)) == len(documents)


async def test_nothing_in_nothing_out(compressor: LogicCompressor) -> None:
    assert compressor.compress_documents([], QUERY) == []
    assert await compressor.acompress_documents([], QUERY) == []


def test_documents_without_a_picture(
    compressor: LogicCompressor, scorer: LogicScorer, documents: list[Document], pictures: list[Path]
) -> None:
    notes = [Document(page_content="second note"), Document(page_content="first note", metadata={"a": 1})]
    mixed = [notes[0], *documents[:3], notes[1]]
    found = compressor.compress_documents(mixed, QUERY)
    assert [document.page_content for document in found[3:]] == ["second note", "first note"]
    assert found[4].metadata.keys() == {"a", "lcse"}
    assert "names no picture" in found[4].metadata["lcse"]["missing"]
    assert notes[1].metadata == {"a": 1}
    dropping = compressor.model_copy(update={"on_missing": "drop"})
    assert len(dropping.compress_documents(mixed, QUERY)) == 3
    assert dropping.compress_documents(notes, QUERY) == []
    raising = compressor.model_copy(update={"on_missing": "raise"})
    with pytest.raises(InvalidCandidate, match="'second note'"):
        raising.compress_documents(mixed, QUERY)
    pictures[0].write_bytes(b"broken")
    with pytest.raises(ImageError, match="not a picture"):
        raising.compress_documents([Document(page_content="?", metadata={"path": str(pictures[0])})], QUERY)
    assert len(compressor.model_copy(update={"top_n": 4}).compress_documents(mixed, QUERY)) == 4


def test_what_an_earlier_query_said_is_not_said_of_this_one(compressor: LogicCompressor) -> None:
    old = {"relevance_score": 0.9, "lcse": {"reason": "of another query", "truth": 1.0}}
    found = compressor.compress_documents([Document("a note", id="note", metadata=old)], QUERY)[0].metadata
    assert found.keys() == {"lcse"}
    assert (found["lcse"]["id"], found["lcse"]["parse"]["query"]) == ("note", QUERY)
    assert not {"reason", "truth"} & found["lcse"].keys()


async def test_pictures_that_cannot_be_read_are_told_of(
    compressor: LogicCompressor, documents: list[Document], caplog: pytest.LogCaptureFixture
) -> None:
    gone = [Document("?", metadata={"image_path": f"/moved/{name}.png"}) for name in "ab"]
    await compressor.acompress_documents([*gone, Document("a note"), *documents[:2]], QUERY)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == "2 of 5 results could not be ranked; the first: /moved/a.png: there is no such file"
    caplog.clear()
    compressor.compress_documents([Document("a note"), *documents[:2]], QUERY)
    assert not caplog.records
    compressor.compress_documents([Document("a note")], QUERY)
    assert "1 of 1 results could not be ranked; the first: document 'a note'" in caplog.text


def test_a_picture_that_cannot_be_read_is_not_true_enough(
    compressor: LogicCompressor, documents: list[Document]
) -> None:
    mixed = [Document("gone", metadata={"image_path": "/moved/a.png"}), Document("a note"), *documents]
    strict = compressor.model_copy(update={"min_truth": 0.5})
    found = [document.page_content for document in strict.compress_documents(mixed, QUERY)]
    assert found == ["umbrella", "umbrella bench", "a note"]


def test_equal_documents_are_all_kept_in_order(compressor: LogicCompressor) -> None:
    twins = [Document(page_content="umbrella", metadata={"n": n}) for n in range(3)]
    assert [document.metadata["n"] for document in compressor.compress_documents(twins, QUERY)] == [0, 1, 2]


def test_pictures_are_encoded_once(scorer: LogicScorer, encoder: ToyEncoder, pictures: list[Path]) -> None:
    documents = [Document(page_content=path.stem, metadata={"image_path": path.as_posix()}) for path in pictures]
    compressor = LogicCompressor(scorer=scorer)
    before = encoder.images_encoded
    first = compressor.compress_documents(documents, "red")
    assert len(compressor.compress_documents(documents, "no blue")) == len(first) == 6
    assert encoder.images_encoded - before == 6


@pytest.mark.parametrize(
    "settings", [{"top_n": 0}, {"top_n": -2}, {"top_n": True}, {"min_truth": 2.0}, {"on_missing": "maybe"}]
)
def test_wrong_settings_are_refused(scorer: LogicScorer, settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        LogicCompressor(scorer=scorer, **settings)


def test_an_unknown_setting_is_refused(scorer: LogicScorer) -> None:
    with pytest.raises(InvalidOption, match="LogicCompressor has no k; it has scorer, top_n"):
        LogicCompressor(scorer=scorer, k=3)  # type: ignore[call-arg]


def test_copies_and_pickles_answer_alike(
    memory: InMemoryVectorStore, scorer: LogicScorer, documents: list[Document]
) -> None:
    compressor = LogicCompressor(scorer=scorer, store=memory)
    found = compressor.compress_documents(documents, QUERY)
    assert copy.deepcopy(compressor).compress_documents(documents, QUERY) == found
    assert pickle.loads(pickle.dumps(compressor)).compress_documents(documents, QUERY) == found


def test_another_scorer_takes_effect_whole(encoder: ToyEncoder, pictures: list[Path]) -> None:
    documents = [Document(page_content=path.stem, metadata={"image_path": path.as_posix()}) for path in pictures]
    compressor = LogicCompressor(scorer=LogicScorer(ToyEncoder(dimension=8)))
    compressor.compress_documents(documents, "red")
    compressor.scorer = LogicScorer(encoder)
    assert compressor.compress_documents(documents, "red") == LogicCompressor(
        scorer=LogicScorer(encoder)
    ).compress_documents(documents, "red")


def test_another_vectors_function_takes_effect(compressor: LogicCompressor, encoder: ToyEncoder) -> None:
    documents = [Document(page_content=name) for name in ("umbrella", "umbrella person")]
    assert compressor.compress_documents(documents, QUERY)[0].page_content == "umbrella"
    compressor.vectors = lambda found: encoder.encode_texts(["umbrella person", "umbrella"]).tolist()
    assert compressor.compress_documents(documents, QUERY)[0].page_content == "umbrella person"


def test_a_shared_cache_is_used_though_it_is_empty(
    scorer: LogicScorer, encoder: ToyEncoder, pictures: list[Path]
) -> None:
    documents = [Document(page_content=path.stem, metadata={"image_path": path.as_posix()}) for path in pictures]
    cache = ImageVectorCache(encoder)
    LogicCompressor(scorer=scorer, image_cache=cache).compress_documents(documents, "red")
    assert len(cache) == len(pictures)


def test_vectors_of_another_length_are_refused(memory: InMemoryVectorStore, documents: list[Document]) -> None:
    other = LogicCompressor(scorer=LogicScorer(ToyEncoder(dimension=8)), store=memory)
    with pytest.raises(InvalidCandidate, match="64 dimensions"):
        other.compress_documents(documents, QUERY)


def captioned(pictures: list[Path]) -> list[Document]:
    return [
        Document(page_content=f"caption {path.stem}", id=path.stem, metadata={"image_path": str(path)})
        for path in pictures
    ]


def test_a_store_of_texts_is_refused(encoder: ToyEncoder, scorer: LogicScorer, pictures: list[Path]) -> None:
    store = InMemoryVectorStore.from_documents(captioned(pictures), LcseEmbeddings(encoder))
    compressor = LogicCompressor(scorer=scorer, store=store)
    with pytest.raises(InvalidCandidate, match="not of its picture; fill the store with"):
        compressor.compress_documents(store.similarity_search("caption", k=6), QUERY)


async def test_a_text_among_pictures_counts_as_one_without_a_picture(
    encoder: ToyEncoder, scorer: LogicScorer, pictures: list[Path]
) -> None:
    documents = captioned(pictures)
    vectors = [encoder.encode_images([path])[0] for path in pictures]
    vectors[2] = encoder.encode_texts([documents[2].page_content])[0]
    compressor = LogicCompressor(scorer=scorer, vectors=lambda found: [vectors[documents.index(d)] for d in found])
    for found in (
        compressor.compress_documents(documents, "blue"),
        await compressor.acompress_documents(documents, "blue"),
    ):
        assert [document.id for document in found][-1] == "blue"
        assert "relevance_score" not in found[-1].metadata
    compressor.on_missing = "drop"
    assert len(compressor.compress_documents(documents, "blue")) == 5
    compressor.top_n = 1  # the text stands first, and pictures are behind it
    assert [document.id for document in compressor.compress_documents(documents, "caption blue")] != ["blue"]
    compressor.top_n = None
    compressor.on_missing = "raise"
    with pytest.raises(InvalidCandidate, match="that of its text, 'caption blue'"):
        compressor.compress_documents(documents, "blue")


def test_a_cache_of_another_encoder_is_refused(scorer: LogicScorer, memory: InMemoryVectorStore) -> None:
    other = ImageVectorCache(ToyEncoder(dimension=8))
    with pytest.raises(InvalidOption, match="image_cache keeps vectors of encoder"):
        LogicCompressor(scorer=scorer, image_cache=other)
    with pytest.raises(InvalidOption, match="image_cache keeps vectors of encoder"):
        LogicRetriever(source=memory, image_cache=other)


def test_the_account_says_how_documents_were_fetched(memory: InMemoryVectorStore, scorer: LogicScorer) -> None:
    compressor = LogicCompressor(scorer=scorer, store=memory)
    by_logic = LogicRetriever(source=memory, k=3).invoke(QUERY)
    by_words = memory.similarity_search(QUERY, k=3)

    def account(documents: list[Document], query: str) -> dict[str, Any]:
        return dict(compressor.compress_documents(documents, query)[0].metadata["lcse"])

    assert (account(by_logic, QUERY)["fetched"], account(by_logic, QUERY)["notes"]) == ("logic", [])
    assert account(by_logic, "no dog")["fetched"] == "words"
    assert "fetched by the words" in account(by_words, QUERY)["notes"][0]
    assert account([*by_logic, *by_words], QUERY)["fetched"] == "words"
