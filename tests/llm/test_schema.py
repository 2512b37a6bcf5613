"""The form of a reply: what is decoded, what is refused, and that trees survive the way there and back."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given

from lcse_plugins.errors import ParserOutputError, QueryTooComplex
from lcse_plugins.parsing.llm.schema import Alternative, decode, encode, reply_of, tree_of
from lcse_plugins.query import And, Concept, Or, Query, canonical, concepts, format_query
from tests.bench.worlds import holds
from tests.strategies import trees


def one(**parts: Any) -> dict[str, Any]:
    return {"alternatives": [parts]}


@pytest.mark.parametrize(
    ("data", "tree"),
    [
        (one(must=[["bus", "truck"], ["tree"]], must_not=["car"]), '("bus" OR "truck") AND "tree" AND NOT "car"'),
        (one(must=["dog"], must_not=[]), '"dog"'),
        (one(must=[[]], must_not=["cat"]), 'NOT "cat"'),
        (one(must_not=["cat"]), 'NOT "cat"'),
        ({"alternatives": [{"must": [["a"]]}, {"must": [["b"]], "must_not": ["c"]}]}, '"a" OR ("b" AND NOT "c")'),
        (one(must=[["  red\n car "]]), '"red car"'),
    ],
)
def test_replies_are_read(data: dict[str, Any], tree: str) -> None:
    assert format_query(tree_of(decode(data))) == tree
    assert decode(f"Sure!\n```json\n{json.dumps(data)}\n```") == decode(data)


@pytest.mark.parametrize(
    "reply",
    [
        *("", "no", "{", "[" * 100_000, '{"a":' * 100_000 + "}", {}, {"alternatives": []}, {"alternatives": "dog"}),
        *({"alternatives": ["dog"]}, {"alternatives": [{}]}, {"alternatives": [{"must": [["a"]]}] * 9}),
        *(one(must=must) for must in ("dog", [[1]], [[" "]], [["x" * 201]], [["a"]] * 17, [])),
        one(must_not=[["a"]]),
    ],
)
def test_what_is_not_of_the_form_is_refused(reply: Any) -> None:
    with pytest.raises(ParserOutputError):
        decode(reply)


@given(trees(max_leaves=6, plain=False))
def test_any_tree_multiplies_out_to_the_same_meaning(query: Query) -> None:
    try:
        reply = reply_of(query)
    except QueryTooComplex:
        return
    assert decode(encode(reply)) == reply
    names = concepts(canonical(query))
    for values in product([False, True], repeat=len(names)):
        seen = {name for name, there in zip(names, values, strict=True) if there}
        assert holds(tree_of(reply), seen) == holds(query, seen)
    assert len(reply_of(tree_of(reply))) <= len(reply)


def test_there_is_a_bound() -> None:
    pairs = [Or((And((Concept(f"a{i}"), Concept(f"b{i}"))), Concept(f"c{i}"))) for i in range(4)]
    with pytest.raises(QueryTooComplex, match="more than 8 alternatives"):
        reply_of(And(tuple(pairs)))
    assert reply_of(~(Concept("a") | Concept("b"))) == (Alternative((), ("a", "b")),)
