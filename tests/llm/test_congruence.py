"""Four parsers, one answer: told the right reply, every language-model front end gives the tree the grammar gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_lcse.parser_chain import query_parser_chain
from langchain_openai import ChatOpenAI
from llama_index_lcse.llm_parser import LlamaIndexParser

from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.grounding.belief import ungrounded
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.llm.parser import LLMQueryParser
from lcse_plugins.parsing.prompt import load_prompt
from lcse_plugins.query import Concept, Not, Query, canonical, from_flat, leaves
from tests.llm.llama_http import HttpLLM
from tests.llm.server import ScriptedServer
from tests.parsing.gold import read_examples

SHORT = load_prompt(examples=0)


def _openai(base_url: str) -> LLMQueryParser:
    return OpenAIParser("m", base_url=base_url, on_error="raise", prompt=SHORT)


def _langchain(base_url: str) -> LLMQueryParser:
    llm = ChatOpenAI(model="m", base_url=base_url, api_key="k", max_retries=0)  # type: ignore[arg-type]
    return query_parser_chain(llm, on_error="raise", prompt=SHORT)


def _llama_index(base_url: str) -> LLMQueryParser:
    return LlamaIndexParser(HttpLLM(base_url=base_url), on_error="raise", prompt=SHORT)


def read_captions(path: Path) -> dict[str, Query]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return {row["caption"]: from_flat(row) for row in rows}


@pytest.fixture(params=["own", "shared"])
def captions(request: pytest.FixtureRequest) -> dict[str, Query]:
    if request.param == "own":
        return read_captions(Path(__file__).with_name("captions.jsonl"))
    folder: Path = request.getfixturevalue("shared_data")
    return read_captions(folder / "factor_bench_sample.jsonl")


@pytest.mark.parametrize("front_end", [_openai, _langchain, _llama_index])
def test_a_right_reply_gives_the_grammars_tree(
    server: ScriptedServer, base_url: str, captions: dict[str, Query], front_end: Callable[[str], LLMQueryParser]
) -> None:
    server.knows(captions)
    parser = front_end(base_url)
    different = [text for text in captions if canonical(parser(text)) != canonical(parse(text))]
    parser.close()
    assert different == []
    assert len(captions) >= 30


EXAMPLES = read_examples()


def test_a_careful_persons_readings_are_all_believed() -> None:
    """The check must not cost right answers: every reading of the list of natural queries passes."""
    assert [example.text for example in EXAMPLES if ungrounded(example.gold, example.text)] == []
    assert len(EXAMPLES) > 300


def test_an_affirmed_query_cannot_be_negated() -> None:
    """Where nothing is excluded, turning any one concept into its negation is noticed."""
    turned = 0
    for text, gold in EXAMPLES:
        if not any(negated for _, negated in leaves(canonical(gold))):
            for leaf, _ in leaves(gold):
                turned += 1
                assert ungrounded(_with(gold, leaf, Not(leaf)), text), text
    assert turned > 200


def test_a_foreign_concept_is_always_noticed() -> None:
    for text, gold in EXAMPLES:
        for leaf, _ in leaves(gold):
            assert ungrounded(_with(gold, leaf, Concept("zeppelin")), text)


def _with(query: Query, old: Query, new: Query) -> Query:
    if query == old:
        return new
    match query:
        case Concept():
            return query
        case Not(child):
            return Not(_with(child, old, new))
        case _:
            return type(query)(tuple(_with(child, old, new) for child in query.children))
