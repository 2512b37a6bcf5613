"""Where a node's picture and vector are found, and where they may be read from."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import BaseNode, Document, ImageNode, MediaResource, Node, NodeWithScore, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.vector_stores.qdrant import QdrantVectorStore
from llama_index_lcse import METADATA_KEY, LogicPostprocessor
from qdrant_client import QdrantClient

from lcse_plugins import ImageAccess
from lcse_plugins.errors import InvalidOption
from tests.llama_index.painted import PaintedEncoder, SilentStore, painted

DOG = painted("dog")
DOG64 = base64.b64encode(DOG).decode()


@pytest.fixture
def dog(tmp_path: Path) -> Path:
    path = tmp_path / "animal.png"
    path.write_bytes(DOG)
    return path


def similarity(node: BaseNode, encoder: PaintedEncoder, **options: Any) -> float | None:
    """How much of a dog is seen in a node, None when nothing is."""
    postprocessor = LogicPostprocessor(scorer=encoder, **options)
    (result,) = postprocessor.postprocess_nodes([NodeWithScore(node=node)], query_str="dog")
    told = result.metadata.get(METADATA_KEY, {})
    return round(float(told["score"]), 5) if "score" in told else None


def test_a_picture_is_found_wherever_a_node_keeps_it(dog: Path, encoder: PaintedEncoder) -> None:
    for node in (
        ImageNode(image=DOG64),
        ImageNode(image=f"data:image/png;base64,{DOG64}"),
        ImageNode(image_path=str(dog)),
        ImageNode(image_url=dog.as_uri()),
        ImageNode(metadata={"file_path": str(dog)}),
        Document(image_resource=MediaResource(data=DOG)),
        Document(image_resource=MediaResource(path=dog)),
        Node(image_resource=MediaResource(data=DOG64.encode())),
        TextNode(text="a caption", metadata={"file_path": str(dog)}),
        TextNode(text="a caption", metadata={"image_url": dog.as_uri()}),
        TextNode(text="a caption", metadata={"image": DOG64}),
        # of several places the one that can be read
        ImageNode(image_path="moved/away.png", image=DOG64),
        ImageNode(image_path="moved/away.png", metadata={"file_path": str(dog)}),
        TextNode(text="a caption", metadata={"image": "animal.png", "source": str(dog)}),
    ):
        assert similarity(node, encoder) == 1.0


@pytest.mark.parametrize(
    "node",
    [
        TextNode(text="a dog", metadata={"file_path": "dogs.pdf"}),
        TextNode(text="a dog", metadata={"file_path": 7}),
        TextNode(text="a dog", embedding=[1.0] * 64),
        ImageNode(text="a dog"),
        ImageNode(image="!"),
        ImageNode(image_path="no/such.png"),
        ImageNode(image_url="http://127.0.0.1:9/dog.png"),
        Document(image_resource=MediaResource(text="a dog")),
    ],
)
def test_a_node_without_a_readable_picture_is_missing(node: BaseNode, encoder: PaintedEncoder) -> None:
    assert similarity(node, encoder) is None


def test_its_own_embedding_is_preferred_if_it_can_be_one_of_the_encoders(dog: Path, encoder: PaintedEncoder) -> None:
    of_dog, of_cat = encoder.encode_texts(["dog", "cat"])
    seen = similarity(ImageNode(image_path=str(dog), embedding=of_cat.tolist()), encoder)
    assert seen == pytest.approx(float(np.dot(of_cat, of_dog)), abs=1e-5)
    assert encoder.images_encoded == 0
    for unusable in ([1.0] * 63, [0.0] * 64, [float("nan")] * 64, [1e39] * 64, []):
        assert similarity(ImageNode(image_path=str(dog), embedding=unusable), encoder) == 1.0
        assert similarity(ImageNode(embedding=unusable), encoder) is None


@pytest.mark.parametrize("kind", ["qdrant", "simple", "function"])
def test_vectors_are_looked_up_where_they_are_stored(
    kind: str, retrieved: list[NodeWithScore], image_nodes: list[ImageNode], encoder: PaintedEncoder
) -> None:
    known = {one.node_id: one.node for one in retrieved[:-1]}
    store: Any = lambda asked: {key: known[key].embedding for key in asked if key in known}  # noqa: E731
    if kind != "function":
        store = SimpleVectorStore() if kind == "simple" else QdrantVectorStore("x", client=QdrantClient(":memory:"))
        store.add(list(known.values()))
    postprocessor = LogicPostprocessor(scorer=encoder, vector_store=store)
    result = postprocessor.postprocess_nodes(
        [NodeWithScore(node=node) for node in image_nodes], query_str="umbrella and no person"
    )
    assert encoder.images_encoded == 1  # the one the store does not know
    expected = LogicPostprocessor(scorer=encoder).postprocess_nodes(retrieved, query_str="umbrella and no person")
    assert [node.node_id for node in result] == [node.node_id for node in expected]
    assert [node.score for node in result] == pytest.approx([node.score for node in expected], abs=1e-6)


def test_a_named_store_that_gives_nothing_back_is_refused(encoder: PaintedEncoder) -> None:
    with pytest.raises(InvalidOption, match="a function from node ids"):
        similarity(ImageNode(), encoder, vector_store=SilentStore("images", client=QdrantClient(":memory:")))


def test_paths_can_be_confined(dog: Path, encoder: PaintedEncoder) -> None:
    inside, outside = (ImageAccess(root=str(dog.parent / part)) for part in ("", "elsewhere"))
    assert similarity(ImageNode(image_path=dog.name), encoder, image_access=inside) == 1.0
    assert similarity(ImageNode(image_path=str(dog)), encoder, image_access=outside) is None
    assert similarity(TextNode(metadata={"file_path": str(dog)}), encoder, image_access=outside) is None


def test_urls_are_fetched_only_if_allowed_and_once(encoder: PaintedEncoder) -> None:
    url, fetched = "https://pictures.example/dog.png", list[str]()

    def fetch(asked: str) -> bytes:
        fetched.append(asked)
        return DOG

    node = Document(image_resource=MediaResource(url=url))  # type: ignore[arg-type]
    assert similarity(node, encoder) is None
    postprocessor = LogicPostprocessor(scorer=encoder, image_access=ImageAccess(allow_urls=True, fetch=fetch))
    for query in ("dog", "no dog"):
        (found,) = postprocessor.postprocess_nodes([NodeWithScore(node=node)], query_str=query)
        assert "missing" not in found.metadata[METADATA_KEY]
    assert fetched == [url]
