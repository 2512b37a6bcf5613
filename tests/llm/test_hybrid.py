"""`HybridParser`: when the model is asked, and what comes of two readings."""

from __future__ import annotations

import pytest

from lcse_plugins.errors import QuerySyntaxError
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.hybrid import HybridParser, combined
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.result import DetailedParser, Parse
from lcse_plugins.query import Concept, Query
from tests.llm.server import TEXT, Read, ScriptedServer

SURE = TEXT
UNSURE = "no dogs unless they are small"
UMBRELLA, PERSON = Concept("umbrella"), Concept("person")


@pytest.mark.parametrize(
    "text", [SURE, "a man reading a newspaper", "a cat or a dog", '"no smoking" AND dog', "sky -bird"]
)
async def test_the_grammar_answers_what_is_clear(
    server: ScriptedServer, llm: OpenAIParser, read: Read, text: str
) -> None:
    answer = await read(HybridParser(llm), text)
    assert (answer.parser, answer.query, answer.sure) == ("grammar", parse(text), True)
    assert not server.requests


@pytest.mark.parametrize("text", [UNSURE, "a no parking sign", "calle sin coches", "there isn't a tree in this garden"])
async def test_the_model_is_asked_about_the_rest(
    server: ScriptedServer, llm: OpenAIParser, read: Read, text: str
) -> None:
    server.knows({text: Concept(text)})
    await read(HybridParser(llm), text)
    assert server.asked[text] == 1


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


def test_without_the_model_the_grammars_reading_stays(llm: OpenAIParser) -> None:
    answer = HybridParser(llm).read(UNSURE)  # the script knows nothing
    assert (answer.parser, answer.query, answer.sure) == ("grammar", parse(UNSURE), False)
    assert answer.error


async def test_any_function_may_be_the_model() -> None:
    parser = HybridParser(Concept)
    assert isinstance(parser, DetailedParser)
    assert parser(UNSURE) == (await parser.aread(UNSURE)).query == Concept(UNSURE)
    parser.close()
    await parser.aclose()


def test_a_broken_explicit_query_is_not_guessed_at(server: ScriptedServer, llm: OpenAIParser) -> None:
    with pytest.raises(QuerySyntaxError):
        HybridParser(llm)('("cat" AND NOT) OR "dog"')
    assert not server.requests
