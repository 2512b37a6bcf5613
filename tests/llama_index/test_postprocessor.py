from __future__ import annotations

import asyncio
import copy
import json
import pickle
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import ImageNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index_lcse import METADATA_KEY, LlamaIndexParser, LogicPostprocessor

from lcse_plugins import And, Calibration, Candidate, Concept, ImageAccess, LogicScorer, Not, Query, ScoringConfig
from lcse_plugins.encoders.protocol import FloatArray, ImageSource
from lcse_plugins.errors import (
    CalibrationError,
    CalibrationMismatch,
    EncoderError,
    ImageError,
    InvalidOption,
    LcseError,
    QueryError,
    UnknownEncoder,
)
from lcse_plugins.parsing.hybrid import HybridParser
from lcse_plugins.parsing.llm.cached import CachedParser
from lcse_plugins.parsing.result import Parser
from lcse_plugins.testing import ToyEncoder
from tests.llama_index.painted import GALLERY, PaintedEncoder

QUERY = "umbrella and no person"


def shown(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [node.text for node in nodes]


@pytest.mark.parametrize(
    "query",
    [QUERY, "no dog", "neither a dog nor a person", "a dog or a car", "dog and cat", "umbrella", "an umbrella (a, b)"],
)
@pytest.mark.parametrize("mode", ["lcse", "anchored", "factored", "routed", "holistic"])
def test_order_scores_and_evidence_are_the_cores(
    query: str, mode: str, retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> None:
    config = ScoringConfig(mode=mode)  # type: ignore[arg-type]
    candidates = [Candidate(node.node_id, np.array(node.embedding, dtype=np.float32)) for node in retrieved]
    expected = LogicScorer(encoder, config=config).rank(query, candidates)
    result = LogicPostprocessor(encoder=encoder, config=config).postprocess_nodes(retrieved, query_str=query)
    assert [node.node_id for node in result] == [item.id for item in expected]
    assert [node.score for node in result] == pytest.approx([item.score for item in expected], abs=1e-6)
    for node, item in zip(result, expected, strict=True):
        account = node.metadata[METADATA_KEY]
        assert {name: account[name] for name in item.to_json()} == item.to_json()
        assert account["parse"] == expected.parse.to_json()
        assert account["mode"] == mode


def test_a_negation_is_obeyed(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    plain = LogicPostprocessor(encoder=encoder, top_n=2, config=ScoringConfig(mode="holistic"))
    assert "umbrella person" in shown(plain.postprocess_nodes(retrieved, query_str=QUERY))
    logic = LogicPostprocessor(encoder=encoder, top_n=2)
    assert shown(logic.postprocess_nodes(retrieved, query_str=QUERY)) == ["umbrella", "umbrella bench"]


async def test_async_gives_the_same(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    postprocessor = LogicPostprocessor(encoder=encoder)
    assert await postprocessor.apostprocess_nodes(retrieved, QueryBundle(QUERY)) == postprocessor.postprocess_nodes(
        retrieved, QueryBundle(QUERY)
    )


def test_the_given_nodes_stay_as_they_are(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    before = copy.deepcopy(retrieved)
    postprocessor = LogicPostprocessor(encoder=encoder, keep_retrieval_score=True)
    first = postprocessor.postprocess_nodes(retrieved, query_str=QUERY)
    first[0].metadata[METADATA_KEY]["parse"]["notes"].append("mine")
    first[0].node.excluded_llm_metadata_keys.append("mine")
    assert retrieved == before
    assert first[1].metadata[METADATA_KEY]["parse"]["notes"] == []
    again = postprocessor.postprocess_nodes(
        postprocessor.postprocess_nodes(retrieved, query_str=QUERY), query_str=QUERY
    )
    assert [node.score for node in again] == [node.score for node in first]


def test_no_model_sees_the_account(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    result = LogicPostprocessor(encoder=encoder, keep_retrieval_score=True).postprocess_nodes(
        retrieved, query_str=QUERY
    )
    given = {node.node_id: node for node in retrieved}
    for node in result:
        json.dumps(node.metadata)
        assert node.metadata["retrieval_score"] == 0.5
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            assert node.get_content(mode) == given[node.node_id].get_content(mode)
        assert "truth" in node.get_content(MetadataMode.ALL)


@pytest.mark.parametrize(("top_n", "count"), [(None, 12), (1, 1), (12, 12), (99, 12)])
def test_top_n(top_n: int | None, count: int, retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    result = LogicPostprocessor(encoder=encoder, top_n=top_n).postprocess_nodes(retrieved, query_str="dog")
    assert len(result) == count


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_n": 0}, "top_n"),
        ({"top_n": -1}, "top_n"),
        ({"top_n": True}, "top_n is a positive whole number, not True"),
        ({"min_truth": 1.5}, "min_truth"),
        ({"batch_size": 0}, "batch_size"),
        ({"on_missing": "ignore"}, "on_missing"),
        ({"encoder": 7}, "encoder"),
        ({"parser": "no such parser"}, "no such parser"),
        ({"vector_store": VectorStoreIndex([], embed_model=MockEmbedding(8))}, "pass index.vector_store"),
        ({"vector_store": 3}, "not in int"),
        ({"topn": 5}, "has no topn; it has .*top_n"),
        ({"config": {"modus": "lcse"}}, "modus"),
        ({"config": {"gamma_and": float("nan")}}, "gamma_and"),
        ({"image_access": {"timeout": -1}}, "timeout"),
        ({"image_access": {"allow_url": True}}, "allow_url;"),
        ({"image_access": {"allow_urls": "perhaps"}}, "allow_urls"),
        ({"calibration": {"mu": 0.1}}, "beta"),
        ({"calibration": {"mu": 0.1, "beta": 1.0, "gamma": 1.0}}, "gamma"),
        ({"top_n": 0, "batch_size": 0}, "batch_size"),
    ],
)
def test_arguments_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        LogicPostprocessor(**options)  # type: ignore[arg-type]


def test_an_argument_without_its_name_is_refused() -> None:
    with pytest.raises(InvalidOption, match="LogicPostprocessor takes its options by keyword: top_n=…, encoder=…"):
        LogicPostprocessor(5)  # type: ignore[call-arg, arg-type]


def test_a_field_changed_later_is_checked_and_counts(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    postprocessor = LogicPostprocessor(encoder=encoder, top_n=1)
    assert shown(postprocessor.postprocess_nodes(retrieved, query_str=QUERY)) == ["umbrella"]
    postprocessor.config = ScoringConfig(mode="holistic")
    assert shown(postprocessor.postprocess_nodes(retrieved, query_str=QUERY)) == ["umbrella person"]
    postprocessor.top_n = 0
    with pytest.raises(InvalidOption, match="positive"):
        postprocessor.postprocess_nodes(retrieved, query_str=QUERY)


def test_a_calibration_may_be_named_by_its_file(tmp_path: Path) -> None:
    fitted = Calibration(mu=0.1, beta=12.0)
    fitted.save(tmp_path / "calibration.json")
    for place in (tmp_path / "calibration.json", str(tmp_path / "calibration.json")):
        assert LogicPostprocessor(calibration=place).calibration == fitted  # type: ignore[arg-type]
    with pytest.raises(CalibrationError, match="cannot be read"):
        LogicPostprocessor(calibration="no/such.json")  # type: ignore[arg-type]


def test_a_batch_size_changed_later_counts(image_nodes: list[ImageNode]) -> None:
    taken: list[tuple[int, int | None]] = []

    class Counting(PaintedEncoder):
        def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
            rows = super().encode_images(images, batch_size=batch_size)
            taken.append((len(rows), batch_size))
            return rows

    nodes = [NodeWithScore(node=node) for node in image_nodes]
    postprocessor = LogicPostprocessor(encoder=Counting(), batch_size=4)
    postprocessor.postprocess_nodes(nodes[:4], query_str=QUERY)
    postprocessor.batch_size = 1
    postprocessor.postprocess_nodes(nodes[4:6], query_str=QUERY)
    assert taken == [(4, 4), (1, 1), (1, 1)]


def test_an_encoder_and_a_calibration_that_do_not_fit_are_refused_on_use(retrieved: list[NodeWithScore]) -> None:
    with pytest.raises(UnknownEncoder):
        LogicPostprocessor(encoder="nonsense").postprocess_nodes(retrieved, query_str=QUERY)
    other = Calibration(mu=0.2, beta=20.0, encoder_id="another")
    with pytest.raises(CalibrationMismatch):
        LogicPostprocessor(encoder=ToyEncoder(), calibration=other).postprocess_nodes(retrieved, query_str=QUERY)


def test_min_truth_filters(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    result = LogicPostprocessor(encoder=encoder, min_truth=0.5).postprocess_nodes(retrieved, query_str=QUERY)
    assert shown(result) == ["umbrella", "umbrella bench"]
    assert all(node.metadata[METADATA_KEY]["truth"] >= 0.5 for node in result)


def test_an_empty_list_gives_an_empty_list_and_encodes_nothing(encoder: PaintedEncoder) -> None:
    assert LogicPostprocessor(encoder=encoder).postprocess_nodes([], query_str=QUERY) == []
    assert encoder.texts_encoded == 0


@pytest.mark.parametrize("nodes", [[], [NodeWithScore(node=ImageNode())]])
def test_no_query_is_an_error(nodes: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    with pytest.raises(QueryError, match="query_str="):
        LogicPostprocessor(encoder=encoder).postprocess_nodes(nodes)


def test_an_empty_query_is_an_error(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    with pytest.raises(QueryError):
        LogicPostprocessor(encoder=encoder).postprocess_nodes(retrieved, query_str=" ")


def test_nodes_given_twice_are_ranked_twice(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    result = LogicPostprocessor(encoder=encoder, top_n=3).postprocess_nodes([*retrieved, retrieved[1]], query_str=QUERY)
    assert shown(result) == ["umbrella", "umbrella", "umbrella bench"]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), None])
def test_incoming_scores_do_not_matter(
    score: float | None, retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> None:
    postprocessor = LogicPostprocessor(encoder=encoder, keep_retrieval_score=True)
    odd = [NodeWithScore(node=node.node, score=score) for node in retrieved]
    text = NodeWithScore(node=TextNode(text="words"), score=score)
    result = postprocessor.postprocess_nodes([text, *odd], query_str=QUERY)
    assert shown(result) == [*shown(postprocessor.postprocess_nodes(retrieved, query_str=QUERY)), "words"]
    assert result[0].metadata["retrieval_score"] is None
    assert result[-1].score is None


def mixed(retrieved: list[NodeWithScore]) -> list[NodeWithScore]:
    first, second = (NodeWithScore(node=TextNode(text=text), score=0.9) for text in ("first", "second"))
    broken = NodeWithScore(node=ImageNode(text="broken", image="bm90IGEgcGljdHVyZQ=="), score=0.8)
    return [first, *retrieved[:2], broken, second]


def test_nodes_without_an_image_follow_in_their_order(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    result = LogicPostprocessor(encoder=encoder).postprocess_nodes(mixed(retrieved), query_str=QUERY)
    assert shown(result) == ["umbrella", "umbrella person", "first", "broken", "second"]
    assert [node.score for node in result[2:]] == [0.9, 0.8, 0.9]
    accounts = [node.metadata[METADATA_KEY] for node in result]
    assert "has no picture" in accounts[2]["missing"]
    assert "not a picture" in accounts[3]["missing"]
    assert "score" not in accounts[3]
    assert "missing" not in accounts[0]
    cut = LogicPostprocessor(encoder=encoder, top_n=3).postprocess_nodes(mixed(retrieved), query_str=QUERY)
    assert shown(cut) == ["umbrella", "umbrella person", "first"]


def test_nodes_without_an_image_are_dropped_or_refused(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    dropping = LogicPostprocessor(encoder=encoder, on_missing="drop")
    assert shown(dropping.postprocess_nodes(mixed(retrieved), query_str=QUERY)) == ["umbrella", "umbrella person"]
    raising = LogicPostprocessor(encoder=encoder, on_missing="raise")
    with pytest.raises(ImageError, match="has no picture"):
        raising.postprocess_nodes(mixed(retrieved), query_str=QUERY)
    with pytest.raises(ImageError, match="not a picture"):
        raising.postprocess_nodes(mixed(retrieved)[3:4], query_str=QUERY)


async def test_pictures_that_cannot_be_read_are_told_of(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    postprocessor = LogicPostprocessor(encoder=encoder)
    gone = [NodeWithScore(node=ImageNode(image_path=f"/moved/{name}.png")) for name in "ab"]
    for nodes, count in ((gone, 2), ([*mixed(retrieved), *gone], 7)):
        caplog.clear()
        await postprocessor.apostprocess_nodes(nodes, query_str=QUERY)
        (said,) = [record.getMessage() for record in caplog.records]
        assert said.startswith(f"{2 if count == 2 else 3} of {count} results could not be ranked; the first: ")
    caplog.clear()
    postprocessor.postprocess_nodes([*retrieved, mixed(retrieved)[0]], query_str=QUERY)
    assert not caplog.records


def test_a_picture_that_cannot_be_read_is_not_true_enough(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> None:
    strict = LogicPostprocessor(encoder=encoder, min_truth=0.5)
    nodes = [*mixed(retrieved), NodeWithScore(node=ImageNode(text="no vector")), *retrieved[2:]]
    found = shown(strict.postprocess_nodes(nodes, query_str=QUERY))
    assert found == ["umbrella", "umbrella bench", "first", "second"]
    assert shown(strict.postprocess_nodes(nodes[3:4], query_str=QUERY)) == []


def test_the_log_tells_of_texts_that_are_parts_of_one_picture(
    folder: Path, encoder: PaintedEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    def ranked(*places: int) -> list[NodeWithScore]:
        pictures = [str(folder / f"{place:02}.png") for place in places]
        nodes = [NodeWithScore(node=TextNode(text="\x00", metadata={"file_path": path})) for path in pictures]
        return LogicPostprocessor(encoder=encoder).postprocess_nodes(nodes, query_str=QUERY)

    assert len(ranked(1, 2, 3)) == 3
    assert not caplog.records
    assert len(ranked(1, 1, 3, 1)) == 4
    assert f"3 of 4 ranked nodes are texts that name one picture, {folder / '01.png'}" in caplog.text
    assert "llama-index-readers-file" in caplog.text


def test_text_alone_stays_as_it_came(encoder: PaintedEncoder) -> None:
    nodes = [NodeWithScore(node=TextNode(text=text), score=0.1) for text in "cab"]
    assert shown(LogicPostprocessor(encoder=encoder).postprocess_nodes(nodes, query_str=QUERY)) == ["c", "a", "b"]


def test_a_negation_is_warned_of_where_words_fetched_the_candidates(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> None:
    postprocessor = LogicPostprocessor(encoder=encoder)

    def notes(query: str) -> list[str]:
        account = postprocessor.postprocess_nodes(retrieved, query_str=query)[0].metadata[METADATA_KEY]
        return list(account["notes"])

    assert len(notes("umbrella but no person")) == 1
    assert "(person)" in notes("umbrella but no person")[0]
    assert "LogicRetriever" in notes("no dog")[0]
    assert notes("an umbrella and a person") == []


def test_it_comes_back_from_a_dict_from_json_and_from_a_pickle() -> None:
    original = LogicPostprocessor(
        top_n=3,
        min_truth=0.2,
        calibration=Calibration(mu=0.1, beta=12.0),
        config=ScoringConfig(mode="anchored", templates=("a {}",)),
        image_access=ImageAccess(root="pictures", allow_urls=True),
        on_missing="drop",
        keep_retrieval_score=True,
        batch_size=8,
        vector_store=dict.fromkeys,  # type: ignore[arg-type]
    )
    assert original.encoder == "starter"
    written = original.to_dict()
    assert written["class_name"] == "LogicPostprocessor"
    assert "vector_store" not in written
    for copied in (
        LogicPostprocessor.from_dict(written),
        LogicPostprocessor.from_json(original.to_json()),
        LogicPostprocessor(**original.model_dump()),
        LogicPostprocessor.model_validate(original.model_dump()),
        LogicPostprocessor.model_validate_json(original.model_dump_json()),
        pickle.loads(pickle.dumps(original)),
        copy.deepcopy(original),
    ):
        assert copied.to_dict() == written
        assert copied.config == original.config
        assert copied.calibration == original.calibration
        assert copied.image_access == original.image_access
    with pytest.raises(InvalidOption, match="class_name"):
        LogicPostprocessor(**{**written, "class_name": "SimilarityPostprocessor"})


def test_a_pickle_of_one_in_use_works_on(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    postprocessor = LogicPostprocessor(encoder=encoder, top_n=4)
    expected = postprocessor.postprocess_nodes(retrieved, query_str=QUERY)
    copied = pickle.loads(pickle.dumps(postprocessor))
    assert copied.postprocess_nodes(retrieved, query_str=QUERY) == expected
    assert caplog.text == ""  # nothing had to be left behind


def test_objects_are_written_by_a_name_that_is_refused_when_read_back(
    retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> None:
    written = LogicPostprocessor(encoder=encoder, parser=_umbrellas).to_dict()
    assert written["encoder"] == encoder.encoder_id
    with pytest.raises(InvalidOption, match="parser"):
        LogicPostprocessor.from_dict(written)
    unknown = LogicPostprocessor.from_dict({**written, "parser": "grammar"})
    with pytest.raises(UnknownEncoder):
        unknown.postprocess_nodes(retrieved, query_str=QUERY)


def _umbrellas(text: str) -> Query:
    return And((Concept("umbrella"), Not(Concept("person"))))


def _fails(text: str) -> Query:
    raise RuntimeError("out of order")


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_any_parser_serves_and_one_that_fails_is_named(
    asynchronous: bool, retrieved: list[NodeWithScore], encoder: PaintedEncoder
) -> None:
    async def run(parser: Parser, query: str) -> list[NodeWithScore]:
        postprocessor = LogicPostprocessor(encoder=encoder, parser=parser, top_n=2)
        if asynchronous:
            return await postprocessor.apostprocess_nodes(retrieved, QueryBundle(query))
        return postprocessor.postprocess_nodes(retrieved, QueryBundle(query))

    assert shown(await run(_umbrellas, "whatever was asked")) == ["umbrella", "umbrella bench"]
    failed = (await run(_fails, QUERY))[0].metadata[METADATA_KEY]
    assert failed["parse"]["error"] == "RuntimeError: out of order"
    assert failed["correction"] == 0
    assert "the parser failed" in failed["notes"][0]


async def test_a_parser_that_can_be_awaited_is(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    class Awaited(LlamaIndexParser):
        loops: ClassVar[list[asyncio.AbstractEventLoop]] = []

        async def aread(self, text: str):  # type: ignore[no-untyped-def]
            self.loops.append(asyncio.get_running_loop())
            return await super().aread(text)

    parser = Awaited(MockLLM(), on_error="fallback")
    result = await LogicPostprocessor(encoder=encoder, parser=parser, top_n=1).apostprocess_nodes(
        retrieved, QueryBundle(QUERY)
    )
    assert parser.loops == [asyncio.get_running_loop()]
    assert shown(result) == ["umbrella"]  # the mock model gives no tree: the grammar answered, and the notes say so
    assert any("llama-index" in note for note in result[0].metadata[METADATA_KEY]["notes"])


def test_the_prompts_of_a_parser_are_open() -> None:
    postprocessor = LogicPostprocessor(parser=LlamaIndexParser(MockLLM()))
    assert set(postprocessor.get_prompts()) == {"parser:query_prompt", "parser:repair_prompt"}
    postprocessor.update_prompts({"parser:query_prompt": PromptTemplate("Parse {query}")})
    assert postprocessor.get_prompts()["parser:query_prompt"].get_template() == "Parse {query}"
    assert LogicPostprocessor().get_prompts() == {}


def test_the_prompts_of_a_wrapped_parser_are_open_too(tmp_path: Path) -> None:
    wrapped = HybridParser(CachedParser(LlamaIndexParser(MockLLM()), tmp_path / "parses"))
    assert "parser:query_prompt" in LogicPostprocessor(parser=wrapped).get_prompts()


class HeldEncoder(PaintedEncoder):
    """Encodes images once `gate` is open; can be told to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.gate, self.fault = threading.Event(), threading.Event(), False

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        self.entered.set()
        assert self.gate.wait(10)
        if self.fault:
            raise EncoderError("out of memory")
        return super().encode_images(images, batch_size=batch_size)


async def test_concurrent_calls_share_the_encoding(image_nodes: list[ImageNode]) -> None:
    encoder = HeldEncoder()
    postprocessor = LogicPostprocessor(encoder=encoder)
    nodes = [NodeWithScore(node=node) for node in image_nodes]
    tasks = [
        asyncio.create_task(postprocessor.apostprocess_nodes(nodes, QueryBundle(q))) for q in ("dog", "cat", "car")
    ]
    while not encoder.entered.is_set():
        await asyncio.sleep(0.001)
    encoder.gate.set()
    results = await asyncio.gather(*tasks)
    assert [shown(result)[0] for result in results] == ["dog", "cat sofa", "car street"]
    assert encoder.images_encoded == len(GALLERY)


async def test_cancelling_leaves_nothing_half_done(image_nodes: list[ImageNode], announced: list[BaseEvent]) -> None:
    encoder = HeldEncoder()
    postprocessor = LogicPostprocessor(encoder=encoder)
    nodes = [NodeWithScore(node=node) for node in image_nodes]
    task = asyncio.create_task(postprocessor.apostprocess_nodes(nodes, QueryBundle(QUERY)))
    while not encoder.entered.is_set():
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [type(event) for event in announced] == [ReRankStartEvent, ReRankEndEvent]
    encoder.gate.set()
    result = await postprocessor.apostprocess_nodes(nodes, QueryBundle(QUERY))
    assert shown(result)[0] == "umbrella"
    assert encoder.images_encoded == len(GALLERY)


def pairs(events: list[BaseEvent]) -> list[tuple[int, int]]:
    """Number of nodes in and out of each rerank."""
    assert [type(event) for event in events] == [ReRankStartEvent, ReRankEndEvent] * (len(events) // 2)
    return [
        (len(start.nodes), len(end.nodes))
        for start, end in zip(events[::2], events[1::2], strict=True)
        if isinstance(start, ReRankStartEvent) and isinstance(end, ReRankEndEvent)
    ]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_every_path_announces_a_start_and_an_end(
    asynchronous: bool, retrieved: list[NodeWithScore], encoder: PaintedEncoder, announced: list[BaseEvent]
) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])

    async def run(postprocessor: BaseNodePostprocessor, nodes: list[NodeWithScore], query: str | None) -> None:
        bundle = None if query is None else QueryBundle(query)
        try:
            if asynchronous:
                await postprocessor.apostprocess_nodes(nodes, bundle)
            else:
                postprocessor.postprocess_nodes(nodes, bundle)
        except LcseError:
            pass

    good = LogicPostprocessor(encoder=encoder, top_n=3, callback_manager=manager)
    bad = LogicPostprocessor(encoder="nonsense", callback_manager=manager)
    await run(good, retrieved, QUERY)
    await run(good, [], QUERY)
    await run(good, retrieved, None)
    await run(good, retrieved, " ")
    await run(bad, retrieved, QUERY)
    assert pairs(announced) == [(12, 3), (0, 0), (12, 0), (12, 0), (12, 0)]
    start = announced[0]
    assert isinstance(start, ReRankStartEvent)
    assert (start.top_n, start.model_name) == (3, encoder.encoder_id)
    started = debug.get_event_pairs(CBEventType.RERANKING)
    assert [len(pair) for pair in started] == [2] * 5
    assert started[0][1].payload is not None
    assert len(started[0][1].payload["nodes"]) == 3


def test_nodes_that_carry_embeddings_cost_no_image(retrieved: list[NodeWithScore], encoder: PaintedEncoder) -> None:
    LogicPostprocessor(encoder=encoder).postprocess_nodes(retrieved, query_str=QUERY)
    assert encoder.images_encoded == 0


def test_a_second_query_encodes_no_image_and_a_repeated_one_no_text(
    image_nodes: list[ImageNode], encoder: PaintedEncoder
) -> None:
    postprocessor = LogicPostprocessor(encoder=encoder, batch_size=5)
    nodes = [NodeWithScore(node=node) for node in image_nodes]
    first = postprocessor.postprocess_nodes(nodes, query_str=QUERY)
    assert encoder.images_encoded == len(GALLERY)
    postprocessor.postprocess_nodes(nodes, query_str="no dog")
    assert encoder.images_encoded == len(GALLERY)
    texts = encoder.texts_encoded
    assert postprocessor.postprocess_nodes(nodes, query_str=QUERY) == first
    assert (encoder.images_encoded, encoder.texts_encoded) == (len(GALLERY), texts)
