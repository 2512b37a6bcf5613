"""`LlamaIndexParser`: LlamaIndex's structured prediction over real HTTP, its prompts, and its failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index_lcse.llm_parser import LlamaIndexParser

from lcse_plugins.errors import InvalidOption, ParserOutputError, ParserUnavailable
from lcse_plugins.parsing.consult import Patience
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.llm.cached import CachedParser
from lcse_plugins.parsing.llm.schema import encode
from lcse_plugins.parsing.result import DetailedParser, Parse
from lcse_plugins.query import Concept, Query
from tests.llm.llama_http import HttpLLM
from tests.llm.server import Hang, ScriptedServer, says, status

TEXT = "an umbrella and no person"
TREE: Query = Concept("umbrella") & ~Concept("person")
Read = Callable[[LlamaIndexParser, str], Coroutine[Any, Any, Parse]]


async def _read(parser: LlamaIndexParser, text: str) -> Parse:
    return await asyncio.to_thread(parser.read, text)


async def _aread(parser: LlamaIndexParser, text: str) -> Parse:
    return await parser.aread(text)


@pytest.fixture(params=[_read, _aread], ids=["sync", "async"])
def read(request: pytest.FixtureRequest) -> Read:
    how: Read = request.param
    return how


@pytest.fixture(params=[True, False], ids=["functions", "text"])
def llm(request: pytest.FixtureRequest, base_url: str) -> HttpLLM:
    return HttpLLM(base_url=base_url, calls_functions=request.param)


async def test_a_right_reply_is_believed(server: ScriptedServer, llm: HttpLLM, read: Read) -> None:
    server.knows({TEXT: TREE})
    answer = await read(LlamaIndexParser(llm), TEXT)
    assert (answer.query, answer.parser, answer.error) == (TREE, "llama-index:m", None)
    assert answer.spans["person"] == (19, 25)


@pytest.mark.parametrize("reply", ["I would rather not say", '{"nodes": 5}', encode(Concept("unicorn"))])
async def test_an_unusable_reply_is_mended_once(server: ScriptedServer, llm: HttpLLM, read: Read, reply: str) -> None:
    server.fails(TEXT, [says(reply)])
    server.knows({TEXT: TREE})
    answer = await read(LlamaIndexParser(llm), TEXT)
    assert (answer.query, answer.error) == (TREE, None)
    assert "cannot be used" in str(server.requests[1]["messages"])
    server.fails(TEXT, [says(reply), says(reply)])
    with pytest.raises(ParserOutputError) as caught:
        await read(LlamaIndexParser(llm, on_error="raise"), TEXT)
    assert caught.value.attempts == 2


async def test_faults_lead_to_the_declared_policy(server: ScriptedServer, llm: HttpLLM, read: Read) -> None:
    server.fails(TEXT, [status(500), status(401), status(503), status(503)])
    answer = await read(LlamaIndexParser(llm), TEXT)
    assert (answer.query, answer.parser) == (parse(TEXT), "grammar")
    assert "InternalServerError" in (answer.error or "")
    answer = await read(LlamaIndexParser(llm, on_error="holistic"), TEXT)
    assert (answer.query, answer.parser) == (Concept(TEXT), "holistic")
    with pytest.raises(ParserUnavailable) as caught:
        await read(LlamaIndexParser(llm, on_error="raise", patience=Patience(max_retries=1, first_wait=0.01)), TEXT)
    assert (caught.value.attempts, caught.value.retryable) == (2, True)


async def test_an_async_model_that_hangs_is_left_in_time(server: ScriptedServer, llm: HttpLLM) -> None:
    server.fails(TEXT, [Hang(3)])
    answer = await asyncio.wait_for(LlamaIndexParser(llm, patience=Patience(timeout=0.3, max_retries=0)).aread(TEXT), 2)
    assert "TimeoutError" in (answer.error or "")


async def test_without_a_connection_patience_decides(read: Read) -> None:
    patience = Patience(max_retries=2, first_wait=0.01)
    parser = LlamaIndexParser(HttpLLM(base_url="http://127.0.0.1:9/v1"), on_error="raise", patience=patience)
    with pytest.raises(ParserUnavailable, match="ConnectionRefusedError") as caught:
        await read(parser, TEXT)
    assert (caught.value.attempts, caught.value.retryable) == (3, True)


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
    assert set(parser.get_prompts()) == {"query_prompt", "repair_prompt"}
    parser.update_prompts({"query_prompt": PromptTemplate("Give the logic as JSON.\nQuery: {query}")})
    assert parser(TEXT) == TREE
    assert parser.fingerprint != before
    assert "Give the logic" in str(server.requests[0]["messages"])
    assert "Never translate" not in str(server.requests[0]["messages"])


def test_a_prompt_that_cannot_work_is_refused(llm: HttpLLM) -> None:
    parser = LlamaIndexParser(llm)
    with pytest.raises(InvalidOption, match="no prompt 'other'"):
        parser.update_prompts({"other": PromptTemplate("{query}")})
    with pytest.raises(InvalidOption, match="needs the variable"):
        parser.update_prompts({"query_prompt": PromptTemplate("what?")})


def test_braces_in_a_query_are_only_text(server: ScriptedServer, llm: HttpLLM) -> None:
    text = "a sign with {query} and {complaint} on it"
    server.knows({text: Concept("sign with {query} and {complaint} on it")})
    assert LlamaIndexParser(llm, on_error="raise")(text) == Concept("sign with {query} and {complaint} on it")


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
