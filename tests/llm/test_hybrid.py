"""`HybridParser`: when the model is asked, and what comes of two readings."""

from __future__ import annotations

import pytest

from lcse_plugins.errors import QuerySyntaxError
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.hybrid import HybridParser, combined
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.result import DetailedParser, Parse
from lcse_plugins.query import Concept, Query
from tests.llm.server import TEXT, ScriptedServer

SURE = TEXT
UNSURE = "no dogs unless they are small"
UMBRELLA, PERSON = Concept("umbrella"), Concept("person")


async def test_the_grammar_answers_what_it_is_sure_of(server: ScriptedServer, base_url: str) -> None:
    async with OpenAIParser("m", base_url=base_url) as llm:
        parser = HybridParser(llm)
        for answer in (parser.read(SURE), await parser.aread(SURE)):
            assert (answer.parser, answer.query) == ("grammar", parse(SURE))
    assert not server.requests


async def test_the_model_is_asked_about_the_rest(server: ScriptedServer, base_url: str) -> None:
    server.knows({UNSURE: Concept(UNSURE)})
    async with OpenAIParser("m", base_url=base_url) as llm:
        parser = HybridParser(llm)
        assert parser(UNSURE) == (await parser.aread(UNSURE)).query == Concept(UNSURE)
    assert server.asked[UNSURE] == 2


@pytest.mark.parametrize(
    ("grammar", "model", "query", "sure", "note"),
    [
        (UMBRELLA & ~PERSON, ~PERSON & UMBRELLA, UMBRELLA & ~PERSON, True, "openai:m reads it the same way"),
        (UMBRELLA & ~PERSON, ~UMBRELLA & PERSON, Concept(SURE), False, "differ about person, umbrella"),
        (Concept(SURE), UMBRELLA & ~PERSON, UMBRELLA & ~PERSON, False, "the grammar was not sure"),
        (Concept(SURE), ~PERSON, Concept(SURE), False, "wants nothing"),
    ],
    ids=["the same", "another sign", "otherwise", "only excludes"],
)
def test_what_comes_of_two_readings(grammar: Query, model: Query, query: Query, sure: bool, note: str) -> None:
    first = Parse(text=SURE, query=grammar, sure=False, notes=("not sure",))
    answer = combined(first, Parse(text=SURE, query=model, parser="openai:m"))
    assert (answer.query, answer.sure) == (query, sure)
    assert note in answer.notes[-1]


def test_without_the_model_the_grammars_reading_stays(base_url: str) -> None:
    with OpenAIParser("m", base_url=base_url, max_retries=0) as llm:  # the script knows nothing
        answer = HybridParser(llm).read(UNSURE)
    assert (answer.parser, answer.query, answer.sure) == ("grammar", parse(UNSURE), False)
    assert answer.error


async def test_any_function_may_be_the_model() -> None:
    parser = HybridParser(Concept)
    assert isinstance(parser, DetailedParser)
    assert parser(UNSURE) == (await parser.aread(UNSURE)).query == Concept(UNSURE)
    parser.close()
    await parser.aclose()


def test_a_broken_explicit_query_is_not_guessed_at(server: ScriptedServer, base_url: str) -> None:
    with OpenAIParser("m", base_url=base_url) as llm, pytest.raises(QuerySyntaxError):
        HybridParser(llm)('("cat" AND NOT) OR "dog"')
    assert not server.requests
