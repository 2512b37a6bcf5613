from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    MediaResource,
    Node,
    NodeWithScore,
    TextNode,
)
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.vector_stores.qdrant import QdrantVectorStore
from llama_index_lcse import METADATA_KEY, LogicPostprocessor
from qdrant_client import QdrantClient

from lcse_plugins import ImageAccess
from lcse_plugins.errors import InvalidOption
from tests.llama_index.painted import PaintedEncoder, painted

DOG = painted("dog")
DOG64 = base64.b64encode(DOG).decode()


@pytest.fixture
def dog(tmp_path: Path) -> Path:
    path = tmp_path / "animal.png"
    path.write_bytes(DOG)
    return path


def similarity(node: BaseNode, encoder: PaintedEncoder, **options: object) -> float | None:
    """How much of a dog is seen in a node, None when nothing is."""
    postprocessor = LogicPostprocessor(encoder=encoder, **options)  # type: ignore[arg-type]
    result = postprocessor.postprocess_nodes([NodeWithScore(node=node)], query_str="dog")
    account = result[0].metadata[METADATA_KEY]
    return None if "missing" in account else float(account["score"])


def test_a_picture_is_found_wherever_a_node_keeps_it(dog: Path, encoder: PaintedEncoder) -> None:
    nodes = [
        ImageNode(image=DOG64),
        ImageNode(image=f"data:image/png;base64,{DOG64}"),
        ImageNode(image_path=str(dog)),
        ImageNode(image_url=dog.as_uri()),
        ImageNode(metadata={"file_path": str(dog)}),
        ImageDocument(image=DOG64),
        ImageDocument(image_path=str(dog)),
        Document(image_resource=MediaResource(data=DOG)),
        Document(image_resource=MediaResource(path=dog)),
        Node(image_resource=MediaResource(data=DOG64.encode())),
        Document(text="a caption", metadata={"file_path": str(dog)}),
        TextNode(text="a caption", metadata={"file_path": str(dog)}),
        TextNode(text="a caption", metadata={"image_path": str(dog)}),
        TextNode(text="a caption", metadata={"image_url": dog.as_uri()}),
        TextNode(text="a caption", metadata={"image": DOG64}),
        TextNode(text="a caption", metadata={"source": str(dog)}),
    ]
    for node in nodes:
        assert similarity(node, encoder) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    "node",
    [
        TextNode(text="a dog"),
        TextNode(text="a dog", metadata={"file_path": "dogs.pdf"}),
        TextNode(text="a dog", metadata={"file_path": 7}),
        TextNode(text="a dog", embedding=[1.0] * 64),
        Document(text="a dog"),
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
    cat = encoder.encode_texts(["cat"])[0].tolist()
    assert similarity(ImageNode(image_path=str(dog), embedding=cat), encoder) == pytest.approx(
        float(np.dot(cat, encoder.encode_texts(["dog"])[0])), abs=1e-6
    )
    assert encoder.images_encoded == 0
    for unusable in ([1.0] * 63, [0.0] * 64, [float("nan")] * 64, [1e39] * 64, []):
        assert similarity(ImageNode(image_path=str(dog), embedding=unusable), encoder) == pytest.approx(1.0, abs=1e-6)
        assert similarity(ImageNode(embedding=unusable), encoder) is None


def test_a_picture_need_not_be_there_if_its_vector_is(encoder: PaintedEncoder) -> None:
    vector = (3 * encoder.encode_texts(["dog"])[0]).tolist()  # of any length: vectors are normalised
    assert similarity(ImageNode(image_path="moved/away.png", embedding=vector), encoder) == pytest.approx(1.0, abs=1e-6)


def qdrant(nodes: Sequence[BaseNode]) -> QdrantVectorStore:
    store = QdrantVectorStore(collection_name="images", client=QdrantClient(":memory:"))
    store.add(list(nodes))
    return store


def simple(nodes: Sequence[BaseNode]) -> SimpleVectorStore:
    store = SimpleVectorStore()
    store.add(list(nodes))
    return store


def function(nodes: Sequence[BaseNode]) -> object:
    vectors = {node.node_id: node.get_embedding() for node in nodes}

    def look_up(node_ids: Sequence[str]) -> Mapping[str, Sequence[float]]:
        return {node_id: vectors[node_id] for node_id in node_ids if node_id in vectors}

    return look_up


@pytest.mark.parametrize("store", [qdrant, simple, function])
def test_vectors_are_looked_up_where_they_are_stored(
    store: object, retrieved: list[NodeWithScore], image_nodes: list[ImageNode], encoder: PaintedEncoder
) -> None:
    stored = store([node.node for node in retrieved[:-1]])  # type: ignore[operator]
    bare = [NodeWithScore(node=node) for node in image_nodes]
    postprocessor = LogicPostprocessor(encoder=encoder, vector_store=stored)
    result = postprocessor.postprocess_nodes(bare, query_str="umbrella and no person")
    assert encoder.images_encoded == 1  # the one the store does not know
    expected = LogicPostprocessor(encoder=encoder).postprocess_nodes(retrieved, query_str="umbrella and no person")
    assert [node.node_id for node in result] == [node.node_id for node in expected]
    assert [node.score for node in result] == pytest.approx([node.score for node in expected], abs=1e-6)


class SilentStore(QdrantVectorStore):
    def get_nodes(self, *_: object, **__: object) -> list[BaseNode]:
        raise NotImplementedError


def test_a_store_that_gives_nothing_back_is_refused(image_nodes: list[ImageNode], encoder: PaintedEncoder) -> None:
    silent = SilentStore(collection_name="images", client=QdrantClient(":memory:"))  # type: ignore[call-arg]
    with pytest.raises(InvalidOption, match="pass a function"):
        LogicPostprocessor(encoder=encoder, vector_store=silent).postprocess_nodes(
            [NodeWithScore(node=image_nodes[0])], query_str="dog"
        )


def test_paths_can_be_confined(dog: Path, encoder: PaintedEncoder) -> None:
    inside = ImageAccess(root=str(dog.parent))
    outside = ImageAccess(root=str(dog.parent / "elsewhere"))
    assert similarity(ImageNode(image_path=dog.name), encoder, image_access=inside) == pytest.approx(1.0, abs=1e-6)
    assert similarity(ImageNode(image_path=str(dog)), encoder, image_access=outside) is None
    assert similarity(TextNode(metadata={"file_path": str(dog)}), encoder, image_access=outside) is None


@pytest.fixture
def fetches() -> list[str]:
    return []


@pytest.fixture
def url(fetches: list[str]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fetches.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(DOG)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/dog.png"
    server.shutdown()
    server.server_close()


def test_urls_are_fetched_only_if_allowed(url: str, encoder: PaintedEncoder) -> None:
    allowed = ImageAccess(allow_urls=True, allow_private_addresses=True)
    for node in (ImageNode(image_url=url), Document(image_resource=MediaResource(url=url))):  # type: ignore[arg-type]
        assert similarity(node, encoder, image_access=allowed) == pytest.approx(1.0, abs=1e-6)
        assert similarity(node, encoder, image_access=ImageAccess(allow_urls=True)) is None
        assert similarity(node, encoder) is None


def test_a_second_query_fetches_no_url(url: str, fetches: list[str], encoder: PaintedEncoder) -> None:
    allowed = ImageAccess(allow_urls=True, allow_private_addresses=True)
    postprocessor = LogicPostprocessor(encoder=encoder, image_access=allowed)
    node = NodeWithScore(node=ImageNode(image_url=url))
    first, second = (postprocessor.postprocess_nodes([node], query_str="dog") for _ in range(2))
    assert first == second
    assert fetches == ["/dog.png"]
    postprocessor.image_access = ImageAccess()
    assert "missing" in postprocessor.postprocess_nodes([node], query_str="dog")[0].metadata[METADATA_KEY]
