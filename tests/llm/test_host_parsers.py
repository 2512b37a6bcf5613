"""`query_parser_chain` and `LlamaIndexParser`: the frameworks' own structured output over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_lcse.parser_chain import query_parser_chain
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from llama_index.core.prompts import PromptTemplate
from llama_index_lcse.llm_parser import LlamaIndexParser

from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.llm.cached import CachedParser
from lcse_plugins.parsing.llm.parser import LLMQueryParser
from lcse_plugins.parsing.llm.schema import encode, reply_of
from lcse_plugins.parsing.result import DetailedParser
from lcse_plugins.query import Concept, format_query
from tests.llm.llama_http import HttpLLM
from tests.llm.server import TEXT, TREE, Fault, Read, ScriptedServer, says, status


def chat(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "m", "base_url": "http://one/v1", "api_key": "k", "max_retries": 0, **options})


@pytest.fixture(params=["json_schema", "function_calling", "llama functions", "llama text"])
def parser(request: pytest.FixtureRequest, base_url: str) -> LLMQueryParser:
    if request.param.startswith("llama"):
        functions = request.param == "llama functions"
        return LlamaIndexParser(HttpLLM(base_url=base_url, calls_functions=functions, timeout=0.4))
    return query_parser_chain(chat(base_url=base_url, timeout=0.4), method=request.param)


async def test_a_right_reply_is_believed_and_kept(server: ScriptedServer, parser: LLMQueryParser, read: Read) -> None:
    server.knows({TEXT: TREE})
    assert isinstance(parser, DetailedParser)
    answer = await read(parser, TEXT)
    assert (answer.query, answer.error) == (TREE, None)
    assert answer.parser in ("langchain:m", "llama-index:m")
    cached = CachedParser(parser, ":memory:")
    assert cached(TEXT) == cached(TEXT) == TREE
    assert server.asked[TEXT] == 2


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (says("I would rather not say"), ""),
        (says(encode(reply_of(Concept("unicorn")))), ""),
        (says(None, refusal="I cannot"), ""),
        (says('{"alternatives": [', finish="length"), ""),
        (status(500), "500"),
        (Fault(wait=0.8), "Timeout"),
    ],
)
async def test_every_failure_leads_to_the_grammar(
    server: ScriptedServer, parser: LLMQueryParser, read: Read, fault: Fault, why: str
) -> None:
    server.fails(TEXT, fault)
    answer = await read(parser, TEXT)
    assert (answer.query, answer.parser) == (parse(TEXT), "grammar")
    assert why in (answer.error or "nothing")
    assert f"{parser.parser_name} gave no usable answer; read by grammar instead" in answer.notes


def test_braces_in_a_query_are_only_text(server: ScriptedServer, parser: LLMQueryParser) -> None:
    text = "a sign with {query} and {other} on it"
    server.knows({text: Concept("sign with {query} and {other} on it")})
    assert parser(text) == Concept("sign with {query} and {other} on it")


class Scripted(FakeMessagesListChatModel):
    """Says what it is told to, and accepts tools."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self


def test_models_that_may_answer_differently_share_no_memory() -> None:
    azure: Any = {"azure_endpoint": "https://a", "api_version": "1", "api_key": "k"}
    chains: list[LLMQueryParser] = [
        query_parser_chain(chat()),
        query_parser_chain(chat(), method="function_calling"),
        *(query_parser_chain(chat(**options)) for options in ({"base_url": "http://two/v1"}, {"temperature": 1})),
        *(query_parser_chain(chat(base_url=url).bind(seed=1)) for url in ("http://one/v1", "http://two/v1")),  # type: ignore[arg-type]
        *(query_parser_chain(AzureChatOpenAI(azure_deployment=name, **azure)) for name in ("large", "small")),
        *(LlamaIndexParser(HttpLLM(base_url=f"http://{name}/v1")) for name in ("one", "two")),
        LlamaIndexParser(HttpLLM(base_url="http://one/v1", system_prompt="Be brief.")),
    ]
    assert len({chain.fingerprint for chain in chains}) == len(chains)
    same = chat(api_key="other", timeout=3, max_retries=7, tags=["mine"], metadata={"run": "1"})
    assert query_parser_chain(same).fingerprint == chains[0].fingerprint


# ------------------------------------------------------------------ LangChain's own ways


async def test_it_runs_as_a_runnable(server: ScriptedServer, base_url: str) -> None:
    server.knows({TEXT: TREE, "a dog": Concept("dog")})
    chain = query_parser_chain(chat(base_url=base_url))
    assert chain.invoke(TEXT) == await chain.ainvoke(TEXT) == TREE
    assert chain.batch([TEXT, "a dog"]) == await chain.abatch([TEXT, "a dog"]) == [TREE, Concept("dog")]
    written: Runnable[str, str] = chain | RunnableLambda(format_query)
    assert written.invoke(TEXT) == '"umbrella" AND NOT "person"'


class Seen(BaseCallbackHandler):
    def __init__(self) -> None:
        self.chains: list[str] = []
        self.models: list[tuple[bool, list[str]]] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.chains.append(kwargs.get("name") or "")

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.models.append((kwargs.get("parent_run_id") is not None, kwargs.get("tags") or []))


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_callbacks_and_tags_reach_the_model(how: str) -> None:
    seen = Seen()
    call = {"name": "QueryLogic", "args": json.loads(encode(reply_of(TREE))), "id": "1"}
    chain = query_parser_chain(Scripted(responses=[AIMessage("", tool_calls=[call])]))
    config: Any = {"callbacks": [seen], "tags": ["mine"]}
    assert (chain.invoke(TEXT, config) if how == "invoke" else await chain.ainvoke(TEXT, config)) == TREE
    assert "QueryParserChain" in seen.chains
    ((has_parent, tags),) = seen.models
    assert has_parent
    assert "mine" in tags


def test_a_model_without_structured_output_is_told() -> None:
    answer = query_parser_chain(Scripted(responses=[AIMessage("no person")]), fallback=Concept).read(TEXT)
    assert answer.query == Concept(TEXT)
    assert "no structured reply" in (answer.error or "")
    with pytest.raises(InvalidOption, match="no structured output"):
        query_parser_chain(GenericFakeChatModel(messages=iter(["x"])))


# ------------------------------------------------------------------ LlamaIndex's own ways


def test_the_prompts_can_be_seen_and_replaced(server: ScriptedServer, base_url: str) -> None:
    server.knows({TEXT: TREE})
    parser = LlamaIndexParser(HttpLLM(base_url=base_url))
    before = parser.fingerprint
    assert set(parser.get_prompts()) == {"query_prompt"}
    parser.update_prompts({"query_prompt": PromptTemplate("Give the logic as JSON.\nQuery: {query}")})
    assert parser(TEXT) == TREE
    assert parser.fingerprint != before
    assert "Give the logic" in str(server.requests[0]["messages"])
    with pytest.raises(InvalidOption, match="no prompt 'other'"):
        parser.update_prompts({"other": PromptTemplate("{query}")})
    with pytest.raises(InvalidOption, match="needs the variable"):
        parser.update_prompts({"query_prompt": PromptTemplate("what?")})
