"""A ranked node is the same node to LlamaIndex, which tells nodes apart by their hash when it fuses results."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from llama_index_lcse import METADATA_KEY, EncoderEmbedding, LogicPostprocessor, LogicRetriever

from tests.llama_index.painted import GALLERY, PaintedEncoder

QUERY = "umbrella and no person"
KINDS: list[Callable[..., BaseNode]] = [
    lambda path, **fields: TextNode(metadata={"file_path": path}, **fields),
    lambda path, **fields: IndexNode(index_id="x", extra_info={"file_path": path}, **fields),
    lambda path, **fields: ImageNode(image_path=path, metadata={"kept": 1}, **fields),
    lambda path, **fields: ImageDocument(image_path=path, metadata={"kept": 1}, **fields),
    lambda path, **fields: Document(metadata={"file_path": path}, **fields),
    lambda path, text, **fields: Node(image_resource=MediaResource(path=path), **fields),
]
kinds = pytest.mark.parametrize("kind", KINDS, ids=["text", "index", "image", "image document", "document", "node"])


class Fusion(QueryFusionRetriever):
    """Asks the same in three ways."""

    def _get_queries(self, original_query: str) -> list[QueryBundle]:
        return [QueryBundle("umbrella without person"), QueryBundle("umbrella, but no person")]


def gallery(kind: Callable[..., BaseNode], folder: Path) -> list[BaseNode]:
    paths = [str(folder / f"{place:02}.png") for place in range(len(GALLERY))]
    vectors = PaintedEncoder().encode_images(paths)
    return [
        kind(path, id_=str(place), text=GALLERY[place], embedding=vector.tolist())
        for place, (path, vector) in enumerate(zip(paths, vectors, strict=True))
    ]


def fused(retrievers: list[BaseRetriever], mode: FUSION_MODES, count: int) -> list[str]:
    fusion = Fusion(retrievers, mode=mode, num_queries=3, similarity_top_k=count, use_async=False, llm=MockLLM())
    return [node.node_id for node in fusion.retrieve(QUERY)]


@pytest.mark.parametrize("mode", [FUSION_MODES.RECIPROCAL_RANK, FUSION_MODES.SIMPLE])
@pytest.mark.parametrize("kind", [KINDS[0], KINDS[3]], ids=["text", "image document"])
def test_what_several_queries_find_is_fused(kind: Callable[..., BaseNode], mode: FUSION_MODES, folder: Path) -> None:
    encoder = PaintedEncoder()
    index = VectorStoreIndex(gallery(kind, folder), embed_model=EncoderEmbedding(encoder=encoder))
    plain = index.as_retriever(similarity_top_k=12)
    logic = LogicRetriever(plain, LogicPostprocessor(encoder=encoder, top_n=6))
    alone = [node.node_id for node in logic.retrieve(QUERY)]
    assert fused([logic], mode, 6)[:2] == alone[:2]
    assert len(set(fused([logic], mode, 6))) == 6
    assert sorted(fused([logic, plain], mode, 12)) == sorted(map(str, range(12)))


@kinds
@pytest.mark.parametrize("options", [{}, {"keep_retrieval_score": True}])
def test_a_ranked_node_is_the_same_node(kind: Callable[..., BaseNode], options: dict[str, Any], folder: Path) -> None:
    given = gallery(kind, folder)[0]
    reranker = LogicPostprocessor(encoder=PaintedEncoder(), **options)
    once = reranker.postprocess_nodes([NodeWithScore(node=given, score=0.5)], query_str=QUERY)
    twice = reranker.postprocess_nodes(once, query_str="no person")
    for node in (once[0].node, twice[0].node):
        assert METADATA_KEY in node.metadata
        assert isinstance(node, type(given))
        for made in (node, copy.copy(node), copy.deepcopy(node), pickle.loads(pickle.dumps(node))):
            assert made == node
            assert made.hash == given.hash
        written = type(given).from_dict(node.to_dict())
        assert written.metadata == node.metadata
        assert node.class_name() == given.class_name()
        assert node.as_related_node_info().hash == given.hash


def test_the_hash_of_a_ranked_node_sees_other_changes(folder: Path) -> None:
    given = gallery(KINDS[0], folder)[0]
    (ranked,) = LogicPostprocessor(encoder=PaintedEncoder()).postprocess_nodes([NodeWithScore(node=given)], None, QUERY)
    ranked.node.set_content("something else")
    assert ranked.node.hash != given.hash
