"""Grounding: right replies to hard queries are believed, wrong ones never; the lists are beside this file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lcse_plugins.parsing.llm.grounding import objections
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.llm.schema import Alternative, Reply, encode, reply_of
from tests.llm.server import ScriptedServer, says
from tests.parsing.gold import read_examples, read_tree


def listed(name: str) -> list[tuple[str, Reply]]:
    examples = read_examples(str(Path(__file__).with_name(name)))
    seen = [example for example in examples if not example.family.startswith("fresh")]  # those are for the table
    return [(text, reply_of(golds[0])) for text, golds, _ in seen if len(golds) == 1]


RIGHT = listed("right_replies.txt")
WRONG = listed("wrong_replies.txt")
HARD = listed("hard_queries.txt")


def test_right_replies_are_believed_and_wrong_ones_never_over_the_wire(
    server: ScriptedServer, llm: OpenAIParser
) -> None:
    for text, reply in RIGHT + WRONG:
        server.fails(text, says(encode(reply)))
    refused = [(text, error) for text, _ in RIGHT if (error := llm.read(text).error)]
    believed = [text for text, _ in WRONG if llm.read(text).parser != "grammar"]
    assert min(len(RIGHT), len(WRONG)) > 40
    assert not refused, refused
    assert not believed, believed


def test_right_readings_of_the_hard_queries_are_believed() -> None:
    refused = [(text, why) for text, reply in HARD if (why := objections(text, reply))]
    assert len(refused) <= 0.02 * len(HARD), refused


def mutants(right: Reply) -> Iterator[Reply]:
    """The reply with one sign flipped, one concept dropped or one added."""
    for i, one in enumerate(right):

        def instead(must: tuple[tuple[str, ...], ...], must_not: tuple[str, ...], i: int = i) -> Reply:
            changed = (Alternative(must, must_not),) if must or must_not else ()
            return right[:i] + changed + right[i + 1 :]

        for j, entry in enumerate(one.must):
            for concept in entry:
                rest = tuple(other for other in entry if other != concept)
                must = one.must[:j] + ((rest,) if rest else ()) + one.must[j + 1 :]
                yield instead(must, (*one.must_not, concept))
                yield instead(must, one.must_not)
        for j, concept in enumerate(one.must_not):
            must_not = one.must_not[:j] + one.must_not[j + 1 :]
            yield instead((*one.must, (concept,)), must_not)
            yield instead(one.must, must_not)
        yield instead((*one.must, ("unicorn",)), one.must_not)
        yield instead(one.must, (*one.must_not, "unicorn"))


def test_hardly_any_change_of_a_right_reply_is_believed() -> None:
    changed = [(text, bad) for text, reply in RIGHT + HARD for bad in mutants(reply) if bad]
    believed = [(text, encode(bad)) for text, bad in changed if not objections(text, bad)]
    assert len(changed) > 1000
    assert len(believed) <= 0.005 * len(changed), believed


@pytest.mark.parametrize(
    ("text", "said", "why"),
    [
        ("a dog", "wolf", "'wolf' is not made of the query's words"),
        ("a dog and a cat", "dog", "'cat' is left out"),
        ("a dog without a leash", "dog & leash", "'leash' is wanted, behind 'without'"),
        ("a dog on a leash", "dog & !leash", "nothing excludes 'leash'"),
        ("a dog-free park", "park & dog", "'dog' is wanted, before '-free'"),
        ("no dogs or cats", "cats & !dogs", "'cats' is wanted, in the list of what 'dogs' begins"),
        ("a dog, a cat", "dog | cat", "nothing in the query offers a choice"),
        ("a dog or a cat", "dog & cat", '"or" between'),
        ("dogs and cats or birds", "dogs | cats | birds", "are joined, not a choice"),
        ("no dogs or cats", "!dogs | !cats", "excluded together, not in turn"),
        ("a lake, boats optional and no people", "lake & people", "behind 'no'"),
        ("a lake with or without boats", "lake & boats", "left open"),
        ("no one there", "people", "the query says nobody"),
        ("没有人的海滩", "海滩 & !人", "cannot be checked in this script"),
        ("two dogs running", "dog run & two", ""),
        ("women without babies", "woman & !baby", ""),
        ("leaves on knives", "leaf on knife", ""),
        ("海滩", "海滩", ""),
        ("a beach without any people, please", "beach & !people", ""),
        ("no animals except dogs", "dogs & !animals", ""),
    ],
)
def test_the_reason_is_told(text: str, said: str, why: str) -> None:
    told = objections(text, reply_of(read_tree(said)))
    assert any(why in reason for reason in told) if why else not any("made of" in reason for reason in told), told
