"""Nodes that another retriever found: ordered as the core orders them, with reasons, whatever is wrong with some."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.chat_engine.types import ChatMode
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import ImageNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index_lcse import METADATA_KEY, LcseEmbedding, LogicPostprocessor

from lcse_plugins import Candidate, ImageAccess, LogicScorer
from lcse_plugins.errors import ImageError, InvalidOption, LcseError, QueryError, UnknownEncoder
from lcse_plugins.scoring.config import Mode
from tests.llama_index.painted import PaintedEncoder, core_scores, shown

QUERY = "umbrella and no person"
Nodes = list[NodeWithScore]


@pytest.mark.parametrize(
    ("query", "mode"), [(QUERY, "lcse"), ("neither a dog nor a person", "anchored"), ("a dog or a car", "holistic")]
)
async def test_order_scores_and_evidence_are_the_cores(
    query: str, mode: Mode, retrieved: Nodes, encoder: PaintedEncoder
) -> None:
    candidates = [Candidate(node.node_id, np.array(node.embedding, dtype=np.float32)) for node in retrieved]
    expected = LogicScorer(encoder, mode=mode).rank(query, candidates)
    postprocessor = LogicPostprocessor(scorer=encoder, mode=mode)
    result = postprocessor.postprocess_nodes(retrieved, query_str=query)
    assert [node.node_id for node in result] == [item.id for item in expected]
    for node, item in zip(result, expected, strict=True):
        told = node.metadata[METADATA_KEY]
        assert node.score == told["score"] == pytest.approx(item.score, abs=1e-6)
        assert (told["reason"], told["satisfied"], told["mode"]) == (item.reason, item.satisfies, mode)
        assert (told["evidence"], told["parse"]) == (item.to_json()["evidence"], expected.parse.to_json())
    assert await postprocessor.apostprocess_nodes(retrieved, QueryBundle(query)) == result
    assert encoder.images_encoded == 0  # the nodes carried their vectors


def test_a_negation_is_obeyed_and_reasons_stay_out_of_texts(retrieved: Nodes, encoder: PaintedEncoder) -> None:
    before = copy.deepcopy(retrieved)
    result = LogicPostprocessor(scorer=encoder, min_truth=0.5).postprocess_nodes(retrieved, query_str=QUERY)
    assert shown(result) == ["umbrella", "umbrella bench"]
    given = {node.node_id: node for node in retrieved}
    for node in result:
        json.dumps(node.metadata)
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            assert node.get_content(mode) == given[node.node_id].get_content(mode)
    assert retrieved == before


def test_engines_answer_from_what_satisfies_the_query(retrieved: Nodes, encoder: PaintedEncoder) -> None:
    index = VectorStoreIndex([node.node for node in retrieved], embed_model=LcseEmbedding(scorer=encoder))
    reranker = LogicPostprocessor(scorer=encoder, top_n=3, vector_store=index.vector_store)
    engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=12, node_postprocessors=[reranker])
    chat = index.as_chat_engine(
        chat_mode=ChatMode.CONTEXT,
        llm=MockLLM(),
        memory=ChatMemoryBuffer.from_defaults(token_limit=1000),  # the default one leaves a database open
        similarity_top_k=12,
        node_postprocessors=[reranker],
    )
    for response in (engine.query(QUERY), chat.chat(QUERY)):
        assert shown(response.source_nodes) == list(core_scores(QUERY))[:3]
    assert "umbrella bench" in str(engine.query(QUERY))  # the mock model repeats its context
    assert METADATA_KEY not in str(engine.query(QUERY))
    assert encoder.images_encoded == 0  # the store gave the vectors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_n": 0}, "top_n"),
        ({"top_n": True}, "top_n is a positive whole number, not True"),
        ({"min_truth": 1.5}, "min_truth"),
        ({"keep_texts": 3, "top_n": 3}, "keep_texts is less than top_n, 3"),
        ({"on_missing": "ignore"}, "on_missing"),
        ({"scorer": 7}, "scorer is a LogicScorer"),
        ({"mode": "modus"}, "mode"),
        ({"vector_store": VectorStoreIndex([], embed_model=MockEmbedding(8))}, "pass index.vector_store"),
        ({"topn": 5}, "has no topn; it has .*top_n"),
        ({"image_access": {"timeout": -1}}, "timeout"),
    ],
)
def test_arguments_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        LogicPostprocessor(**options)


def test_options_and_a_query_are_needed_in_their_places(retrieved: Nodes, encoder: PaintedEncoder) -> None:
    with pytest.raises(InvalidOption, match="LogicPostprocessor takes its options by keyword: top_n=…, scorer=…"):
        LogicPostprocessor(5)  # type: ignore[call-arg, arg-type]
    postprocessor = LogicPostprocessor(scorer=encoder)
    assert postprocessor.postprocess_nodes([], query_str=QUERY) == []
    assert encoder.texts_encoded == 0
    with pytest.raises(QueryError, match="query_str="):
        postprocessor.postprocess_nodes([])
    with pytest.raises(QueryError):
        postprocessor.postprocess_nodes(retrieved, query_str=" ")


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
        ({"top_n": 3, "keep_texts": 2}, ["umbrella", "first", "second"]),
        ({"min_truth": 0.5, "on_missing": "drop"}, ["umbrella"]),
    ],
)
def test_what_has_no_picture_follows_with_lower_scores_or_is_left_out(
    options: dict[str, Any], expected: list[str], retrieved: Nodes, encoder: PaintedEncoder
) -> None:
    nodes = mixed(retrieved)
    found = LogicPostprocessor(scorer=encoder, **options).postprocess_nodes(nodes, query_str=QUERY)
    assert shown(found) == expected
    scores = [float(node.score or 0) for node in found]
    assert scores == sorted(scores, reverse=True)
    for node in found:
        if node.text == "broken":
            assert "not a picture" in node.metadata[METADATA_KEY]["missing"]
        if node.text == "first":
            assert node.node is nodes[0].node  # a text is the same text, to whatever fuses results by their hash


def test_a_missing_file_does_not_come_first_after_fusion(retrieved: Nodes, encoder: PaintedEncoder) -> None:
    gone = NodeWithScore(node=ImageNode(text="gone", image_path="/moved/away.png"), score=0.99)
    ranked = LogicPostprocessor(scorer=encoder).postprocess_nodes([gone, *retrieved], query_str=QUERY)
    fusion = QueryFusionRetriever([], mode=FUSION_MODES.SIMPLE, llm=MockLLM(), retriever_weights=[])
    fused = fusion._simple_fusion({(QUERY, 0): ranked})
    assert fused[-1].text == "gone"
    assert shown(fused)[:2] == ["umbrella", "umbrella bench"]


def test_what_the_log_tells(
    retrieved: Nodes, image_nodes: list[ImageNode], encoder: PaintedEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    postprocessor = LogicPostprocessor(scorer=encoder)
    postprocessor.postprocess_nodes([*retrieved, mixed(retrieved)[0]], query_str=QUERY)
    assert not caplog.records
    gone = [NodeWithScore(node=ImageNode(image_path=f"/moved/{name}.png")) for name in "ab"]
    postprocessor.postprocess_nodes([*mixed(retrieved), *gone], query_str=QUERY)
    assert "3 of 7 results could not be ranked; the first: " in caplog.text
    caplog.clear()
    fresh = LogicPostprocessor(scorer=encoder)
    for query in (QUERY, "no dog"):
        fresh.postprocess_nodes([NodeWithScore(node=node) for node in image_nodes], query_str=query)
    (said,) = [record.getMessage() for record in caplog.records]  # told once
    assert said.startswith("12 pictures were read and encoded")
    assert "vector_store=index.vector_store" in said


def test_it_comes_back_from_a_dict_from_json_and_from_a_pickle() -> None:
    original = LogicPostprocessor(
        top_n=3,
        min_truth=0.2,
        mode="lcse",
        image_access=ImageAccess(root="pictures", allow_urls=True),
        check_vectors=False,
        vector_store=dict.fromkeys,  # type: ignore[arg-type]
    )
    written = original.to_dict()
    assert (written["class_name"], written["scorer"]) == ("LogicPostprocessor", "starter")
    assert "vector_store" not in written
    for copied in (
        LogicPostprocessor.from_dict(dict(written)),
        LogicPostprocessor.from_json(original.to_json()),
        pickle.loads(pickle.dumps(original)),
        copy.deepcopy(original),
    ):
        assert copied.to_dict() == written
        assert copied.image_access == original.image_access
        assert copied.logic_scorer.config.mode == "lcse"


def test_one_in_use_can_be_pickled_and_its_scorer_is_written_by_name(retrieved: Nodes, encoder: PaintedEncoder) -> None:
    postprocessor = LogicPostprocessor(scorer=LogicScorer(encoder, mode="lcse"), top_n=4)
    expected = postprocessor.postprocess_nodes(retrieved, query_str=QUERY)
    assert pickle.loads(pickle.dumps(postprocessor)).postprocess_nodes(retrieved, query_str=QUERY) == expected
    written = postprocessor.to_dict()
    assert written["scorer"] == encoder.encoder_id
    with pytest.raises(UnknownEncoder):  # an object does not come back from its name
        LogicPostprocessor.from_dict(written)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_every_path_announces_a_start_and_an_end(
    asynchronous: bool, retrieved: Nodes, encoder: PaintedEncoder, announced: list[BaseEvent]
) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    good = LogicPostprocessor(scorer=encoder, top_n=3, callback_manager=manager)
    bad = LogicPostprocessor(scorer=encoder, on_missing="raise", callback_manager=manager)
    runs: list[tuple[LogicPostprocessor, Nodes, QueryBundle | None]] = [
        (good, retrieved, QueryBundle(QUERY)),
        (good, [], QueryBundle(QUERY)),
        (good, retrieved, None),
        (bad, mixed(retrieved)[3:], QueryBundle(QUERY)),
    ]
    failures = []
    for postprocessor, nodes, bundle in runs:
        try:
            if asynchronous:
                await postprocessor.apostprocess_nodes(nodes, bundle)
            else:
                postprocessor.postprocess_nodes(nodes, bundle)
        except LcseError as error:
            failures.append(type(error))
    assert failures == [QueryError, ImageError]
    assert [type(event) for event in announced] == [ReRankStartEvent, ReRankEndEvent] * 4
    assert [len(event.nodes) for event in announced] == [12, 3, 0, 0, 12, 0, 2, 0]  # type: ignore[attr-defined]
    start = announced[0]
    assert isinstance(start, ReRankStartEvent)
    assert (start.top_n, start.model_name) == (3, encoder.encoder_id)
    assert [len(pair) for pair in debug.get_event_pairs(CBEventType.RERANKING)] == [2] * 4
