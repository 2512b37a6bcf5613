"""Build a benchmark of forced choices from labelled photographs, by the published protocol of FACTOR-Bench.

    python -m benchmarks.build_factor photos.jsonl factor.jsonl

Every sample shows one image and two captions about the same concepts, of which the labels make one true. The classes
exclude `person`, which is in nearly every picture. No pair of concepts serves more than 5 samples of a kind and no
concept more than 10. The true caption is the first in half of the samples, and there are as many of either polarity.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator

from lcse_plugins.bench.factor import FactorSample, write_factor
from lcse_plugins.bench.phrasing import PHRASINGS, article, operator_tree, phrase
from lcse_plugins.calibrating.labelled import LabelledImages, read_labels
from lcse_plugins.query import And, Concept, Query

__all__ = ["PUBLISHED_COUNTS", "build_factor"]

PUBLISHED_COUNTS: Mapping[str, int] = {
    "NOT": 300, "AND": 150, "OR": 150, "BUT_NOT": 250, "NEITHER": 250,
    "DE_MORGAN": 50, "DOUBLE_NEG": 100, "COMM_AND": 150, "COMM_OR": 150,
    "COMPOUND": 145, "NESTED": 100,
}  # fmt: skip
"""Samples of each kind in version 1.0; `NESTED` is ours."""

AFFIRMED = ("{an_a}", "there is {an_a}", "with {an_a}", "containing {a}", "{a} present", "{an_a} in the picture")
"""Phrasings of one concept, affirmed."""

EXCLUDED = "person"
MAX_PER_PAIR, MAX_PER_CONCEPT, TRIES = 5, 10, 400

Caption: TypeAlias = tuple[str, Query]
Captions: TypeAlias = tuple[Caption, Caption]
Make: TypeAlias = Callable[[Generator, list[str], list[str]], Captions]
"""From what an image shows and what it lacks to two captions: one that is true of it, and another."""


class Scene(NamedTuple):
    """How many concepts an image must show and lack, and the captions made of them."""

    present: int
    absent: int
    make: Make
    polarity: str | None = None


def _one(rng: Generator, patterns: Sequence[str]) -> str:
    return patterns[int(rng.integers(len(patterns)))]


def _said(rng: Generator, operator: str, a: str, b: str = "") -> Caption:
    return phrase(_one(rng, PHRASINGS[operator]), a, b), operator_tree(operator, a, b)


def _affirmed(rng: Generator, a: str) -> Caption:
    return phrase(_one(rng, AFFIRMED), a), Concept(a)


def _shuffled(rng: Generator, *names: str) -> list[str]:
    return [names[i] for i in rng.permutation(len(names))]


def _either(true: str, other: str) -> Make:
    """One operator against another over the same two concepts; BUT_NOT names what is there first."""

    def make(rng: Generator, there: list[str], lacking: list[str]) -> Captions:
        names = [*there, *lacking] if "BUT_NOT" in (true, other) else _shuffled(rng, *there, *lacking)
        return _said(rng, true, *names), _said(rng, other, *names)

    return make


def _swapped_concepts(operator: str) -> Make:
    """The same phrasing with its two concepts in either order."""

    def make(rng: Generator, there: list[str], lacking: list[str]) -> Captions:
        a, b = _shuffled(rng, *there, *lacking)
        pattern = _one(rng, PHRASINGS[operator])
        one, other = ((phrase(pattern, *names), operator_tree(operator, *names)) for names in ((a, b), (b, a)))
        return one, other

    return make


def _one_of_two(rng: Generator, there: list[str], lacking: list[str]) -> Captions:
    """`either … or …` against `both … and …`: but for the connectors the same words."""
    a, b = _shuffled(rng, *there, *lacking)
    pattern = _one(rng, PHRASINGS["OR"])
    joined = pattern.replace("either ", "both ").replace(" or ", " and ")
    return (phrase(pattern, a, b), operator_tree("OR", a, b)), (phrase(joined, a, b), operator_tree("AND", a, b))


def _de_morgan(rng: Generator, there: list[str], lacking: list[str]) -> Captions:
    a, b = _shuffled(rng, *there, *lacking)
    one, other = Concept(a), Concept(b)
    return (f"not both {article(a)} and {article(b)}", ~(one & other)), (f"either no {a} or no {b}", ~one | ~other)


def _compound(rng: Generator, there: list[str], lacking: list[str]) -> Captions:
    order = _shuffled(rng, *there, *lacking)

    def caption(shown: list[str]) -> Caption:
        some = {name: article(name) if article(name) != name else f"some {name}" for name in order}
        words = [some[name] if name in shown else f"no {name}" for name in order]
        return " and ".join(words), And(tuple(Concept(name) if name in shown else ~Concept(name) for name in order))

    return caption(there), caption(lacking)


def _nested(rng: Generator, there: list[str], lacking: list[str]) -> Captions:
    a, b = _shuffled(rng, there[0], lacking[0])
    third = [*there[1:], *lacking[1:]][0]
    either, either_tree = f"either {article(a)} or {article(b)}", Concept(a) | Concept(b)
    without = f"{either}, but no {third}", either_tree & ~Concept(third)
    with_it = f"{either}, and also {article(third)}", either_tree & Concept(third)
    return (with_it, without) if third in there else (without, with_it)


def _absent(rng: Generator, there: list[str], lacking: list[str]) -> Captions:
    return _said(rng, "NOT", *lacking), _affirmed(rng, *lacking)


def _present(rng: Generator, there: list[str], lacking: list[str]) -> Captions:
    return _affirmed(rng, *there), _said(rng, "NOT", *there)


def _only_one(rng: Generator, there: list[str], lacking: list[str]) -> Captions:
    return (article(*there), Concept(*there)), _said(rng, "AND", *_shuffled(rng, *there, *lacking))


def _double_negation(rng: Generator, there: list[str], lacking: list[str]) -> Captions:
    return (article(*there), Concept(*there)), (f"{there[0]} is not missing", ~~Concept(*there))


YES, NO = "affirmation_correct", "negation_correct"
KINDS: Mapping[str, tuple[str, tuple[Scene, ...]]] = {
    "NOT": ("operator", (Scene(0, 1, _absent, NO), Scene(1, 0, _present, YES))),
    "AND": ("operator", (Scene(1, 1, _only_one),)),
    "OR": ("operator", (Scene(1, 1, _one_of_two),)),
    "BUT_NOT": ("operator", (Scene(1, 1, _either("BUT_NOT", "AND"), NO), Scene(2, 0, _either("AND", "BUT_NOT"), YES))),
    "NEITHER": ("operator", (Scene(0, 2, _either("NEITHER", "OR"), NO), Scene(1, 1, _either("OR", "NEITHER"), YES))),
    "DE_MORGAN": ("equivalence", (Scene(1, 1, _de_morgan),)),
    "DOUBLE_NEG": ("equivalence", (Scene(1, 0, _double_negation),)),
    "COMM_AND": ("equivalence", (Scene(2, 0, _swapped_concepts("AND")),)),
    "COMM_OR": ("equivalence", (Scene(1, 1, _swapped_concepts("OR")),)),
    "COMPOUND": ("compound", (Scene(1, 2, _compound), Scene(2, 1, _compound), Scene(2, 2, _compound))),
    "NESTED": ("nested", (Scene(1, 2, _nested, NO), Scene(2, 1, _nested, YES))),
}
"""Kind of sample → its test type, and the scenes it is drawn from in turn."""


def build_factor(
    images: LabelledImages, *, root: Path | None = None, counts: Mapping[str, int] = PUBLISHED_COUNTS
) -> list[FactorSample]:
    """Draw samples; the same images give the same ones.

    Args:
        images: Labelled pictures; their labels must be complete over their classes.
        root: The folder that the pictures' paths are written relative to; by default their names alone.
        counts: Kind → how many samples are wanted; fewer are made where the caps or the images allow no more.
    """
    names = [path.relative_to(root).as_posix() if root else path.name for path in images.paths]
    samples: list[FactorSample] = []
    for position, (kind, count) in enumerate(counts.items()):
        samples += _drawn(images, names, kind, count, np.random.default_rng(position))
    return samples


def _drawn(images: LabelledImages, names: Sequence[str], kind: str, wanted: int, rng: Generator) -> list[FactorSample]:
    """Samples of one kind, from its scenes in turn, until a scene finds no more."""
    test_type, scenes = KINDS[kind]
    columns = [i for i, name in enumerate(images.classes) if name != EXCLUDED]
    pairs: Counter[tuple[int, int]] = Counter()
    uses: Counter[int] = Counter()
    taken: set[tuple[int, ...]] = set()

    def choose(scene: Scene) -> tuple[int, list[str], list[str]] | None:
        """An image, and what of it is named, within the caps."""
        for _ in range(TRIES):
            image = int(rng.integers(len(images)))
            free = rng.permutation([c for c in columns if uses[c] < MAX_PER_CONCEPT]).tolist()
            there = [c for c in free if images.labels[image, c]][: scene.present]
            lacking = [c for c in free if not images.labels[image, c]][: scene.absent]
            named = sorted([*there, *lacking])
            together = list(combinations(named, 2))
            short = len(named) < scene.present + scene.absent
            if short or (image, *named) in taken or any(pairs[pair] >= MAX_PER_PAIR for pair in together):
                continue
            taken.add((image, *named))
            pairs.update(together)
            uses.update(named)
            return image, [images.classes[c] for c in there], [images.classes[c] for c in lacking]
        return None

    samples: list[FactorSample] = []
    for turn in range(wanted):
        scene = scenes[turn % len(scenes)]
        if (chosen := choose(scene)) is None:
            return samples[: len(samples) - len(samples) % len(scenes)]  # as many of each scene
        image, there, lacking = chosen
        first, second = scene.make(rng, there, lacking)
        swap = (turn // len(scenes) + turn % len(scenes)) % 2 == 1  # in half of each scene
        if swap:
            first, second = second, first
        samples.append(
            FactorSample(
                sample_id=f"{kind.lower()}_{turn:04d}",
                test_type=test_type,
                operator=kind,
                image=names[image],
                caption_a=first[0],
                caption_b=second[0],
                correct="both" if test_type == "equivalence" else "b" if swap else "a",
                parse_a=first[1],
                parse_b=second[1],
                meta={"concepts": [*there, *lacking], "polarity": scene.polarity},
            )
        )
    return samples


if __name__ == "__main__":
    labels, target = map(Path, sys.argv[1:])
    made = build_factor(read_labels(labels), root=labels.parent)
    write_factor(made, target)
    print(f"wrote {len(made)} samples to {target}: {dict(Counter(sample.operator for sample in made))}")
