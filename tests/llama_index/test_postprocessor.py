"""Nodes that another retriever found: ordered as the core orders them, with reasons, whatever is wrong with some."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llama_index.core.instrumentation as instrument
import numpy as np
import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    MediaResource,
    MetadataMode,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.vector_stores.qdrant import QdrantVectorStore
from llama_index_lcse import METADATA_KEY, LcseEmbedding, LogicPostprocessor
from qdrant_client import QdrantClient

from lcse_plugins import Candidate, ImageAccess, LogicScorer
from lcse_plugins.errors import ImageError, InvalidOption, LcseError, QueryError, UnknownEncoder
from lcse_plugins.scoring.config import Mode
from tests.llama_index.painted import PaintedEncoder, SilentStore, painted, shown

QUERY = "umbrella and no person"
DOG64 = base64.b64encode(painted("dog")).decode()
Nodes = list[NodeWithScore]


@pytest.mark.parametrize(("query", "mode"), [(QUERY, "anchored"), (QUERY, "lcse"), ("a dog or a car", "holistic")])
async def test_order_scores_and_evidence_are_the_cores(
    query: str, mode: Mode, retrieved: Nodes, encoder: PaintedEncoder
) -> None:
    before = copy.deepcopy(retrieved)
    candidates = [
        Candidate(node.node_id, np.array(node.embedding, dtype=np.float32), payload=node) for node in retrieved
    ]
    expected = LogicScorer(encoder, mode=mode).rank(query, candidates)
    postprocessor = LogicPostprocessor(scorer=encoder, mode=mode)
    result = postprocessor.postprocess_nodes(retrieved, query_str=query)
    for node, item in zip(result, expected, strict=True):
        told, given = node.metadata[METADATA_KEY], item.candidate.payload
        assert node.node_id == given.node_id
        assert node.score == told["score"] == pytest.approx(item.score, abs=1e-6)
        assert (told["reason"], told["satisfied"], told["mode"]) == (item.reason, item.satisfies, mode)
        assert (told["evidence"], told["parse"]) == (item.to_json()["evidence"], expected.parse.to_json())
        assert json.loads(json.dumps(told)) == told
        for reader in (MetadataMode.LLM, MetadataMode.EMBED):
            assert node.get_content(reader) == given.get_content(reader)
    assert await postprocessor.apostprocess_nodes(retrieved, QueryBundle(query)) == result
    assert encoder.images_encoded == 0  # the nodes carried their vectors
    assert retrieved == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_n": True}, "top_n is a positive whole number, not True"),
        ({"min_truth": 1.5}, "min_truth"),
        ({"keep_texts": 3, "top_n": 3}, "keep_texts is less than top_n, 3"),
        ({"on_missing": "ignore"}, "on_missing"),
        ({"scorer": 7}, "scorer is a LogicScorer"),
        ({"mode": "modus"}, "mode"),
        ({"vector_store": VectorStoreIndex([], embed_model=MockEmbedding(8))}, "pass index.vector_store"),
        ({"image_access": {"timeout": -1}}, "timeout"),
    ],
)
def test_arguments_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        LogicPostprocessor(**options)


def mixed(retrieved: Nodes) -> Nodes:
    """Two texts, two pictures, and one that cannot be read; the scores they come with do not matter."""
    first = NodeWithScore(node=TextNode(text="first"), score=0.9)
    second = NodeWithScore(node=TextNode(text="second"), score=float("nan"))
    broken = NodeWithScore(node=ImageNode(text="broken", image="bm90IGEgcGljdHVyZQ=="), score=0.8)
    return [first, *retrieved[:2], broken, second]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["umbrella", "umbrella person", "first", "broken", "second"]),
        ({"top_n": 4}, ["umbrella", "umbrella person", "first", "broken"]),
        ({"top_n": 3, "keep_texts": 2}, ["umbrella", "first", "second"]),
        ({"top_n": 4, "keep_texts": 1, "on_missing": "drop"}, ["umbrella", "umbrella person", "first"]),
        ({"min_truth": 0.5}, ["umbrella", "first", "second"]),
        ({"min_truth": 0.5, "on_missing": "drop"}, ["umbrella"]),
    ],
)
def test_what_has_no_picture_follows_with_lower_scores_or_is_left_out(
    options: dict[str, Any], expected: list[str], retrieved: Nodes, encoder: PaintedEncoder
) -> None:
    nodes = mixed(retrieved)
    found = LogicPostprocessor(scorer=encoder, **options).postprocess_nodes(nodes, query_str=QUERY)
    assert shown(found) == expected
    for node in found:
        if node.text == "broken":
            assert "not a picture" in node.metadata[METADATA_KEY]["missing"]
        if node.text == "first":
            assert node.node is nodes[0].node  # a text is the same text, to whatever fuses results by their hash
    fusion = QueryFusionRetriever([], mode=FUSION_MODES.SIMPLE, llm=MockLLM(), retriever_weights=[])
    assert shown(fusion._simple_fusion({(QUERY, 0): found})) == expected  # ordered by score


def test_what_the_log_tells(
    retrieved: Nodes, image_nodes: list[ImageNode], encoder: PaintedEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    postprocessor = LogicPostprocessor(scorer=encoder)
    postprocessor.postprocess_nodes([*retrieved, mixed(retrieved)[0]], query_str=QUERY)
    assert not caplog.records
    for query in (QUERY, "no dog"):
        postprocessor.postprocess_nodes([NodeWithScore(node=node) for node in image_nodes], query_str=query)
    (said,) = [record.getMessage() for record in caplog.records]  # told once
    assert said.startswith("12 pictures were read and encoded")
    assert "vector_store=index.vector_store" in said
    postprocessor.postprocess_nodes(mixed(retrieved), query_str=QUERY)
    assert "1 of 5 results could not be ranked; the first: " in caplog.text
    found = postprocessor.postprocess_nodes(mixed(retrieved)[3:4], query_str=QUERY)
    assert [node.score for node in found] == [0.8]  # nothing was ranked, so it keeps its score


@pytest.mark.parametrize(
    "original",
    [
        LcseEmbedding(embed_batch_size=7),
        LogicPostprocessor(
            top_n=3,
            mode="lcse",
            image_access=ImageAccess(root="pictures", allow_urls=True),
            vector_store=dict.fromkeys,  # type: ignore[arg-type]
        ),
    ],
)
def test_it_comes_back_from_a_dict_from_json_and_from_a_pickle(original: Any) -> None:
    written = original.to_dict()
    assert (written["class_name"], written["scorer"]) == (type(original).__name__, "starter")
    assert "vector_store" not in written
    kind = type(original)
    for copied in (
        kind.from_dict(dict(written)),
        kind.from_json(original.to_json()),
        pickle.loads(pickle.dumps(original)),
        copy.deepcopy(original),
    ):
        assert copied.to_dict() == written
        assert copied.image_access == original.image_access


def test_an_object_is_written_by_its_name_and_does_not_come_back_from_it(encoder: PaintedEncoder) -> None:
    written = LogicPostprocessor(scorer=LogicScorer(encoder)).to_dict()
    assert written["scorer"] == encoder.encoder_id
    with pytest.raises(UnknownEncoder):
        LogicPostprocessor.from_dict(written)


class RerankRecord(BaseEventHandler):
    events: list[BaseEvent] = Field(default_factory=list)

    def handle(self, event: BaseEvent, **_: object) -> None:
        if isinstance(event, ReRankStartEvent | ReRankEndEvent):
            self.events.append(event)


@pytest.fixture
def announced() -> Iterator[list[Any]]:
    """Rerank events, in the order in which they were sent."""
    record = RerankRecord()
    root = instrument.get_dispatcher()  # type: ignore[attr-defined]
    root.add_event_handler(record)
    yield record.events
    root.event_handlers.remove(record)


def test_every_path_announces_a_start_and_an_end(
    retrieved: Nodes, encoder: PaintedEncoder, announced: list[Any]
) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    post = LogicPostprocessor(scorer=encoder, top_n=3, on_missing="raise", callback_manager=CallbackManager([debug]))
    runs: list[tuple[Nodes, str | None]] = [
        (retrieved, QUERY), ([], QUERY), (retrieved, None), (retrieved, " "), (mixed(retrieved)[3:], QUERY)
    ]  # fmt: skip
    failures = []
    for nodes, query in runs:
        try:
            post.postprocess_nodes(nodes, query_str=query)
        except LcseError as error:
            failures.append(type(error))
    assert failures == [QueryError, QueryError, ImageError]
    assert [type(event) for event in announced] == [ReRankStartEvent, ReRankEndEvent] * 5
    assert [len(event.nodes) for event in announced] == [12, 3, 0, 0, 12, 0, 12, 0, 2, 0]
    assert (announced[0].top_n, announced[0].model_name) == (3, encoder.encoder_id)
    assert [len(pair) for pair in debug.get_event_pairs(CBEventType.RERANKING)] == [2] * 5


def similarity(node: BaseNode, encoder: PaintedEncoder, **options: Any) -> float | None:
    """How much of a dog is seen in a node, None when nothing is."""
    postprocessor = LogicPostprocessor(scorer=encoder, **options)
    (result,) = postprocessor.postprocess_nodes([NodeWithScore(node=node)], query_str="dog")
    told = result.metadata.get(METADATA_KEY, {})
    return round(float(told["score"]), 5) if "score" in told else None


def test_a_picture_is_found_wherever_a_node_keeps_it(tmp_path: Path, encoder: PaintedEncoder) -> None:
    dog = tmp_path / "animal.png"
    dog.write_bytes(painted("dog"))
    for node in (
        ImageNode(image=DOG64),
        ImageNode(image_path=str(dog)),
        ImageNode(image_url=dog.as_uri()),
        Document(image_resource=MediaResource(data=painted("dog"))),
        Document(image_resource=MediaResource(path=dog)),
        TextNode(text="a caption", metadata={"file_path": str(dog)}),
        # of several places the one that can be read
        ImageNode(image_path="moved/away.png", image=DOG64),
        ImageNode(image_path="moved/away.png", metadata={"file_path": str(dog)}),
    ):
        assert similarity(node, encoder) == 1.0
    inside, outside = (ImageAccess(root=str(tmp_path / part)) for part in ("", "elsewhere"))
    assert similarity(ImageNode(image_path=dog.name), encoder, image_access=inside) == 1.0
    assert similarity(ImageNode(image_path=str(dog)), encoder, image_access=outside) is None


@pytest.mark.parametrize(
    "node",
    [
        TextNode(text="a dog", metadata={"file_path": "dogs.pdf"}),
        TextNode(text="a dog", embedding=[1.0] * 64),
        ImageNode(text="a dog"),
        ImageNode(image="!"),
        ImageNode(image_path="no/such.png"),
        ImageNode(image_url="http://127.0.0.1:9/dog.png"),
    ],
)
def test_a_node_without_a_readable_picture_is_missing(node: BaseNode, encoder: PaintedEncoder) -> None:
    assert similarity(node, encoder) is None


def test_its_own_embedding_is_preferred_if_it_can_be_one_of_the_encoders(encoder: PaintedEncoder) -> None:
    of_dog, of_cat = encoder.encode_texts(["dog", "cat"])
    seen = similarity(ImageNode(image=DOG64, embedding=of_cat.tolist()), encoder)
    assert seen == pytest.approx(float(np.dot(of_cat, of_dog)), abs=1e-5)
    assert encoder.images_encoded == 0
    for unusable in ([1.0] * 63, [0.0] * 64):
        assert similarity(ImageNode(image=DOG64, embedding=unusable), encoder) == 1.0
        assert similarity(ImageNode(embedding=unusable), encoder) is None


@pytest.mark.parametrize("kind", ["qdrant", "simple", "function"])
def test_vectors_are_looked_up_where_they_are_stored(
    kind: str, retrieved: Nodes, image_nodes: list[ImageNode], encoder: PaintedEncoder
) -> None:
    known = {one.node_id: one.node for one in retrieved[:-1]}
    store: Any = lambda asked: {key: known[key].embedding for key in asked if key in known}  # noqa: E731
    if kind != "function":
        store = SimpleVectorStore() if kind == "simple" else QdrantVectorStore("x", client=QdrantClient(":memory:"))
        store.add(list(known.values()))
    postprocessor = LogicPostprocessor(scorer=encoder, vector_store=store)
    result = postprocessor.postprocess_nodes([NodeWithScore(node=node) for node in image_nodes], query_str=QUERY)
    assert encoder.images_encoded == 1  # the one the store does not know
    expected = LogicPostprocessor(scorer=encoder).postprocess_nodes(retrieved, query_str=QUERY)
    assert [node.node_id for node in result] == [node.node_id for node in expected]
    assert [node.score for node in result] == pytest.approx([node.score for node in expected], abs=1e-6)


def test_a_named_store_that_gives_nothing_back_is_refused(encoder: PaintedEncoder) -> None:
    with pytest.raises(InvalidOption, match="a function from node ids"):
        similarity(ImageNode(), encoder, vector_store=SilentStore("images", client=QdrantClient(":memory:")))


def test_without_llama_index_the_extra_is_named() -> None:
    program = "import sys; sys.modules['llama_index.core'] = None; import llama_index_lcse"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert 'pip install "lcse-plugins[llama-index]"' in run.stderr
