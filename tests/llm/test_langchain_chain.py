"""`query_parser_chain`: with LangChain's own OpenAI model over HTTP, and with a scripted chat model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_lcse.parser_chain import query_parser_chain
from langchain_openai import AzureChatOpenAI, ChatOpenAI

from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.llm.cached import CachedParser
from lcse_plugins.parsing.llm.schema import encode, reply_of
from lcse_plugins.parsing.result import DetailedParser
from lcse_plugins.query import Concept, Query, format_query
from tests.llm.server import TEXT, TREE, Fault, Hang, Read, ScriptedServer, says, status


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


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (says("I would rather not say"), ""),
        (says('{"nodes": 5}'), ""),
        (says(encode(reply_of(Concept("unicorn")))), "unicorn"),
        (says(None), ""),
        (says(None, refusal="I cannot"), "I cannot"),
        (says('{"alternatives": [', finish="length"), ""),
        (status(500), "500"),
        (status(401), "401"),
        (Hang(0.6), "Timeout"),
    ],
)
async def test_every_failure_leads_to_the_grammar(
    server: ScriptedServer, base_url: str, read: Read, fault: Fault, why: str
) -> None:
    server.fails(TEXT, [fault])
    llm = ChatOpenAI(model="m", base_url=base_url, api_key="k", max_retries=0, timeout=0.3)  # type: ignore[arg-type]
    answer = await read(query_parser_chain(llm, method="json_schema"), TEXT)
    assert (answer.query, answer.parser) == (parse(TEXT), "grammar")
    assert why in (answer.error or "nothing")
    assert "langchain:m gave no usable answer; read by grammar instead" in answer.notes


class Scripted(FakeMessagesListChatModel):
    """Says what it is told to, and accepts tools."""

    model_id: str = "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self


def _model(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "m", "base_url": "http://one/v1", "api_key": "k", **options})


def _deployment(name: str) -> AzureChatOpenAI:
    return AzureChatOpenAI(azure_deployment=name, azure_endpoint="https://a", api_version="1", api_key="k")  # type: ignore[arg-type]


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
        query_parser_chain(Scripted(model_id="a", responses=[])),
        query_parser_chain(Scripted(model_id="b", responses=[])),
    ]
    assert len({base, *(other.fingerprint for other in others)}) == 10
    same = _model(api_key="other", timeout=3, max_retries=7, tags=["mine"], metadata={"run": "1"})
    assert query_parser_chain(same).fingerprint == base


def calls(tree: Query) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "QueryLogic", "args": json.loads(encode(reply_of(tree))), "id": "1"}])


def test_another_parser_answers_instead_of_a_model_that_makes_no_call() -> None:
    answer = query_parser_chain(Scripted(responses=[AIMessage("no person")]), fallback=Concept).read(TEXT)
    assert answer.query == Concept(TEXT)
    assert "no structured reply" in (answer.error or "")


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
