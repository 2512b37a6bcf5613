"""What runs inside the retriever and the compressor is traced as their child."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import LogicCompressor, LogicRetriever, logic_search_tool, query_parser_chain

from lcse_plugins import LogicScorer, parse
from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.llm.schema import WireQuery, to_wire
from lcse_plugins.testing import ToyEncoder

QUERY = "umbrella and no person"


class Trace(BaseCallbackHandler):
    """Who started whom."""

    def __init__(self) -> None:
        self.names: dict[UUID, str] = {}
        self.parents: dict[UUID, UUID | None] = {}
        self.errors: list[BaseException] = []
        self.documents: list[Document] = []

    def line(self, name: str) -> list[str]:
        """The names from a run up to the root."""
        run: UUID | None = next(run for run, known in self.names.items() if known == name)
        line = []
        while run is not None:
            line.append(self.names[run])
            run = self.parents[run]
        return line

    def _note(self, name: str, run_id: UUID, parent_run_id: UUID | None) -> None:
        self.names[run_id] = name
        self.parents[run_id] = parent_run_id

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        self._note("model", run_id, parent_run_id)

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        self._note("retriever", run_id, parent_run_id)

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        self._note("chain", run_id, parent_run_id)

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        self._note("tool", run_id, parent_run_id)

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.documents.extend(documents)

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self.errors.append(error)


class ParsingModel(FakeMessagesListChatModel):
    """Replies with the right tree, as a tool call."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self


def _scorer(encoder: ToyEncoder) -> LogicScorer:
    call = ToolCall(name=WireQuery.__name__, args=to_wire(parse(QUERY)).model_dump(), id="1")
    model = ParsingModel(responses=[AIMessage(content="", tool_calls=[call])])
    return LogicScorer(encoder, parser=query_parser_chain(model, on_error="raise"))


async def test_a_model_that_parses_is_a_child_of_the_retriever(
    memory: InMemoryVectorStore, encoder: ToyEncoder
) -> None:
    retriever = LogicRetriever(source=memory, scorer=_scorer(encoder), k=2)
    for asynchronous in (False, True):
        trace = Trace()
        config: Any = {"callbacks": [trace]}
        found = await retriever.ainvoke(QUERY, config) if asynchronous else retriever.invoke(QUERY, config)
        line = trace.line("model")
        assert line[0] == "model"
        assert line[-1] == "retriever"
        assert found == trace.documents
        assert found[0].metadata["lcse"]["parse"]["parser"].startswith("langchain:")


async def test_and_of_the_retriever_around_a_compressor(memory: InMemoryVectorStore, encoder: ToyEncoder) -> None:
    compressor = LogicCompressor(scorer=_scorer(encoder), store=memory)
    retriever = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=memory.as_retriever())
    for asynchronous in (False, True):
        trace = Trace()
        config: Any = {"callbacks": [trace]}
        await retriever.ainvoke(QUERY, config) if asynchronous else retriever.invoke(QUERY, config)
        assert trace.line("model")[-1] == "retriever"


async def test_the_retriever_is_a_child_of_the_tool(memory: InMemoryVectorStore) -> None:
    tool = logic_search_tool(LogicRetriever(source=memory))
    for asynchronous in (False, True):
        trace = Trace()
        config: Any = {"callbacks": [trace]}
        await tool.ainvoke({"query": QUERY}, config) if asynchronous else tool.invoke({"query": QUERY}, config)
        assert trace.line("retriever") == ["retriever", "tool"]


async def test_errors_are_reported(memory: InMemoryVectorStore) -> None:
    trace = Trace()
    with pytest.raises(InvalidOption):
        LogicRetriever(source=memory).invoke(QUERY, {"callbacks": [trace]}, k=0)
    with pytest.raises(InvalidOption):
        await LogicRetriever(source=memory).ainvoke(QUERY, {"callbacks": [trace]}, k=0)
    assert [type(error) for error in trace.errors] == [InvalidOption, InvalidOption]


async def test_asynchronous_handlers_are_awaited(memory: InMemoryVectorStore) -> None:
    class Waiting(AsyncCallbackHandler):
        heard = 0

        async def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
            self.heard += len(documents)

    waiting = Waiting()
    await LogicRetriever(source=memory, k=3).ainvoke(QUERY, {"callbacks": [waiting]})
    assert waiting.heard == 3
