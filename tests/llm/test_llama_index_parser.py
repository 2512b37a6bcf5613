"""`LlamaIndexParser`: LlamaIndex's structured prediction over real HTTP, its prompts, and its failures."""

from __future__ import annotations

import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index_lcse.llm_parser import LlamaIndexParser

from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.llm.cached import CachedParser
from lcse_plugins.parsing.llm.schema import encode, reply_of
from lcse_plugins.parsing.result import DetailedParser
from lcse_plugins.query import Concept
from tests.llm.llama_http import HttpLLM
from tests.llm.server import TEXT, TREE, Fault, Read, ScriptedServer, says, status


@pytest.fixture(params=[True, False], ids=["functions", "text"])
def llm(request: pytest.FixtureRequest, base_url: str) -> HttpLLM:
    return HttpLLM(base_url=base_url, calls_functions=request.param)


async def test_a_right_reply_is_believed(server: ScriptedServer, llm: HttpLLM, read: Read) -> None:
    server.knows({TEXT: TREE})
    answer = await read(LlamaIndexParser(llm), TEXT)
    assert (answer.query, answer.parser, answer.error) == (TREE, "llama-index:m", None)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (says("I would rather not say"), ""),
        (says('{"nodes": 5}'), ""),
        (says(encode(reply_of(Concept("unicorn")))), ""),
        (status(500), "InternalServerError"),
        (status(401), "AuthenticationError"),
    ],
)
async def test_every_failure_leads_to_the_grammar(
    server: ScriptedServer, llm: HttpLLM, read: Read, fault: Fault, why: str
) -> None:
    server.fails(TEXT, [fault])
    answer = await read(LlamaIndexParser(llm), TEXT)
    assert (answer.query, answer.parser) == (parse(TEXT), "grammar")
    assert why in (answer.error or "")
    assert "llama-index:m gave no usable answer; read by grammar instead" in answer.notes


async def test_without_a_connection_too(read: Read) -> None:
    answer = await read(LlamaIndexParser(HttpLLM(base_url="http://127.0.0.1:9/v1"), fallback=Concept), TEXT)
    assert answer.query == Concept(TEXT)
    assert "APIConnectionError" in (answer.error or "")


def test_models_that_may_answer_differently_share_no_memory() -> None:
    class Other(HttpLLM):
        pass

    one = HttpLLM(base_url="http://one/v1")
    others = [
        HttpLLM(base_url="http://two/v1"),
        Other(base_url="http://one/v1"),
        HttpLLM(base_url="http://one/v1", system_prompt="Be brief."),
    ]
    assert len({LlamaIndexParser(llm).fingerprint for llm in (one, *others)}) == 4
    assert LlamaIndexParser(HttpLLM(base_url="http://one/v1")).fingerprint == LlamaIndexParser(one).fingerprint


def test_the_prompts_can_be_seen_and_replaced(server: ScriptedServer, llm: HttpLLM) -> None:
    server.knows({TEXT: TREE})
    parser = LlamaIndexParser(llm)
    before = parser.fingerprint
    assert set(parser.get_prompts()) == {"query_prompt"}
    parser.update_prompts({"query_prompt": PromptTemplate("Give the logic as JSON.\nQuery: {query}")})
    assert parser(TEXT) == TREE
    assert parser.fingerprint != before
    assert "Give the logic" in str(server.requests[0]["messages"])
    assert "Never add" not in str(server.requests[0]["messages"])


def test_a_prompt_that_cannot_work_is_refused(llm: HttpLLM) -> None:
    parser = LlamaIndexParser(llm)
    with pytest.raises(InvalidOption, match="no prompt 'other'"):
        parser.update_prompts({"other": PromptTemplate("{query}")})
    with pytest.raises(InvalidOption, match="needs the variable"):
        parser.update_prompts({"query_prompt": PromptTemplate("what?")})


def test_braces_in_a_query_are_only_text(server: ScriptedServer, llm: HttpLLM) -> None:
    text = "a sign with {query} and {other} on it"
    server.knows({text: Concept("sign with {query} and {other} on it")})
    assert LlamaIndexParser(llm)(text) == Concept("sign with {query} and {other} on it")


def test_a_model_that_echoes_is_not_believed() -> None:
    answer = LlamaIndexParser(MockLLM()).read(TEXT)  # gives back the prompt, examples and all
    assert (answer.query, answer.parser) == (parse(TEXT), "grammar")
    assert answer.error


def test_it_is_a_parser_and_can_be_cached(server: ScriptedServer, llm: HttpLLM) -> None:
    server.knows({TEXT: TREE})
    parser = LlamaIndexParser(llm)
    assert isinstance(parser, DetailedParser)
    cached = CachedParser(parser, ":memory:")
    assert cached(TEXT) == cached(TEXT) == TREE
    assert server.asked[TEXT] == 1
