"""The wire form: any tree fits, whatever is no tree is refused with a reason."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcse_plugins.errors import ParserOutputError, QueryTooComplex
from lcse_plugins.parsing.llm.schema import (
    MAX_CONCEPT,
    MAX_WIRE_NODES,
    WireFlat,
    WireQuery,
    decode,
    encode,
    from_wire,
    to_wire,
    wire_schema,
)
from lcse_plugins.query import And, Concept, Not, Or, Plain, Query, canonical, to_flat
from tests.strategies import trees

DOG, CAT = Concept("dog"), Concept("cat")


def node(id: Any, op: str = "concept", text: Any = "", children: Any = ()) -> dict[str, Any]:
    return {"id": id, "op": op, "text": text, "children": list(children)}


def reply(*nodes: dict[str, Any]) -> str:
    return json.dumps({"nodes": nodes})


@settings(deadline=None)
@given(trees(max_leaves=12))
def test_a_tree_survives_the_wire(query: Query) -> None:
    if query.size <= MAX_WIRE_NODES:
        assert decode(encode(query)) == decode(to_wire(query)) == from_wire(to_wire(query)) == query


def test_nodes_may_come_in_any_order() -> None:
    assert decode(reply(node(7, text="dog"), node(3, "not", children=[7]))) == Not(DOG)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not JSON"),
        ("dog", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "the reply: "),
        ("null", "the reply: "),
        ("{}", "nodes: Field required"),
        (reply(), "0 nodes"),
        (reply(node(0, "xor", children=[1]), node(1, text="dog")), "nodes.0.op"),
        (reply(node("0", text="dog")), "nodes.0.id"),
        (reply(node(0, text=5)), "nodes.0.text"),
        (reply({**node(0, text="dog"), "why": "because"}), "nodes.0.why"),
        (reply(node(0, text="  ")), "without text"),
        (reply(node(0, text="x" * (MAX_CONCEPT + 1))), "longer than"),
        (reply(node(0, text="dog", children=[1]), node(1, text="cat")), "cannot have children"),
        (reply(node(0, "not", children=[1, 2]), node(1, text="dog"), node(2, text="cat")), "exactly one child"),
        (reply(node(0, "and")), "needs children"),
        (reply(node(0, "and", text="dog", children=[1]), node(1, text="cat")), "cannot have text"),
        (reply(node(0, "and", children=[1, 9]), node(1, text="dog")), "child 9 that is not in the list"),
        (reply(node(0, text="dog"), node(0, text="cat")), "share a number"),
        (reply(node(0, text="dog"), node(1, text="cat")), "2 nodes have no parent"),
        (reply(node(0, "and", children=[1, 1]), node(1, text="dog")), "more than one parent"),
        (reply(node(0, "not", children=[0])), "circle"),
        (reply(node(0, text="dog"), node(1, "not", children=[2]), node(2, "not", children=[1])), "apart from the root"),
        (reply(*(node(i, text="dog") for i in range(MAX_WIRE_NODES + 1))), "nodes; it needs"),
        ('{"concepts": [], "operator": "AND"}', "at least one child"),
        ('{"concepts": [{"text": "dog", "is_negated": 1}], "operator": "SINGLE"}', "is_negated"),
    ],
)
def test_what_is_no_tree_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(ParserOutputError, match=complaint) as caught:
        decode(text)
    assert caught.value.reply == text


def test_nodes_that_are_no_tree_are_refused_with_their_text() -> None:
    wire = WireQuery(nodes=[])
    with pytest.raises(ParserOutputError, match="0 nodes") as caught:
        decode(wire)
    assert caught.value.reply == wire.model_dump_json()


@settings(deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-2, 5)
        | st.text(max_size=5)
        | st.sampled_from(["concept", "not", "and"]),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["nodes", "id", "op", "text", "children", "concepts"]), inner)
        ),
        max_leaves=20,
    )
)
def test_any_json_gives_a_tree_or_the_one_error(data: Any) -> None:
    with suppress(ParserOutputError):
        assert isinstance(decode(json.dumps(data)), And | Concept | Not | Or | Plain)


@pytest.mark.parametrize(
    "wrapped",
    [
        "```json\n{}\n```",
        "```JSON\n{}\n```",
        "```\n{}```",
        "Here is the tree {{as asked}}:\n```json\n{}\n```\nHope this helps.",
        "<think>\nA dog {{or}} so?\n</think>\n\n{}",
        "it is a dog</think>```json\n{}\n```",
        "\ufeff{}",
        "{}\n\nDone.",
        "Sure: {}",
    ],
)
def test_json_is_found_among_other_words(wrapped: str) -> None:
    assert decode(wrapped.format(encode(DOG))) == DOG


def test_of_two_objects_none_is_chosen() -> None:
    with pytest.raises(ParserOutputError, match="not JSON"):
        decode(f"{encode(DOG)}\n{encode(CAT)}")


def test_marks_inside_a_concept_are_only_text() -> None:
    odd = Concept("a sign </think> ```json {} ```")
    assert decode(encode(odd)) == odd


def test_a_tree_too_large_for_a_reply_is_refused() -> None:
    with pytest.raises(QueryTooComplex, match="nodes"):
        encode(And(tuple(Concept(f"thing {i}") for i in range(MAX_WIRE_NODES))))
    with pytest.raises(QueryTooComplex, match="characters"):
        encode(Concept("x" * (MAX_CONCEPT + 1)))


@pytest.mark.parametrize("query", [DOG, Not(DOG), DOG & ~CAT, DOG | CAT])
def test_the_flat_form_is_carried_both_ways(query: Query) -> None:
    flat = WireFlat.model_validate(to_flat(query))
    assert canonical(flat.to_query()) == canonical(query)
    assert decode(flat.model_dump_json()) == flat.to_query()


@pytest.mark.parametrize("bounded", [True, False])
def test_the_schema_is_what_strict_modes_accept(bounded: bool) -> None:
    schema = wire_schema(bounded=bounded)
    text = json.dumps(schema)
    assert "$ref" not in text
    assert "$defs" not in text
    for part in (schema, schema["properties"]["nodes"]["items"]):
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"])
    assert ("maxItems" in text and "maxLength" in text) is bounded
