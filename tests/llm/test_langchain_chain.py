"""`query_parser_chain`: with LangChain's own OpenAI model over HTTP, and with a scripted chat model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_lcse.parser_chain import QueryParserChain, query_parser_chain
from langchain_openai import AzureChatOpenAI, ChatOpenAI

from lcse_plugins.errors import InvalidOption, ParserOutputError, ParserUnavailable
from lcse_plugins.parsing.consult import Patience
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.llm.cached import CachedParser
from lcse_plugins.parsing.llm.schema import encode
from lcse_plugins.parsing.result import DetailedParser, Parse
from lcse_plugins.query import Concept, Query, format_query
from tests.llm.server import Hang, ScriptedServer, says, status

TEXT = "an umbrella and no person"
TREE: Query = Concept("umbrella") & ~Concept("person")
Read = Callable[[QueryParserChain, str], Coroutine[Any, Any, Parse]]


async def _read(chain: QueryParserChain, text: str) -> Parse:
    return await asyncio.to_thread(chain.read, text)


async def _aread(chain: QueryParserChain, text: str) -> Parse:
    return await chain.aread(text)


@pytest.fixture(params=[_read, _aread], ids=["sync", "async"])
def read(request: pytest.FixtureRequest) -> Read:
    how: Read = request.param
    return how


@pytest.fixture
def llm(base_url: str) -> ChatOpenAI:
    return ChatOpenAI(model="m", base_url=base_url, api_key="k", max_retries=0, timeout=5)  # type: ignore[arg-type]


@pytest.fixture(params=["json_schema", "function_calling"])
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_a_right_reply_is_believed(server: ScriptedServer, llm: ChatOpenAI, read: Read, method: str) -> None:
    server.knows({TEXT: TREE})
    answer = await read(query_parser_chain(llm, method=method), TEXT)
    assert (answer.query, answer.parser, answer.error) == (TREE, "langchain:m", None)
    request = server.requests[0]
    assert ("tools" in request) is (method == "function_calling")


async def test_it_runs_as_a_runnable(server: ScriptedServer, llm: ChatOpenAI) -> None:
    server.knows({TEXT: TREE, "a dog": Concept("dog")})
    chain = query_parser_chain(llm)
    assert isinstance(chain, Runnable)
    assert chain.invoke(TEXT) == await chain.ainvoke(TEXT) == TREE
    assert chain.batch([TEXT, "a dog"]) == await chain.abatch([TEXT, "a dog"]) == [TREE, Concept("dog")]
    written: Runnable[str, str] = chain | RunnableLambda(format_query)
    assert written.invoke(TEXT) == await written.ainvoke(TEXT) == '"umbrella" AND NOT "person"'
    assert list(chain.stream(TEXT)) == [TREE]


@pytest.mark.parametrize("reply", ["I would rather not say", '{"nodes": 5}', encode(Concept("unicorn")), None])
async def test_an_unusable_reply_is_mended_once(
    server: ScriptedServer, llm: ChatOpenAI, read: Read, method: str, reply: str | None
) -> None:
    server.fails(TEXT, [says(reply)])
    server.knows({TEXT: TREE})
    answer = await read(query_parser_chain(llm, method=method), TEXT)
    assert (answer.query, answer.error) == (TREE, None)
    assert "cannot be used" in server.requests[1]["messages"][-1]["content"]
    server.fails(TEXT, [says(reply), says(reply)])
    with pytest.raises(ParserOutputError) as caught:
        await read(query_parser_chain(llm, method=method, on_error="raise"), TEXT)
    assert caught.value.attempts == 2


async def test_faults_lead_to_the_declared_policy(server: ScriptedServer, llm: ChatOpenAI, read: Read) -> None:
    server.fails(TEXT, [status(500), status(401), status(503), status(503)])
    answer = await read(query_parser_chain(llm), TEXT)
    assert (answer.query, answer.parser) == (parse(TEXT), "grammar")
    assert "500" in (answer.error or "")
    answer = await read(query_parser_chain(llm, on_error="holistic"), TEXT)
    assert (answer.query, answer.parser) == (Concept(TEXT), "holistic")
    patience = Patience(max_retries=1, first_wait=0.01)
    with pytest.raises(ParserUnavailable) as caught:
        await read(query_parser_chain(llm, on_error="raise", patience=patience), TEXT)
    assert (caught.value.attempts, caught.value.retryable) == (2, True)


async def test_refusal_and_truncation(server: ScriptedServer, llm: ChatOpenAI, read: Read) -> None:
    server.fails(TEXT, [says(None, refusal="I cannot"), says('{"nodes": [', finish="length")] * 2)
    for why in ("I cannot", ""):
        answer = await read(query_parser_chain(llm), TEXT)
        assert answer.parser == "grammar"
        assert why in (answer.error or "")


async def test_an_async_model_that_hangs_is_left_in_time(server: ScriptedServer, llm: ChatOpenAI) -> None:
    server.fails(TEXT, [Hang(3)])
    chain = query_parser_chain(llm, patience=Patience(timeout=0.3, max_retries=0))
    assert "TimeoutError" in ((await asyncio.wait_for(chain.aread(TEXT), 2)).error or "")


async def test_without_a_connection_patience_decides(read: Read) -> None:
    llm = ChatOpenAI(model="m", base_url="http://127.0.0.1:9/v1", api_key="k", max_retries=0)  # type: ignore[arg-type]
    chain = query_parser_chain(llm, on_error="raise", patience=Patience(max_retries=2, first_wait=0.01))
    with pytest.raises(ParserUnavailable, match="ConnectionRefusedError") as caught:
        await read(chain, TEXT)
    assert (caught.value.attempts, caught.value.retryable) == (3, True)


@pytest.mark.parametrize(("finish", "requests"), [("length", 2), ("content_filter", 1)])
async def test_a_reply_that_ended_badly_is_an_unusable_reply(
    server: ScriptedServer, llm: ChatOpenAI, read: Read, finish: str, requests: int
) -> None:
    server.fails(TEXT, [says('{"nodes": [', finish=finish)] * 2)
    with pytest.raises(ParserOutputError, match=r"cut off|content filter"):
        await read(query_parser_chain(llm, method="json_schema", on_error="raise"), TEXT)
    assert server.asked[TEXT] == requests


def _model(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "m", "base_url": "http://one/v1", "api_key": "k", **options})


def _deployment(name: str) -> AzureChatOpenAI:
    return AzureChatOpenAI(azure_deployment=name, azure_endpoint="https://a", api_version="1", api_key="k")  # type: ignore[arg-type]


class Named(FakeMessagesListChatModel):
    """A model whose name is an id."""

    model_id: str

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self


def test_models_that_may_answer_differently_share_no_memory() -> None:
    base = query_parser_chain(_model()).fingerprint
    others = [
        query_parser_chain(_model(), method="function_calling"),
        query_parser_chain(_model(base_url="http://two/v1")),
        query_parser_chain(_model(temperature=1)),
        query_parser_chain(_model().bind(seed=1)),  # type: ignore[arg-type]
        query_parser_chain(_model(base_url="http://two/v1").bind(seed=1)),  # type: ignore[arg-type]
        query_parser_chain(_deployment("large")),
        query_parser_chain(_deployment("small")),
        query_parser_chain(Named(model_id="a", responses=[])),
        query_parser_chain(Named(model_id="b", responses=[])),
    ]
    assert len({base, *(other.fingerprint for other in others)}) == 10
    same = _model(api_key="other", timeout=3, max_retries=7, tags=["mine"], metadata={"run": "1"})
    assert query_parser_chain(same).fingerprint == base


class Scripted(FakeMessagesListChatModel):
    """Says what it is told to, and accepts tools."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self


