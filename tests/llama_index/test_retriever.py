"""Candidates are fetched by logic wherever the vectors of an index fit; elsewhere the log says what to do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices import MultiModalVectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from llama_index.vector_stores.qdrant import QdrantVectorStore
from llama_index_lcse import METADATA_KEY, EmbeddingEncoder, LcseEmbedding, LogicRetriever
from qdrant_client import AsyncQdrantClient, QdrantClient

from lcse_plugins import Calibration, LogicScorer
from lcse_plugins.errors import InvalidCandidate, InvalidOption, QueryError
from lcse_plugins.testing import ToyEncoder
from tests.llama_index.painted import GALLERY, LongEmbedding, PaintedEncoder, SilentStore, core_scores, shown


@pytest.fixture
def unknown(retrieved: list[NodeWithScore]) -> VectorStoreIndex:
    """An index whose nodes were given the right vectors, and whose embedding class knows nothing of them."""
    return VectorStoreIndex([node.node for node in retrieved], embed_model=MockEmbedding(embed_dim=64))


@pytest.fixture
def mixed(image_nodes: list[ImageNode], encoder: PaintedEncoder) -> MultiModalVectorStoreIndex:
    return MultiModalVectorStoreIndex(
        [*image_nodes, TextNode(text="dogs bark"), TextNode(text="dogs run")],
        embed_model=MockEmbedding(embed_dim=8),
        image_embed_model=LcseEmbedding(scorer=encoder),
    )


def ways(nodes: list[NodeWithScore]) -> set[str]:
    return {node.metadata[METADATA_KEY]["fetched"] for node in nodes}


def best(query: str, limit: int) -> list[str]:
    return list(core_scores(query))[:limit]


@pytest.mark.parametrize("query", ["no dog", "a dog or a car", "umbrella"])
async def test_a_short_search_by_logic_finds_the_best_of_all(
    query: str, index: VectorStoreIndex, encoder: PaintedEncoder
) -> None:
    retriever = LogicRetriever.from_index(index, top_n=2, similarity_top_k=4)
    assert retriever.postprocessor.logic_scorer.encoder.encoder_id == encoder.encoder_id  # that of the index
    result = retriever.retrieve(query)
    assert shown(result) == best(query, 2)
    assert result[0].metadata[METADATA_KEY]["notes"] == []
    assert await retriever.aretrieve(query) == result
    assert encoder.images_encoded == 0  # the vectors came from the index


async def test_a_query_engine_over_a_store_that_is_only_awaited(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> None:
    client = AsyncQdrantClient(":memory:")
    storage = StorageContext.from_defaults(vector_store=QdrantVectorStore("images", aclient=client))
    index = VectorStoreIndex([], embed_model=LcseEmbedding(scorer=encoder), storage_context=storage)
    await index.ainsert_nodes([node.node for node in retrieved])
    engine = RetrieverQueryEngine.from_args(LogicRetriever.from_index(index, top_n=3), llm=MockLLM())
    assert shown((await engine.aquery("no dog")).source_nodes) == best("no dog", 3)
    assert encoder.images_encoded == 0
    await client.close()


async def test_what_only_computes_leaves_the_event_loop_free(
    index: VectorStoreIndex, retrieved: list[NodeWithScore], encoder: PaintedEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[threading.Thread] = []
    query = SimpleVectorStore.query

    def recorded(*given: Any, **options: Any) -> Any:
        searched.append(threading.current_thread())
        return query(*given, **options)

    monkeypatch.setattr(SimpleVectorStore, "query", recorded)
    await LogicRetriever.from_index(index, top_n=3).aretrieve("no dog")
    other = Recorder(retrieved)
    await LogicRetriever(other, scorer=encoder).aretrieve("no dog")
    assert searched
    assert threading.main_thread() not in [*searched, *other.threads]


def test_words_fetch_what_a_negation_excludes(index: VectorStoreIndex) -> None:
    base = index.as_retriever(similarity_top_k=3)
    by_words = LogicRetriever(base, top_n=3, candidates="words").retrieve("no dog")
    assert all("dog" in words for words in shown(by_words))
    assert "(dog); LogicRetriever" in by_words[0].metadata[METADATA_KEY]["notes"][0]
    by_logic = LogicRetriever(base, top_n=3, candidates="logic").retrieve("no dog")
    assert not any("dog" in words for words in shown(by_logic))


def fusion(inner: BaseRetriever) -> QueryFusionRetriever:
    return QueryFusionRetriever([inner], num_queries=1, use_async=False, llm=MockLLM(), similarity_top_k=4)


@pytest.mark.parametrize("wrap", [lambda one: one, fusion, lambda one: fusion(fusion(one))])
async def test_vectors_that_fit_are_searched_by_logic_whoever_made_the_index(
    wrap: Callable[[BaseRetriever], BaseRetriever],
    unknown: VectorStoreIndex,
    encoder: PaintedEncoder,
    caplog: pytest.LogCaptureFixture,
) -> None:
    retriever = LogicRetriever(wrap(unknown.as_retriever(similarity_top_k=4)), scorer=encoder, top_n=3)
    for query in ("no dog", "no person"):
        for found in (await retriever.aretrieve(query), retriever.retrieve(query)):
            assert shown(found) == best(query, 3)
            assert ways(found) == {"logic"}
    assert encoder.images_encoded in (2, 3)  # looked at once, to tell whether they fit
    assert not caplog.records


def test_an_embedding_of_ones_own_fits_its_encoder(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    embedding = LongEmbedding()
    nodes = [
        ImageNode(text=shown, image_path=str(path), embedding=embedding.get_image_embedding(str(path)))
        for shown, path in zip(GALLERY, sorted(folder.iterdir()), strict=True)
    ]
    index = VectorStoreIndex(nodes, embed_model=embedding)
    known = PaintedEncoder().calibration
    given = LogicScorer(EmbeddingEncoder(embedding, calibration=Calibration(mu=known.mu, beta=known.beta)))
    found = LogicRetriever.from_index(index, scorer=given, top_n=3).retrieve("no dog")
    assert shown(found) == best("no dog", 3)
    by_itself = LogicRetriever.from_index(index, top_n=3)  # the preset for CLIP
    assert by_itself.postprocessor.logic_scorer.encoder.encoder_id == "llama-index:LongEmbedding:long"
    assert ways(by_itself.retrieve("no dog")) == {"logic"}
    assert not caplog.records


class Recorder(BaseRetriever):
    """Gives the same nodes for every query, and remembers where it was asked."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        super().__init__()
        self.nodes, self.threads = nodes, list[threading.Thread]()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.threads.append(threading.current_thread())
        query_bundle.embedding = query_bundle.embedding or [1.0]  # as the retrievers of LlamaIndex do
        return self.nodes


