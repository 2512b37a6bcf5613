"""Tracers see parsing and scoring as steps of the retriever, what runs inside them, and who made the vectors."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import LogicCompressor, LogicRetriever, logic_search_tool

from lcse_plugins import LogicScorer, Query, parse
from lcse_plugins.errors import InvalidOption
from lcse_plugins.testing import ToyEncoder

QUERY = "umbrella and no person"


class Trace(BaseCallbackHandler):
    """Who started whom."""

    def __init__(self) -> None:
        self.names: dict[UUID, str] = {}
        self.parents: dict[UUID, UUID | None] = {}
        self.metadata: dict[str, Any] = {}
        self.errors: list[BaseException] = []

    def lines(self) -> list[str]:
        """Each run and those above it."""
        lines: list[str] = []
        for run in self.names:
            above: UUID | None = run
            line = []
            while above is not None:
                line.append(self.names[above])
                above = self.parents[above]
            lines.append(" < ".join(line))
        return lines

    def _start(
        self, serialized: Any, asked: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **told: Any
    ) -> None:
        self.names[run_id], self.parents[run_id] = told.get("name") or serialized["name"], parent_run_id
        self.metadata[self.names[run_id]] = told.get("metadata")

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
async def test_parsing_and_scoring_are_steps_of_the_retriever(store: VectorStore, asynchronous: bool) -> None:
    retriever, trace = LogicRetriever(source=store), Trace()
    config: Any = {"callbacks": [trace]}
    await retriever.ainvoke(QUERY, config) if asynchronous else retriever.invoke(QUERY, config)
    assert trace.lines() == [
        "LogicRetriever",
        "lcse_parse < LogicRetriever",
        "model < lcse_parse < LogicRetriever",
        "lcse_score < LogicRetriever",
    ]
    told = trace.metadata["LogicRetriever"]
    assert told["ls_retriever_name"] == "logic"
    assert told["ls_vector_store_provider"] == type(store).__name__
    assert (told["ls_embedding_provider"], told["ls_embedding_model"][:4]) == ("lcse", "toy/")


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_and_of_what_a_compressor_or_a_tool_is_part_of(memory: InMemoryVectorStore, asynchronous: bool) -> None:
    reranked = ContextualCompressionRetriever(
        base_compressor=LogicCompressor(store=memory), base_retriever=memory.as_retriever()
    )
    trace = Trace()
    config: Any = {"callbacks": [trace]}
    await reranked.ainvoke(QUERY, config) if asynchronous else reranked.invoke(QUERY, config)
    assert "model < lcse_parse < ContextualCompressionRetriever" in trace.lines()
    assert "lcse_score < ContextualCompressionRetriever" in trace.lines()
    tool, trace = logic_search_tool(LogicRetriever(source=memory)), Trace()
    config = {"callbacks": [trace]}
    await tool.ainvoke({"query": QUERY}, config) if asynchronous else tool.invoke({"query": QUERY}, config)
    assert "lcse_score < LogicRetriever < search_pictures" in trace.lines()


async def test_errors_are_reported(memory: InMemoryVectorStore) -> None:
    trace = Trace()
    with pytest.raises(InvalidOption):
        LogicRetriever(source=memory).invoke(QUERY, {"callbacks": [trace]}, k=0)
    with pytest.raises(InvalidOption):
        await LogicRetriever(source=memory).ainvoke(QUERY, {"callbacks": [trace]}, k=0)
    assert [type(error) for error in trace.errors] == [InvalidOption, InvalidOption]
