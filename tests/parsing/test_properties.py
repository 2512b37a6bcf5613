"""Any text gives a tree or a typed error in bounded time; what is formatted reads back."""

from __future__ import annotations

import pickle
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcse_plugins import LcseError, Query, canonical, format_query, parse
from lcse_plugins.errors import QueryTooComplex
from lcse_plugins.parsing import GrammarParser
from lcse_plugins.query import MAX_TEXT, concepts
from tests.strategies import trees

PIECES = [
    "no ", "not ", "without ", "a dog ", "cats ", "or ", "and ", "but ", ", ", "either ", "neither ", "nor ", "both ",
    "(", ")", '"', "AND ", "OR ", "NOT ", "-", "!", "&", "|", "-free ", "-less ", "is ", "missing ", "in ", "the park ",
    "nobody ", "except ", "only ", "show me ", "photos of ", ". ", "; ", "not both ", "riding a ", "red ", "“", "”",
    "'", "don't ", "--no ", "🍕 ", "´", "zero ", "leave ", "out ", "who is ", "No. 5 ", "at least one of the ",
    "have ", "any ", "犬 ", "é", "🙂", "\\", "\n", "\t", "\x00", "w/o ", "of ", "such as ", "with ",
]  # fmt: skip

any_text = st.one_of(st.text(max_size=300), st.lists(st.sampled_from(PIECES), max_size=60).map("".join))


odd_names = ("dog", "no dog", "a OR b", 'the "x" \\', "(", "-y", "“", "AND", "犬, é", "not both", "'", "!")


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_text)
def test_any_text_gives_a_tree_or_a_typed_error(text: str) -> None:
    try:
        result = parse.read(text)
    except LcseError:
        return
    assert set(concepts(result.query)) <= set(result.spans)
    assert all(0 <= start <= end <= len(text) for start, end in result.spans.values())
    assert parse(text) == result.query
    result.to_json()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees(odd_names, max_leaves=12))
def test_a_formatted_tree_reads_back(tree: Query) -> None:
    assert parse(format_query(canonical(tree))) == canonical(tree)


@pytest.mark.parametrize(
    "piece",
    ["not ", "no a or ", "(", ")", "(a or ", '"', '\\"', "a, ", "either ", "neither a ", "“", "犬", "🙂", "a & ", "-a ",
     "no a, no b, ", "no cats beach ", "leave a out ", "no a show ", "No Cat ", "one of the cats and ", "no a OR ",
     "no hat that is ", "neither a, ", "a or only ", "no pictures without ",
     "a-less ", "is missing ", "red or ", "a on ", "NOT ", "((a)) ", "please ", "but no a ", "a riding a ", "\ud800"],
)  # fmt: skip
def test_long_and_odd_texts_end_in_bounded_time(piece: str) -> None:
    text = (piece * MAX_TEXT)[:MAX_TEXT]
    start = time.process_time()
    try:
        parse(text)
    except LcseError:
        pass
    assert time.process_time() - start < 3.0


@pytest.mark.parametrize(
    ("piece", "end"),
    [("both a ", ""), ("either a ", ""), ("not both a ", ""), ("one of the cats and a ", ""), ("no red and ", "ball "),
     ("red, ", "ball and no cat "), ("a (", ")"), ("(", "a"), ("treeless ", "")],
)  # fmt: skip
def test_a_text_of_twice_the_length_costs_about_twice_the_steps(piece: str, end: str) -> None:
    def steps(count: int) -> int:
        taken = 0

        def count_step(*_: object) -> None:
            nonlocal taken
            taken += 1

        sys.setprofile(count_step)
        try:
            parse(piece * count + end * count)
        except QueryTooComplex:
            pass
        finally:
            sys.setprofile(None)
        return taken

    parse("a dog and no cat")  # reads the tables
    assert steps(200) < 3 * steps(100)


def test_the_parser_is_a_value() -> None:
    assert pickle.loads(pickle.dumps(parse)) == parse == GrammarParser()
    assert len({parse, GrammarParser()}) == 1