def test_where_vectors_do_not_fit_the_log_names_the_remedy_once(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    other = ToyEncoder(dimension=8)
    vectors = other.encode_images([node.text for node in retrieved]).tolist()
    nodes = [
        node.node.model_copy(update={"embedding": vector}) for node, vector in zip(retrieved, vectors, strict=True)
    ]
    short = VectorStoreIndex(nodes, embed_model=LcseEmbedding(scorer=other))
    for source in (short.as_retriever(similarity_top_k=12), Recorder(retrieved)):
        caplog.clear()
        retriever = LogicRetriever(source, scorer=encoder, top_n=3)
        for _ in range(2):
            found = retriever.retrieve("no dog")
            assert ways(found) == {"words"}
        said = [record.getMessage() for record in caplog.records if record.name == "llama_index_lcse.retriever"]
        assert len(said) == 1
        assert "LcseEmbedding" in said[0]
        assert "EmbeddingEncoder" in said[0]


def test_a_store_that_gives_no_vectors_back_is_told_of_once(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    store = SilentStore("images", client=QdrantClient(":memory:"))
    storage = StorageContext.from_defaults(vector_store=store)
    nodes = [node.node for node in retrieved]
    index = VectorStoreIndex(nodes, embed_model=LcseEmbedding(scorer=encoder), storage_context=storage)
    retriever = LogicRetriever.from_index(index, top_n=3)
    for query in ("no dog", "no person"):
        assert shown(retriever.retrieve(query)) == best(query, 3)
    assert sum("vectors cannot be read from the index" in one.getMessage() for one in caplog.records) == 1
    assert encoder.images_encoded <= len(GALLERY)


def test_fewer_candidates_than_results_is_told(index: VectorStoreIndex, caplog: pytest.LogCaptureFixture) -> None:
    LogicRetriever(index.as_retriever(), top_n=10)
    (record,) = caplog.records
    assert "top_n is 10, but the retriever fetches 2 candidates" in record.getMessage()
    assert "similarity_top_k=100" in record.getMessage()


def test_filters_of_an_index(index: VectorStoreIndex) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="place", value=5)])
    assert shown(LogicRetriever.from_index(index, top_n=3, filters=filters).retrieve("no dog")) == ["car street"]


