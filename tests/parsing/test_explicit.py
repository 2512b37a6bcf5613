"""The explicit Boolean language: its marks, its precedence, its errors."""

from __future__ import annotations

import pytest

from lcse_plugins import And, Concept, Not, Or, Query, parse
from lcse_plugins.errors import QuerySyntaxError, QueryTooComplex
from lcse_plugins.parsing import is_explicit
from lcse_plugins.query import Plain

cat, dog, bird = Concept("cat"), Concept("dog"), Concept("bird")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("cat AND dog", cat & dog),
        ("cat && dog || bird", Or((cat & dog, bird))),
        ("cat OR dog AND bird", Or((cat, dog & bird))),
        ("(cat OR dog) AND bird", And((cat | dog, bird))),
        ("NOT cat AND dog", And((~cat, dog))),
        ("NOT (cat AND dog)", Not(cat & dog)),
        ("!cat | dog", Or((~cat, dog))),
        ("cat & !dog", And((cat, ~dog))),
        ("cat -dog -bird", And((cat, ~dog, ~bird))),
        ("beach -people sunset", And((Concept("beach"), Not(Concept("people")), Concept("sunset")))),
        ('cat -"hot dog"', And((cat, Not(Concept("hot dog"))))),
        ("cat -(dog OR bird)", And((cat, Not(dog | bird)))),
        ("cat −dog", And((cat, ~dog))),
        ("no dogs OR no cats", Or((Not(Concept("dogs")), Not(Concept("cats"))))),
        ("a cat without dogs OR a bird", Or((And((cat, Not(Concept("dogs")))), bird))),
        ("beach with no people AND sunset", And((And((Concept("beach"), Not(Concept("people")))), Concept("sunset")))),
        ("beach NOT people", And((Concept("beach"), Not(Concept("people"))))),
        ('"red car" "tall person"', Plain((Concept("red car"), Concept("tall person")))),
        ('"red car" NOT "tall person"', Plain((Concept("red car"), Not(Concept("tall person"))))),
        ('"no parking"', Concept("no parking")),
        ('"say \\"hi\\" \\\\ now"', Concept('say "hi" \\ now')),
        ("“red car” AND dog", And((Concept("red car"), dog))),
        ("red car AND NOT tall person", And((Concept("red car"), Not(Concept("tall person"))))),
        ("a dog AND no cats", And((dog, Not(Concept("cats"))))),
        ("mac and cheese AND NOT bacon", And((Concept("mac and cheese"), Not(Concept("bacon"))))),
        ("AT&T store AND dog", And((Concept("AT&T store"), dog))),
        ("t-shirt AND 5-year-old boy", And((Concept("t-shirt"), Concept("5-year-old boy")))),
        ("A OR B AND NOT C", Or((Concept("A"), And((Concept("B"), Not(Concept("C"))))))),
        ("( ( (cat) ) )", cat),
    ],
)
def test_reads(text: str, tree: Query) -> None:
    assert is_explicit(text)
    assert parse(text) == tree


@pytest.mark.parametrize(
    "text",
    [
        "a dog (brown)", "cute puppy :)", "wow! a dog", "AT&T store", "R&B singer", "black & white photo",
        "salt & pepper shakers", "Tom & Jerry", "a t-shirt", "Paris - France", "-5 degrees", "DOG AND CAT",
        "dogs but NOT cats", "cats, NOT dogs", "either a cat OR a dog", 'a sign that says "no parking"',
        "brand new car", "NOT both cat and dog",
        "a 5\" pipe", "NOTHING to see", "cats AND/OR dogs", "dogs WITHOUT collars OR leashes", "no cats OR dogs",
    ],
)  # fmt: skip
def test_leaves_english_alone(text: str) -> None:
    assert not is_explicit(text)
    parse(text)


@pytest.mark.parametrize(
    ("text", "offset", "expected", "found"),
    [
        ("cat OR OR dog", 7, "a term", "OR"),
        ("(cat OR dog", 11, ")", ""),
        ("cat AND dog)", 11, "the end", ")"),
        ("cat AND ()", 9, "a term", ")"),
        ('cat AND "dog', 8, "quotation mark", ""),
        ('cat AND ""', 9, "quotation marks", '"'),
    ],
)
def test_a_fault_is_pointed_at(text: str, offset: int, expected: str, found: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    error = caught.value
    assert (error.text, error.offset, error.found) == (text, offset, found)
    assert expected in error.expected
    line, caret = str(error).splitlines()[-2:]
    assert caret.index("^") - 2 == offset
    assert line.strip() == text


@pytest.mark.parametrize(
    ("text", "tree", "sure"),
    [
        ("dog AND", dog, False),
        ("AND cat", cat, False),
        ("NOT", Concept("NOT"), False),
        ("()", Concept("()"), False),
        ("OR gate", Concept("OR gate"), True),
        ("an AND gate", Concept("AND gate"), True),
        ("a street in Portland, OR", Concept("street in Portland, OR"), False),
        ("Portland OR skyline", Concept("Portland OR skyline"), False),
        ('dog "', dog, True),
    ],
)
def test_natural_text_never_raises_and_what_is_not_quite_in_the_language_is_doubted(
    text: str, tree: Query, sure: bool
) -> None:
    assert (parse(text), parse.read(text).sure) == (tree, sure)


def test_too_deep_is_an_error_of_its_own_but_parentheses_without_logic_cost_no_depth() -> None:
    with pytest.raises(QueryTooComplex, match="deeper than 100"):
        parse("NOT " * 200 + "cat")
    assert parse("(" * 400 + "cat AND dog" + ")" * 400) == cat & dog
