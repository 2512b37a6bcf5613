"""`HybridParser`: the model is asked only where the grammar is not sure."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lcse_plugins.errors import QuerySyntaxError
from lcse_plugins.parsing.grammar import GrammarParser, parse
from lcse_plugins.parsing.hybrid import HybridParser
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.result import DetailedParser
from lcse_plugins.query import Concept, Query
from tests.llm.conftest import QUICK
from tests.llm.server import ScriptedServer, status
from tests.parsing.gold import read_examples

SURE = "an umbrella and no person"
UNSURE = next(example.text for example in read_examples() if not GrammarParser().is_sure(example.text))
TREE: Query = Concept(UNSURE)


@pytest.fixture
async def parser(base_url: str) -> AsyncIterator[HybridParser]:
    async with OpenAIParser("m", base_url=base_url, patience=QUICK) as llm:
        yield HybridParser(llm)


async def test_the_grammar_answers_what_it_is_sure_of(server: ScriptedServer, parser: HybridParser) -> None:
    for answer in (parser.read(SURE), await parser.aread(SURE)):
        assert (answer.parser, answer.query) == ("grammar", parse(SURE))
    assert not server.requests


async def test_the_model_answers_the_rest(server: ScriptedServer, parser: HybridParser) -> None:
    server.knows({UNSURE: TREE})
    assert parser(UNSURE) == TREE
    answer = await parser.aread(UNSURE)
    assert (answer.parser, answer.query) == ("openai:m", TREE)
    assert server.asked[UNSURE] == 2


def test_without_the_model_the_grammar_answers_and_says_so(server: ScriptedServer, parser: HybridParser) -> None:
    server.fails(UNSURE, [status(401)])
    answer = parser.read(UNSURE)
    assert (answer.parser, answer.query) == ("grammar", parse(UNSURE))
    assert answer.error


async def test_any_function_may_be_the_model() -> None:
    parser = HybridParser(Concept)
    assert parser(UNSURE) == Concept(UNSURE)
    assert (await parser.aread(UNSURE)).query == Concept(UNSURE)


def test_a_broken_explicit_query_is_not_guessed_at(server: ScriptedServer, parser: HybridParser) -> None:
    with pytest.raises(QuerySyntaxError):
        parser("cat AND (dog")
    assert not server.requests


def test_most_natural_queries_cost_nothing(server: ScriptedServer, parser: HybridParser) -> None:
    examples = read_examples()
    sure = sum(parser.grammar.is_sure(example.text) for example in examples)
    assert sure >= 0.9 * len(examples)


def test_it_is_a_parser(parser: HybridParser) -> None:
    assert isinstance(parser, DetailedParser)


async def test_closing_it_closes_the_model(server: ScriptedServer, base_url: str) -> None:
    server.knows({UNSURE: TREE})
    parser = HybridParser(OpenAIParser("m", base_url=base_url))
    for opened in (1, 2, 3):
        assert parser(UNSURE) == parser(UNSURE) == TREE
        assert server.connections == opened
        parser.close() if opened == 1 else await parser.aclose()
    HybridParser(Concept).close()  # nothing to close
    await HybridParser(Concept).aclose()
