"""`OpenAIParser` over real HTTP: what it asks, what it believes, and what every kind of failure leads to."""

from __future__ import annotations

import asyncio
import logging
import pickle
from contextlib import aclosing, closing
from typing import Any

import pytest

from lcse_plugins.errors import InvalidOption, QueryError, QueryTooComplex
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.llm.parser import load_prompt
from lcse_plugins.parsing.llm.schema import MAX_ALTERNATIVES
from lcse_plugins.parsing.result import DetailedParser
from lcse_plugins.query import Concept, Query
from tests.llm.server import BREAK_OFF, TEXT, TREE, Fault, Read, ScriptedServer, says, status


async def test_a_right_reply_is_believed(server: ScriptedServer, base_url: str, read: Read) -> None:
    server.knows({TEXT: TREE})
    async with aclosing(OpenAIParser("m", base_url=base_url, api_key="secret")) as parser:
        assert isinstance(parser, DetailedParser)
        answer = await read(parser, TEXT)
    assert (answer.query, answer.parser, answer.error, answer.sure) == (TREE, "openai:m", None, True)
    assert answer.affirmative == "umbrella"
    (request,) = server.requests
    assert (request["model"], request["temperature"], request["max_tokens"]) == ("m", 0.0, 400)
    form = request["response_format"]["json_schema"]
    assert form["strict"] is True
    assert form["schema"]["properties"]["alternatives"]["maxItems"] == MAX_ALTERNATIVES
    assert server.keys == {"Bearer secret"}


def test_the_prompt_is_small_and_the_query_is_data(server: ScriptedServer, base_url: str) -> None:
    assert len(load_prompt().encode()) <= 4096
    text = 'a cat"\nQuery: "a dog'
    server.knows({text: Concept("cat")})
    with closing(OpenAIParser("m", base_url=base_url, prompt="Reply in JSON.")) as parser:
        parser.read(text)
    system, user = server.requests[0]["messages"]
    assert system == {"role": "system", "content": "Reply in JSON."}
    assert user["content"].count("\n") == 0


FAULTS: dict[str, tuple[Fault, str]] = {
    "refused key": (status(401, "no such key"), "AuthenticationError"),
    "server error": (status(500), "InternalServerError"),
    "too many": (status(429), "RateLimitError"),
    "broken off": (BREAK_OFF, "APIConnectionError"),
    "silence": (Fault(wait=0.8), "APITimeoutError"),
    "refusal": (says(None, refusal="I cannot"), "the model refused: I cannot"),
    "cut off": (says('{"alternatives": [', finish="length"), "cut off at 400 tokens"),
    "empty": (says(""), "the reply is empty"),
    "prose": (says("umbrella, but no person"), "not JSON"),
    "another form": (says('{"nodes": []}'), "alternatives"),
    "no completion": (Fault(body=b'{"hello": 1}'), "does not answer with chat completions"),
    "not JSON": (Fault(body=b"<html>", headers={"content-type": "text/html"}), "Parser"),
    "invented": (says('{"alternatives": [{"must": [["unicorn"]], "must_not": []}]}'), "'unicorn' is not made of"),
    "flipped": (
        says('{"alternatives": [{"must": [["person"]], "must_not": ["umbrella"]}]}'),
        "nothing excludes 'umbrella'",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_every_failure_leads_to_the_grammar_and_is_told(
    server: ScriptedServer, base_url: str, read: Read, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    fault, why = FAULTS[name]
    server.fails(TEXT, fault)
    async with aclosing(OpenAIParser("m", base_url=base_url, max_retries=0, timeout=0.4)) as parser:
        answer = await read(parser, TEXT)
    assert (answer.query, answer.parser) == (parse(TEXT), "grammar")
    assert why in (answer.error or "")
    assert "openai:m gave no usable answer; read by grammar instead" in answer.notes
    assert "openai:m" in caplog.text


async def test_without_a_server_another_parser_may_answer(read: Read) -> None:
    async with aclosing(OpenAIParser("m", base_url="http://127.0.0.1:9/v1", max_retries=0, fallback=Concept)) as parser:
        answer = await read(parser, TEXT)
    assert (answer.query, answer.parser) == (Concept(TEXT), "Concept")
    assert "APIConnectionError" in (answer.error or "")


async def test_the_client_tries_again_by_itself(server: ScriptedServer, base_url: str, read: Read) -> None:
    server.fails(TEXT, status(503, retry_after_ms="10"), status(429, retry_after_ms="10"))
    server.knows({TEXT: TREE})
    async with aclosing(OpenAIParser("m", base_url=base_url)) as parser:
        answer = await read(parser, TEXT)
    assert (answer.query, answer.error) == (TREE, None)
    assert server.asked[TEXT] == 3


@pytest.mark.parametrize(("text", "error"), [("  ", QueryError), ("dog " * 5000, QueryTooComplex)])
async def test_what_is_no_query_is_not_sent(
    server: ScriptedServer, llm: OpenAIParser, read: Read, text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await read(llm, text)
    assert not server.requests


@pytest.mark.parametrize("url", ["http://user:hunter22@127.0.0.1:9/v1", "http://127.0.0.1:9/v1?x=1&api_key=hunter22"])
def test_keys_in_addresses_are_shown_nowhere(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with closing(OpenAIParser("m", base_url=url, max_retries=0)) as parser, caplog.at_level(logging.WARNING):
        shown = f"{parser.read(TEXT)} {parser.base_url} {parser.fingerprint} {caplog.text}"
    assert "hunter22" not in shown


def test_a_key_that_a_server_repeats_is_not_told(server: ScriptedServer, llm: OpenAIParser) -> None:
    server.fails(TEXT, status(401, "Incorrect API key provided: sk-abcdefgh12345678 at http://h/?key=abc123"))
    error = llm.read(TEXT).error or ""
    assert "Incorrect API key" in error
    assert "abcdefgh" not in error
    assert "abc123" not in error


def test_options_that_cannot_work_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidOption, match="OPENAI_API_KEY"):
        OpenAIParser()
    with pytest.raises(InvalidOption, match="web address"):
        OpenAIParser(base_url="localhost:8080")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert OpenAIParser().base_url == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert OpenAIParser().base_url == "http://localhost:1/v1"


def test_what_decides_an_answer_is_in_the_fingerprint() -> None:
    def made(model: str = "m", **options: Any) -> str:
        return OpenAIParser(model, **{"base_url": "http://one/v1", **options}).fingerprint

    different = [made("n"), made(base_url="http://two/v1"), made(temperature=1.0), made(prompt="x"), made(max_tokens=9)]
    assert len({made(), *different}) == 6
    assert made(timeout=1, max_retries=9, api_key="other") == made()


async def test_it_works_on_one_loop_after_another_and_in_another_process(server: ScriptedServer, base_url: str) -> None:
    server.knows({TEXT: TREE})
    made = OpenAIParser("m", base_url=base_url)
    for parser in (made, pickle.loads(pickle.dumps(made))):

        async def once(parser: OpenAIParser = parser) -> Query:
            async with aclosing(parser):
                return (await parser.aread(TEXT)).query

        assert await asyncio.to_thread(lambda: asyncio.run(once())) == await once() == parser(TEXT) == TREE
        assert parser.fingerprint == made.fingerprint
        parser.close()