def calls(tree: Query) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "WireQuery", "args": json.loads(encode(tree)), "id": "1"}])


def test_a_model_that_makes_no_call_gives_none_and_none_is_handled() -> None:
    chain = query_parser_chain(Scripted(responses=[AIMessage("umbrella, no person")]))
    answer = chain.read(TEXT)
    assert (answer.query, answer.parser) == (parse(TEXT), "grammar")
    assert "no structured reply" in (answer.error or "")


def test_a_call_with_wrong_arguments_is_told_to_the_model() -> None:
    wrong = AIMessage("", tool_calls=[{"name": "WireQuery", "args": {"nodes": 5}, "id": "1"}])
    assert query_parser_chain(Scripted(responses=[wrong, calls(TREE)]), on_error="raise").invoke(TEXT) == TREE


def test_a_model_without_structured_output_is_refused() -> None:
    with pytest.raises(InvalidOption, match="no structured output"):
        query_parser_chain(GenericFakeChatModel(messages=iter(["x"])))


class Seen(BaseCallbackHandler):
    def __init__(self) -> None:
        self.models: list[UUID | None] = []
        self.chains: list[str] = []
        self.tags: list[str] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.chains.append(kwargs.get("name") or "")

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **kwargs: Any) -> None:
        self.models.append(kwargs.get("parent_run_id"))
        self.tags += kwargs.get("tags") or []


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_callbacks_and_tags_reach_the_model(how: str) -> None:
    seen = Seen()
    chain = query_parser_chain(Scripted(responses=[calls(TREE)]))
    config: Any = {"callbacks": [seen], "tags": ["mine"]}
    answer = chain.invoke(TEXT, config) if how == "invoke" else await chain.ainvoke(TEXT, config)
    assert answer == TREE
    assert "QueryParserChain" in seen.chains
    assert seen.models != [None]
    assert "mine" in seen.tags


def test_it_is_a_parser_and_can_be_cached(server: ScriptedServer, llm: ChatOpenAI) -> None:
    server.knows({TEXT: TREE})
    chain = query_parser_chain(llm)
    assert isinstance(chain, DetailedParser)
    cached = CachedParser(chain, ":memory:")
    assert cached(TEXT) == cached(TEXT) == TREE
    assert server.asked[TEXT] == 1
