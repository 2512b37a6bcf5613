"""Tracers see parsing and scoring as steps of the retriever, what runs inside them, and who made the vectors."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import LogicCompressor, LogicRetriever, logic_search_tool

from lcse_plugins import LogicScorer, Query, parse
from lcse_plugins.errors import InvalidOption
from lcse_plugins.testing import ToyEncoder

QUERY = "umbrella and no person"


class Trace(BaseCallbackHandler):
    """Each run and those above it."""

    def __init__(self) -> None:
        self.lines: dict[UUID, str] = {}
        self.metadata: list[Any] = []
        self.errors: list[BaseException] = []

    def _start(
        self, serialized: Any, asked: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **told: Any
    ) -> None:
        above = f" < {self.lines[parent_run_id]}" if parent_run_id else ""
        self.lines[run_id] = (told.get("name") or serialized["name"]) + above
        self.metadata.append(told.get("metadata"))

    on_chain_start = on_retriever_start = on_tool_start = _start  # type: ignore[assignment]

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self.errors.append(error)


@pytest.fixture
def scorer(encoder: ToyEncoder) -> LogicScorer:
    """Its parser is a runnable, as a chain around a language model is."""
    inner = RunnableLambda(parse, name="model")

    def read(text: str) -> Query:
        return inner.invoke(text)

    return LogicScorer(encoder, parser=read)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_parsing_and_scoring_are_child_spans(memory: InMemoryVectorStore, asynchronous: bool) -> None:
    async def traced(runnable: Runnable[Any, Any], asked: Any) -> Trace:
        trace = Trace()
        config: Any = {"callbacks": [trace]}
        await runnable.ainvoke(asked, config) if asynchronous else runnable.invoke(asked, config)
        return trace

    retriever = LogicRetriever(source=memory)
    trace = await traced(retriever, QUERY)
    assert list(trace.lines.values()) == [
        "LogicRetriever",
        "lcse_parse < LogicRetriever",
        "model < lcse_parse < LogicRetriever",
        "lcse_score < LogicRetriever",
    ]
    told = trace.metadata[0]
    assert (told["ls_retriever_name"], told["ls_vector_store_provider"]) == ("logic", "InMemoryVectorStore")
    assert (told["ls_embedding_provider"], told["ls_embedding_model"][:4]) == ("lcse", "toy/")
    compressor = LogicCompressor(store=memory)
    reranked = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=memory.as_retriever())
    lines = (await traced(reranked, QUERY)).lines.values()
    assert "model < lcse_parse < ContextualCompressionRetriever" in lines
    assert "lcse_score < ContextualCompressionRetriever" in lines
    lines = (await traced(logic_search_tool(retriever), {"query": QUERY})).lines.values()
    assert "lcse_score < LogicRetriever < search_pictures" in lines


async def test_errors_are_reported(memory: InMemoryVectorStore) -> None:
    retriever, trace = LogicRetriever(source=memory), Trace()
    with pytest.raises(InvalidOption):
        retriever.invoke(QUERY, {"callbacks": [trace]}, k=0)
    with pytest.raises(InvalidOption):
        await retriever.ainvoke(QUERY, {"callbacks": [trace]}, k=0)
    assert [type(error) for error in trace.errors] == [InvalidOption, InvalidOption]
