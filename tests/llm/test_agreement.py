"""What the grammar is sure of is not contradicted, however a reader cuts the concepts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lcse_plugins.errors import ParserOutputError
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.grounding.belief import ungrounded
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.prompt import load_prompt
from lcse_plugins.query import And, Concept, Not, Or, Query, canonical, ordered
from tests.llm.server import ScriptedServer
from tests.parsing.gold import DOUBTFUL, MISREAD, QUERIES, Example, read_examples, read_tree

CONTRADICTED = """an umbrella and no person => umbrella | !person
a street with no cars => street | !cars
a street with no cars => !cars
a plate but not a fork => !plate & fork
a plate but not a fork => plate | !fork
neither a bus nor a tram => !bus & tram
neither a bus nor a tram => bus & !tram
neither a bus nor a tram => !bus | !tram
a bride, no groom, no guests => bride
a bride, no groom, no guests => bride & !guests
a park without cars and without people => park
either a cat, or a dog => cat & dog
a cat or a dog with a hat => cat & dog & hat
a cat or a dog => cat
a dog and a cat => dog
dogs, cats, no people => !people
no dog or cat => !dog | cat
no dog or cat => !dog | !cat
not both a cup and a saucer => !cup & !saucer
a cat but not a dog, without people => cat & dog & !people
no picture without a rainbow => !rainbow
a room with no pictures and no windows => room & !windows
either a cat or a dog but not both => cat | dog
either a cat or a dog but not both => (cat & !dog) | (dog & cat)
a dog with no cat, or a cat with no dog => dog | cat & !dog
a park with neither dogs nor cats and a fountain => park & !dogs & cats & fountain
boat without sail or motor on a lake at dusk => boat & !sail & !motor & !lake
boat without sail or motor on a lake at dusk => boat & !sail & !motor & !lake at dusk
a no smoking sign => sign & !smoking
cats yes, dogs no => dogs & !cats
dogs? no. cats? yes => dogs & !cats"""

CUT_OTHERWISE = """a room without pictures on the wall => room & !pictures & wall
a room without pictures on the wall => room & !pictures on the wall
a man without a shirt in a park => man & !shirt & park
a man without a shirt in a park => man & !shirt in a park
a dog and a cat or a bird => dog & (cat | bird)
a cat or a dog with a hat => (cat | dog) & hat
a cat or a dog with a hat => cat with a hat | dog with a hat
a dog or cat, high quality, no watermark => (dog | cat) & !watermark
nobody on the beach => !people & beach
none of the dogs are black => dogs & !black
people but nobody smiling => people & !smiling
a man with glasses but no beard holding a book => man & glasses & !beard & holding a book
a red car, not blue => red car & !blue car
cars that are neither red nor blue => cars & !red cars & !blue cars
no red or blue cars => cars & !red & !blue
a woman who is not smiling => woman & !woman smiling
show me dogs that aren't on a leash => dogs & !dogs on a leash
a cat without a dog or with a bird => cat & (!dog | bird)
cats and dogs, but not together => (cats & !dogs) | (dogs & !cats)
a man and a woman riding bikes => man & woman & bikes
a wedding cake without flowers or with only one tier => wedding cake & (!flowers | only one tier)
a cow in a field, with no fence => cow & field & !fence
flowers other than roses => flowers & !roses
boat without sail or motor on a lake at dusk => boat & !sail & !motor & lake
a room without a TV on the wall and a sofa => room & !TV & sofa
cats yes, dogs no => cats & !dogs
cats yes, big dogs no => cats & !big dogs
dogs? no. cats? yes => cats & !dogs
hardly anyone on the beach => beach & !people
almost no one at the pool => pool & !people"""


def pairs(lines: str) -> list[tuple[str, Query]]:
    return [(text, read_tree(tree)) for text, tree in (line.split(" => ") for line in lines.splitlines())]


@pytest.mark.parametrize(("text", "reply"), pairs(CONTRADICTED))
def test_a_contradiction_is_noticed(text: str, reply: Query) -> None:
    assert ungrounded(reply, text) != ()


@pytest.mark.parametrize(("text", "reply"), pairs(CUT_OTHERWISE))
def test_another_cut_is_no_contradiction(text: str, reply: Query) -> None:
    assert ungrounded(reply, text) == ()


@pytest.mark.parametrize(("text", "reply"), pairs(CONTRADICTED)[:3])
def test_a_contradicted_reply_is_asked_about_once_more_and_then_refused(
    server: ScriptedServer, base_url: str, text: str, reply: Query
) -> None:
    server.knows({text: reply})
    with OpenAIParser("m", base_url=base_url, on_error="raise", prompt=load_prompt(examples=0)) as parser:
        with pytest.raises(ParserOutputError) as refused:
            parser.read(text)
    assert refused.value.attempts == 2


EXAMPLES = [example for path in (QUERIES, MISREAD, DOUBTFUL) for example in read_examples(path)]


def test_a_careful_persons_readings_are_no_contradiction() -> None:
    assert [example.text for example in EXAMPLES if ungrounded(example.gold, example.text)] == []


def test_one_mistake_in_a_sure_reading_is_noticed() -> None:
    """A concept of the other sign, `or` for `and`, or a concept left out: 99 of 100 such replies are refused."""
    wrong = [
        (example.text, reply) for example in EXAMPLES if parse.is_sure(example.text) for reply in _mistakes(example)
    ]
    believed = [(text, reply) for text, reply in wrong if not ungrounded(reply, text)]
    assert len(wrong) > 2000
    assert len(believed) <= len(wrong) // 100, believed


def _mistakes(example: Example) -> Iterator[Query]:
    gold = canonical(example.gold)
    for reply in (*_turned(gold), *_with_one_less(gold), *_the_other_operator(gold)):
        if ordered(canonical(reply)) != ordered(gold):
            yield reply


def _turned(tree: Query) -> Iterator[Query]:
    match tree:
        case Concept():
            yield Not(tree)
        case Not(child):
            yield child
        case _:
            for at, child in enumerate(tree.children):
                for turned in _turned(child):
                    yield type(tree)((*tree.children[:at], turned, *tree.children[at + 1 :]))


def _with_one_less(tree: Query) -> Iterator[Query]:
    if isinstance(tree, Concept | Not):
        return
    for at, child in enumerate(tree.children):
        before, after = tree.children[:at], tree.children[at + 1 :]
        if isinstance(child, Concept | Not):
            yield type(tree)((*before, *after))
        for rest in _with_one_less(child):
            yield type(tree)((*before, rest, *after))


def _the_other_operator(tree: Query) -> Iterator[Query]:
    if isinstance(tree, And | Or):
        yield (Or if isinstance(tree, And) else And)(tree.children)
