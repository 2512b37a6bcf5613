"""The query tree: building, canonical form, its texts, and the forms in which it travels."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from lcse_plugins import And, Concept, Not, Or, Query, canonical, format_query
from lcse_plugins.errors import QueryError, QueryNotFlat, QueryTooComplex
from lcse_plugins.query import (
    MAX_DEPTH,
    Plain,
    concepts,
    contradictions,
    describe,
    draw,
    from_flat,
    from_json,
    is_constrained,
    leaves,
    ordered,
    to_flat,
    to_json,
)
from tests.strategies import trees

A, B, C = Concept("A"), Concept("B"), Concept("C")


def test_operators_build_flat_groups_of_values() -> None:
    assert A & B & C == And((A, B, C))
    assert A | (B | C) == Or((A, B, C))
    assert ~(A & B) == Not(And((A, B)))
    assert hash(A & ~B) == hash(And((Concept(" A "), Not(B))))
    with pytest.raises(AttributeError):
        A.text = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("kind", "content", "error"),
    [(And, (), "at least one child"), (Or, ("dog",), "not str"), (Not, "dog", "not str"), (Concept, 3, "not int"),
     (Concept, " \t", "visible character"), (Concept, "caf\udce9", "UTF-8"), (Concept, "x" * 10_001, "10001")],
)  # fmt: skip
def test_malformed_nodes_are_refused(kind: Any, content: Any, error: str) -> None:
    with pytest.raises(QueryError, match=error):
        kind(content)
    assert Concept("  red \n car ").text == "red car"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (~(A & B), Or((~A, ~B))),
        (~(A | ~B), And((~A, B))),
        (~~A, A),
        (And((A, And((B, And((C,)))))), And((A, B, C))),
        (Or((A, A)), A),
        (Or((A & B, B & A)), And((A, B))),
        (~Plain((A, ~B)), Plain((~A, B))),
        (And((Or((A,)), B)), And((A, B))),
    ],
)
def test_canonical(query: Query, expected: Query) -> None:
    assert canonical(query) == expected


@given(trees())
def test_canonical_is_idempotent_and_ignores_double_negation(query: Query) -> None:
    tree = canonical(query)
    assert canonical(tree) == canonical(~~query) == canonical(~canonical(~query)) == tree


@given(trees())
def test_canonical_has_negation_at_leaves_and_no_nested_twins(query: Query) -> None:
    def check(node: Query) -> None:
        if isinstance(node, Not):
            assert isinstance(node.child, Concept)
        elif not isinstance(node, Concept):
            assert len(set(map(ordered, node.children))) == len(node.children) > 1
            for child in node.children:
                assert type(child) is not type(node)
                check(child)

    check(canonical(query))


@given(trees())
def test_json_round_trip(query: Query) -> None:
    assert from_json(json.loads(json.dumps(to_json(query)))) == query


@pytest.mark.parametrize(
    "data",
    [{}, [], {"op": "xor", "children": []}, {"op": "and", "children": []}, {"op": "and", "children": "ab"},
     {"op": "concept", "text": 1}, {"op": "not", "child": None}, {"op": "concept", "text": "a", "weight": 2}],
)  # fmt: skip
def test_malformed_json_is_refused(data: Any) -> None:
    with pytest.raises(QueryError):
        from_json(data)


@pytest.mark.parametrize("query", [A, ~A, A & ~B, A | B, Plain((A, ~B))])
def test_flat_round_trip(query: Query) -> None:
    assert from_flat(to_flat(query)) == query


def test_flat_view_of_a_nested_tree() -> None:
    with pytest.raises(QueryNotFlat, match="nested"):
        to_flat((A & ~B) | C)
    flat = to_flat((A & ~B) | C, strict=False)
    assert [tuple(each.values()) for each in flat["concepts"]] == [("A", False), ("B", True), ("C", False)]
    assert flat["operator"] == "OR"


@pytest.mark.parametrize(
    "flat",
    [{"concepts": [], "operator": "AND"}, {"concepts": [{"text": "a", "is_negated": False}] * 2, "operator": "SINGLE"},
     {"concepts": [{"text": "a"}], "operator": "SINGLE"}, {"operator": "AND"}],
)  # fmt: skip
def test_malformed_flat_is_refused(flat: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        from_flat(flat)


def test_views() -> None:
    query = (Concept("umbrella") & ~Concept("person")) | Concept("raincoat")
    assert concepts(query) == ("umbrella", "person", "raincoat")
    assert [(leaf.text, negated) for leaf, negated in leaves(~query)][1] == ("person", False)
    assert format_query(query) == '("umbrella" AND NOT "person") OR "raincoat"'
    assert describe(query) == "(umbrella and no person) or raincoat"
    assert draw(~query) == "NOT\n└── OR\n    ├── AND\n    │   ├── umbrella\n    │   └── NOT person\n    └── raincoat"
    assert contradictions(A & ~A & B) == ("A",)
    assert contradictions(A | ~A) == ()


@pytest.mark.parametrize(
    ("query", "constrained"), [(A, False), (~A, True), (A & B, True), (A & A, False), (~~A, False)]
)
def test_is_constrained(query: Query, constrained: bool) -> None:
    assert is_constrained(query) is is_constrained(Plain((query, B))) is constrained


def test_wide_trees_are_handled_and_deep_ones_refused_at_once() -> None:
    wide = And(tuple(Concept(f"c{i}") for i in range(10_000)))
    assert canonical(wide) == from_json(to_json(wide)) == wide
    with pytest.raises(QueryTooComplex, match="nodes"):
        And((wide, wide, wide))

    query: Query = A
    data: dict[str, object] = to_json(A)
    for _ in range(MAX_DEPTH - 1):
        query = Not(query)
    assert canonical(query) == ~A
    with pytest.raises(QueryTooComplex, match="deeper"):
        Not(query)
    for _ in range(2000):
        data = {"op": "not", "child": data}
    with pytest.raises(QueryTooComplex, match="deeper"):
        from_json(data)
