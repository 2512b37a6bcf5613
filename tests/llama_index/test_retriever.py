from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices import MultiModalVectorStoreIndex
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.llms import MockLLM
from llama_index.core.schema import ImageDocument, ImageNode, NodeWithScore, QueryBundle, TextNode
from llama_index_lcse import METADATA_KEY, EncoderEmbedding, LlamaIndexParser, LogicPostprocessor, LogicRetriever
from llama_index_lcse.retriever import CandidateSearch

from lcse_plugins import Candidate, LogicScorer
from lcse_plugins.errors import InvalidCandidate, InvalidOption, QueryError
from lcse_plugins.testing import ToyEncoder
from tests.llama_index.painted import GALLERY, PaintedEncoder, painted


@pytest.fixture
def index(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> VectorStoreIndex:
    return VectorStoreIndex([node.node for node in retrieved], embed_model=EncoderEmbedding(encoder=encoder))


@pytest.fixture
def mixed(image_nodes: list[ImageNode], encoder: PaintedEncoder) -> MultiModalVectorStoreIndex:
    return MultiModalVectorStoreIndex(
        [*image_nodes, TextNode(text="dogs bark"), TextNode(text="dogs run")],
        embed_model=MockEmbedding(embed_dim=8),
        image_embed_model=EncoderEmbedding(encoder=encoder),
    )


def shown(nodes: list[NodeWithScore]) -> list[str]:
    return [node.text for node in nodes]


def best(query: str, limit: int) -> list[str]:
    encoder = PaintedEncoder()
    vectors = encoder.encode_images(painted(words) for words in GALLERY)
    candidates = [Candidate(words, vector) for words, vector in zip(GALLERY, vectors, strict=True)]
    return [str(item.id) for item in LogicScorer(encoder).rank(query, candidates, limit=limit)]


QUERIES = ["no dog", "neither a dog nor a person", "umbrella but no person", "a dog or a car", "umbrella"]


@pytest.mark.parametrize("query", QUERIES)
def test_a_short_search_by_logic_finds_the_best_of_all(
    query: str, index: VectorStoreIndex, encoder: PaintedEncoder
) -> None:
    retriever = LogicRetriever(index.as_retriever(similarity_top_k=4), LogicPostprocessor(encoder=encoder, top_n=2))
    result = retriever.retrieve(query)
    assert shown(result) == best(query, 2)
    assert result[0].metadata[METADATA_KEY]["notes"] == []
    assert encoder.images_encoded == 0  # the vectors came from the index


@pytest.mark.parametrize("query", QUERIES)
async def test_asynchronously_too(query: str, index: VectorStoreIndex, encoder: PaintedEncoder) -> None:
    retriever = LogicRetriever(index.as_retriever(similarity_top_k=4), LogicPostprocessor(encoder=encoder, top_n=2))
    assert await retriever.aretrieve(query) == retriever.retrieve(query)


def test_an_index_of_the_words_beside_the_pictures_is_refused(folder: Path, encoder: PaintedEncoder) -> None:
    named = [
        ImageDocument(image_path=str(path), metadata={"file_name": path.name}) for path in sorted(folder.iterdir())
    ]
    index = VectorStoreIndex.from_documents(named, embed_model=EncoderEmbedding(encoder=encoder))
    base = index.as_retriever(similarity_top_k=4)
    with pytest.raises(InvalidCandidate, match=r"file_name: .*not of its picture; build a MultiModalVectorStoreIndex"):
        LogicRetriever(base, LogicPostprocessor(encoder=encoder)).retrieve("no dog")
    looked_up = LogicPostprocessor(encoder=encoder, vector_store=index.vector_store)
    with pytest.raises(InvalidCandidate, match="not of its picture"):
        looked_up.postprocess_nodes(base.retrieve("dog"), query_str="no dog")
    read = LogicPostprocessor(encoder=encoder).postprocess_nodes(base.retrieve("dog"), query_str="no dog")
    assert "reason" in read[0].metadata[METADATA_KEY]


def test_a_text_among_pictures_counts_as_one_without_a_picture(
    index: VectorStoreIndex, folder: Path, encoder: PaintedEncoder
) -> None:
    index.insert_nodes([ImageNode(text="dog cat", image_path=str(folder / "02.png"))])  # embedded by its words
    postprocessor = LogicPostprocessor(encoder=encoder, top_n=3)
    retriever = LogicRetriever(index.as_retriever(similarity_top_k=13), postprocessor)
    for query in ("a dog and a cat", "a street and no car", "a dog and a cat"):
        found = retriever.retrieve(query)
        assert "dog cat" not in shown(found)
        assert len(found) == 3


def test_one_postprocessor_over_two_indexes_looks_at_both(
    index: VectorStoreIndex, folder: Path, encoder: PaintedEncoder
) -> None:
    named = [ImageNode(text=f"photograph {path.stem}", image_path=str(path)) for path in sorted(folder.iterdir())]
    by_words = VectorStoreIndex(named, embed_model=EncoderEmbedding(encoder=encoder))
    postprocessor = LogicPostprocessor(encoder=encoder, top_n=3)
    assert LogicRetriever(index.as_retriever(similarity_top_k=4), postprocessor).retrieve("no dog")
    with pytest.raises(InvalidCandidate, match="not of its picture"):
        LogicRetriever(by_words.as_retriever(similarity_top_k=4), postprocessor).retrieve("no dog")


def test_what_is_no_retriever_or_no_postprocessor(index: VectorStoreIndex) -> None:
    mistakes: list[tuple[Any, Any]] = [(index, LogicPostprocessor()), (index.as_retriever(), 3)]
    for base, postprocessor in mistakes:
        with pytest.raises(InvalidOption, match=r"LogicRetriever\(index.as_retriever"):
            LogicRetriever(base, postprocessor)


def test_words_fetch_what_a_negation_excludes(index: VectorStoreIndex, encoder: PaintedEncoder) -> None:
    base, postprocessor = index.as_retriever(similarity_top_k=3), LogicPostprocessor(encoder=encoder)
    by_words = LogicRetriever(base, postprocessor, candidates="words").retrieve("no dog")
    assert all("dog" in words for words in shown(by_words))
    assert "fetched by the words" in by_words[0].metadata[METADATA_KEY]["notes"][0]
    by_logic = LogicRetriever(base, postprocessor, candidates="logic").retrieve("no dog")
    assert not any("dog" in words for words in shown(by_logic))


@pytest.mark.parametrize("query", ["no dog", "a dog or a car", "umbrella but no person"])
async def test_a_multi_modal_index_gives_images_by_logic_and_texts_by_words(
    query: str, mixed: MultiModalVectorStoreIndex, encoder: PaintedEncoder
) -> None:
    base = mixed.as_retriever(similarity_top_k=1, image_similarity_top_k=4)
    encoded = encoder.images_encoded
    retriever = LogicRetriever(base, LogicPostprocessor(encoder=encoder))
    result = retriever.retrieve(query)
    assert shown(result)[:2] == best(query, 2)
    assert [node.node.class_name() for node in result] == ["ImageNode"] * (len(result) - 1) + ["TextNode"]
    assert await retriever.aretrieve(query) == result
    assert encoder.images_encoded == encoded


async def test_an_embedding_given_for_the_images_is_not_used_for_the_texts(
    mixed: MultiModalVectorStoreIndex, encoder: PaintedEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = mixed.as_retriever(similarity_top_k=1, image_similarity_top_k=4)
    texts_by = base.text_retrieve  # searches with the embedding given, unlike its asynchronous twin

    async def later(bundle: QueryBundle) -> list[NodeWithScore]:
        return texts_by(bundle)

    monkeypatch.setattr(base, "atext_retrieve", later)
    retriever = LogicRetriever(base, LogicPostprocessor(encoder=encoder))
    given = encoder.encode_texts(["dog"])[0].tolist()
    expected = retriever.retrieve("no dog")
    assert retriever.retrieve(QueryBundle("no dog", embedding=given)) == expected
    assert await retriever.aretrieve(QueryBundle("no dog", embedding=given)) == expected


class Recorder(BaseRetriever):
    """Gives the same nodes for every query, and remembers how it was asked."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        super().__init__()
        self.nodes, self.asked = nodes, list[QueryBundle]()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle)
        query_bundle.embedding = query_bundle.embedding or [1.0]  # as the retrievers of LlamaIndex do
        return self.nodes


def test_auto_searches_by_logic_only_where_the_index_is_known_to_fit(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> None:
    postprocessor = LogicPostprocessor(encoder=encoder)

    def fetched_by_words(base: BaseRetriever) -> bool:
        account = LogicRetriever(base, postprocessor).retrieve("no dog")[0].metadata[METADATA_KEY]
        return bool(account["notes"])

    nodes = [node.node for node in retrieved]
    same = VectorStoreIndex(nodes, embed_model=EncoderEmbedding(encoder=PaintedEncoder()))
    other = VectorStoreIndex(nodes, embed_model=EncoderEmbedding(encoder=ToyEncoder({"dog": [1.0] * 64})))
    unknown = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=64))
    assert not fetched_by_words(same.as_retriever())
    assert fetched_by_words(other.as_retriever())
    assert fetched_by_words(unknown.as_retriever())
    assert fetched_by_words(Recorder(retrieved))


def test_by_logic_any_retriever_is_asked_with_each_search_vector(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> None:
    base, postprocessor = Recorder(retrieved), LogicPostprocessor(encoder=encoder)
    result = LogicRetriever(base, postprocessor, candidates="logic").retrieve("a dog or a car")
    vectors = postprocessor.scorer.encode("a dog or a car").plan.search_vectors
    assert len(vectors) > 1
    assert [bundle.embedding for bundle in base.asked] == vectors.tolist()
    assert {bundle.query_str for bundle in base.asked} == {"a dog or a car"}
    assert len(result) == len(GALLERY)  # found by each search, returned once


@pytest.mark.parametrize("candidates", ["words", "logic"])
def test_what_was_given_stays_as_it_was(
    candidates: str, retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> None:
    bundle, before = QueryBundle("no dog"), copy.deepcopy(retrieved)
    LogicRetriever(Recorder(retrieved), LogicPostprocessor(encoder=encoder), candidates=candidates).retrieve(bundle)  # type: ignore[arg-type]
    assert bundle == QueryBundle("no dog")
    assert retrieved == before


@pytest.mark.parametrize("candidates", ["words", "logic"])
async def test_nothing_found_is_nothing_returned(
    candidates: str, encoder: PaintedEncoder, announced: list[BaseEvent]
) -> None:
    retriever = LogicRetriever(Recorder([]), LogicPostprocessor(encoder=encoder), candidates=candidates)  # type: ignore[arg-type]
    assert retriever.retrieve("no dog") == await retriever.aretrieve("no dog") == []
    assert len(announced) == 4


def test_what_cannot_be_used_is_refused(index: VectorStoreIndex, encoder: PaintedEncoder) -> None:
    with pytest.raises(InvalidOption, match="auto, logic, words"):
        LogicRetriever(index.as_retriever(), LogicPostprocessor(), candidates="plan")  # type: ignore[arg-type]


@pytest.mark.parametrize("candidates", ["auto", "logic", "words"])
@pytest.mark.parametrize("blank", ["", " "])
async def test_a_blank_query_is_refused_before_any_search(
    blank: str, candidates: CandidateSearch, index: VectorStoreIndex, encoder: PaintedEncoder
) -> None:
    retriever = LogicRetriever(index.as_retriever(), LogicPostprocessor(encoder=encoder), candidates=candidates)
    with pytest.raises(QueryError, match="blank"):
        retriever.retrieve(blank)
    with pytest.raises(QueryError, match="blank"):
        await retriever.aretrieve(blank)


async def test_what_was_fetched_by_logic_is_not_said_to_be_fetched_by_words(
    index: VectorStoreIndex, encoder: PaintedEncoder
) -> None:
    postprocessor = LogicPostprocessor(encoder=encoder)
    found = LogicRetriever(index.as_retriever(similarity_top_k=4), postprocessor).retrieve("no dog")
    again = postprocessor.postprocess_nodes(found, query_str="no dog")
    assert again == await postprocessor.apostprocess_nodes(found, query_str="no dog")
    account = again[0].metadata[METADATA_KEY]
    assert (account["fetched"], account["notes"]) == ("logic", [])
    other = postprocessor.postprocess_nodes(found, query_str="no cat")[0].metadata[METADATA_KEY]
    assert other["fetched"] == "words"
    assert "fetched by the words" in other["notes"][0]


def test_the_prompts_of_the_parser_are_open(index: VectorStoreIndex) -> None:
    retriever = LogicRetriever(index.as_retriever(), LogicPostprocessor(parser=LlamaIndexParser(MockLLM())))
    assert set(retriever.get_prompts()) == {"parser:query_prompt", "parser:repair_prompt"}


async def test_a_picture_that_words_fetched_is_not_said_to_be_fetched_by_logic(
    image_nodes: list[ImageNode], folder: Path, encoder: PaintedEncoder
) -> None:
    page = TextNode(text="a page", metadata={"image_path": str(folder / "11.png")})
    index = MultiModalVectorStoreIndex(
        [*image_nodes, page, TextNode(text="dogs bark")],
        embed_model=MockEmbedding(embed_dim=8),
        image_embed_model=EncoderEmbedding(encoder=encoder),
    )
    base = index.as_retriever(similarity_top_k=20, image_similarity_top_k=4)
    retriever = LogicRetriever(base, LogicPostprocessor(encoder=encoder))
    found = retriever.retrieve("no dog")
    assert found == await retriever.aretrieve("no dog")
    ways = {node.text: node.metadata[METADATA_KEY]["fetched"] for node in found}
    assert all(ways[words] == "logic" for words in best("no dog", 2))
    assert {ways["a page"], ways["dog"], ways["dogs bark"]} == {"words"}
    assert not found[0].metadata[METADATA_KEY]["notes"]


def test_the_warning_says_what_lets_an_index_be_searched_by_logic(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> None:
    found = LogicRetriever(Recorder(retrieved), LogicPostprocessor(encoder=encoder)).retrieve("no dog")
    (note,) = found[0].metadata[METADATA_KEY]["notes"]
    assert note.endswith("LogicRetriever fetches by its logic, from an index known to hold vectors of the same encoder")


async def test_an_index_of_texts_alone_gives_texts(encoder: PaintedEncoder) -> None:
    index = MultiModalVectorStoreIndex(
        [TextNode(text="dogs bark")],
        embed_model=MockEmbedding(embed_dim=8),
        image_embed_model=EncoderEmbedding(encoder=encoder),
        is_image_vector_store_empty=True,
    )
    retriever = LogicRetriever(index.as_retriever(), LogicPostprocessor(encoder=encoder))
    assert shown(retriever.retrieve("no dog")) == shown(await retriever.aretrieve("no dog")) == ["dogs bark"]
    assert retriever.retrieve("no dog")[0].metadata[METADATA_KEY]["fetched"] == "words"
