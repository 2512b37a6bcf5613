"""What the samples of a benchmark of forced choices show, and the captions made of it; `factor_builder` draws them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lcse_plugins.bench.phrasing import AFFIRMED, PHRASINGS, article, determiner, operator_tree, phrase
from lcse_plugins.query import And, Concept, Not, Or, Query

__all__ = ["SCENES", "Scene"]

_Caption: TypeAlias = tuple[str, Query]
_Make: TypeAlias = Callable[[np.random.Generator, Sequence[str], Sequence[str]], tuple[_Caption, _Caption]]


@dataclass(frozen=True)
class Scene:
    """What an image must show and lack, and the captions (true, other) made of it."""

    test_type: str
    operator: str
    present: int
    absent: int
    make: _Make
    polarity: str | None = None


def _said(rng: np.random.Generator, operator: str, a: str, b: str) -> _Caption:
    patterns = PHRASINGS[operator]
    return phrase(patterns[int(rng.integers(len(patterns)))], a, b), operator_tree(operator, a, b)


def _affirmed(rng: np.random.Generator, a: str) -> _Caption:
    return phrase(AFFIRMED[int(rng.integers(len(AFFIRMED)))], a), Concept(a)


def _shuffled(rng: np.random.Generator, *names: str) -> list[str]:
    return [names[i] for i in rng.permutation(len(names))]


def _either(true: str, other: str) -> _Make:
    """One operator against another over the same two concepts, in the order present, absent where they differ."""

    def make(rng: np.random.Generator, present: Sequence[str], absent: Sequence[str]) -> tuple[_Caption, _Caption]:
        a, b = (*present, *absent) if "BUT_NOT" in (true, other) else _shuffled(rng, *present, *absent)
        return _said(rng, true, a, b), _said(rng, other, a, b)

    return make


def _one_of_two(rng: np.random.Generator, present: Sequence[str], absent: Sequence[str]) -> tuple[_Caption, _Caption]:
    """`either … or …` against `both … and …`: but for the connectors the same words."""
    a, b = _shuffled(rng, *present, *absent)
    pattern = PHRASINGS["OR"][int(rng.integers(len(PHRASINGS["OR"])))]
    joined = pattern.replace("either ", "both ").replace(" or ", " and ")
    return (phrase(pattern, a, b), operator_tree("OR", a, b)), (phrase(joined, a, b), operator_tree("AND", a, b))


def _absent_one(rng: np.random.Generator, present: Sequence[str], absent: Sequence[str]) -> tuple[_Caption, _Caption]:
    return _said(rng, "NOT", absent[0], ""), _affirmed(rng, absent[0])


def _present_one(rng: np.random.Generator, present: Sequence[str], absent: Sequence[str]) -> tuple[_Caption, _Caption]:
    return _affirmed(rng, present[0]), _said(rng, "NOT", present[0], "")


def _only_one(rng: np.random.Generator, present: Sequence[str], absent: Sequence[str]) -> tuple[_Caption, _Caption]:
    return (article(present[0]), Concept(present[0])), _said(rng, "AND", *_shuffled(rng, present[0], absent[0]))


def _de_morgan(rng: np.random.Generator, present: Sequence[str], absent: Sequence[str]) -> tuple[_Caption, _Caption]:
    a, b = _shuffled(rng, *present, *absent)
    not_both = Not(And((Concept(a), Concept(b))))
    return (f"not both {article(a)} and {article(b)}", not_both), (
        f"either no {a} or no {b}",
        Or((Not(Concept(a)), Not(Concept(b)))),
    )


def _double_negation(
    rng: np.random.Generator, present: Sequence[str], absent: Sequence[str]
) -> tuple[_Caption, _Caption]:
    a = present[0]
    return (article(a), Concept(a)), (f"{a} is not missing", Not(Not(Concept(a))))


def _swapped(operator: str) -> _Make:
    def make(rng: np.random.Generator, present: Sequence[str], absent: Sequence[str]) -> tuple[_Caption, _Caption]:
        a, b = _shuffled(rng, *present, *absent)
        patterns = PHRASINGS[operator]
        pattern = patterns[int(rng.integers(len(patterns)))]
        return (phrase(pattern, a, b), operator_tree(operator, a, b)), (
            phrase(pattern, b, a),
            operator_tree(operator, b, a),
        )

    return make


def _compound(rng: np.random.Generator, present: Sequence[str], absent: Sequence[str]) -> tuple[_Caption, _Caption]:
    order = _shuffled(rng, *present, *absent)

    def caption(shown: frozenset[str]) -> _Caption:
        words = [determiner(name) if name in shown else f"no {name}" for name in order]
        leaves = [Concept(name) if name in shown else Not(Concept(name)) for name in order]
        return " and ".join(words), And(tuple(leaves))

    return caption(frozenset(present)), caption(frozenset(absent))


def _nested_but_not(
    rng: np.random.Generator, present: Sequence[str], absent: Sequence[str]
) -> tuple[_Caption, _Caption]:
    a, b = _shuffled(rng, present[0], absent[0])
    third = present[1] if len(present) > 1 else absent[1]
    either = Or((Concept(a), Concept(b)))
    without = (f"either {article(a)} or {article(b)}, but no {third}", And((either, Not(Concept(third)))))
    with_it = (f"either {article(a)} or {article(b)}, and also {article(third)}", And((either, Concept(third))))
    return (with_it, without) if len(present) > 1 else (without, with_it)


SCENES: Mapping[str, tuple[Scene, ...]] = {
    "NOT": (
        Scene("operator", "NOT", 0, 1, _absent_one, "negation_correct"),
        Scene("operator", "NOT", 1, 0, _present_one, "affirmation_correct"),
    ),
    "AND": (Scene("operator", "AND", 1, 1, _only_one),),
    "OR": (Scene("operator", "OR", 1, 1, _one_of_two),),
    "BUT_NOT": (
        Scene("operator", "BUT_NOT", 1, 1, _either("BUT_NOT", "AND"), "negation_correct"),
        Scene("operator", "BUT_NOT", 2, 0, _either("AND", "BUT_NOT"), "affirmation_correct"),
    ),
    "NEITHER": (
        Scene("operator", "NEITHER", 0, 2, _either("NEITHER", "OR"), "negation_correct"),
        Scene("operator", "NEITHER", 1, 1, _either("OR", "NEITHER"), "affirmation_correct"),
    ),
    "DE_MORGAN": (Scene("equivalence", "DE_MORGAN", 1, 1, _de_morgan),),
    "DOUBLE_NEG": (Scene("equivalence", "DOUBLE_NEG", 1, 0, _double_negation),),
    "COMM_AND": (Scene("equivalence", "COMM_AND", 2, 0, _swapped("AND")),),
    "COMM_OR": (Scene("equivalence", "COMM_OR", 1, 1, _swapped("OR")),),
    "COMPOUND": (
        Scene("compound", "COMPOUND", 1, 2, _compound),
        Scene("compound", "COMPOUND", 2, 1, _compound),
        Scene("compound", "COMPOUND", 2, 2, _compound),
    ),
    "NESTED": (
        Scene("nested", "NESTED", 1, 2, _nested_but_not, "negation_correct"),
        Scene("nested", "NESTED", 2, 1, _nested_but_not, "affirmation_correct"),
    ),
}
"""Kind of sample → the scenes it is drawn from, in equal shares."""