def test_an_index_of_the_words_beside_the_pictures_is_refused(folder: Path, encoder: PaintedEncoder) -> None:
    named = [ImageNode(text=f"photograph {path.stem}", image_path=str(path)) for path in sorted(folder.iterdir())]
    index = VectorStoreIndex(named, embed_model=LcseEmbedding(scorer=encoder))
    with pytest.raises(InvalidCandidate, match=r"'photograph .*not of its picture; embed the pictures"):
        LogicRetriever.from_index(index, top_n=3).retrieve("no dog")
    assert LogicRetriever.from_index(index, top_n=3, check_vectors=False).retrieve("no dog")


def test_a_text_among_pictures_counts_as_one_without_a_picture(index: VectorStoreIndex, folder: Path) -> None:
    index.insert_nodes([ImageNode(text="dog cat", image_path=str(folder / "02.png"))])  # embedded by its words
    retriever = LogicRetriever.from_index(index, top_n=3)
    for query in ("a dog and a cat", "a street and no car", "a dog and a cat"):
        found = retriever.retrieve(query)
        assert "dog cat" not in shown(found)
        assert len(found) == 3


@pytest.mark.parametrize("query", ["no dog", "a dog or a car"])
async def test_a_multi_modal_index_gives_images_by_logic_and_texts_by_words(
    query: str, mixed: MultiModalVectorStoreIndex, encoder: PaintedEncoder
) -> None:
    encoded = encoder.images_encoded
    retriever = LogicRetriever(mixed.as_retriever(similarity_top_k=1, image_similarity_top_k=4), top_n=4)
    result = retriever.retrieve(query)
    assert shown(result)[:2] == best(query, 2)
    kept = LogicRetriever.from_index(mixed, top_n=4, keep_texts=1).retrieve(query)
    assert [node.node.class_name() for node in kept] == ["ImageNode"] * 3 + ["TextNode"]
    assert await retriever.aretrieve(query) == result
    assert await retriever.aretrieve(QueryBundle(query, embedding=[0.1] * 64)) == result
    assert encoder.images_encoded == encoded


@pytest.mark.parametrize("candidates", ["auto", "words", "logic"])
async def test_nothing_found_is_nothing_returned(candidates: Any, encoder: PaintedEncoder) -> None:
    retriever, bundle = LogicRetriever(Recorder([]), scorer=encoder, candidates=candidates), QueryBundle("no dog")
    assert retriever.retrieve(bundle) == await retriever.aretrieve(bundle) == []
    assert bundle == QueryBundle("no dog")  # stays as it was given
    with pytest.raises(QueryError, match="blank"):
        retriever.retrieve(" ")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"candidates": "plan"}, "unknown candidates .*auto, logic, words"),
        ({"top_n": 0}, "top_n is a positive whole number"),
        ({"filters": MetadataFilters(filters=[])}, "a retriever has its own filters"),
        ({"topn": 3}, "has no topn"),
    ],
)
def test_what_cannot_be_used_is_refused(options: dict[str, Any], told: str, index: VectorStoreIndex) -> None:
    with pytest.raises(InvalidOption, match=told):
        LogicRetriever(index.as_retriever(), **options)
    with pytest.raises(InvalidOption, match=r"not object; LogicRetriever\.from_index takes an index"):
        LogicRetriever(object())  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="takes a VectorStoreIndex, not VectorIndexRetriever"):
        LogicRetriever.from_index(index.as_retriever())  # type: ignore[arg-type]
