"""Build a benchmark of forced choices from labelled photographs, by the published protocol of FACTOR-Bench.

    python -m benchmarks.build_factor photos.jsonl -o factor.jsonl

Every sample shows one image and two captions about the same concepts, of which the labels make one true. The classes
exclude `person`, which is in nearly every picture. No pair of concepts serves more than 5 samples of an operator and no
concept more than 10. The true caption is the first in half of the samples, and there are as many of either polarity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np

from lcse_plugins.bench.factor_file import FactorSample, write_factor
from lcse_plugins.bench.photographs import Half, half_of, take_images
from lcse_plugins.bench.phrasing import AFFIRMED, PHRASINGS, article, determiner, operator_tree, phrase
from lcse_plugins.calibrating.labelled import LabelledImages, read_labels
from lcse_plugins.errors import InvalidOption
from lcse_plugins.query import And, Concept, Not, Or, Query

__all__ = ["PUBLISHED_COUNTS", "build_factor"]

PUBLISHED_COUNTS: Mapping[str, int] = {
    "NOT": 300, "AND": 150, "OR": 150, "BUT_NOT": 250, "NEITHER": 250,
    "DE_MORGAN": 50, "DOUBLE_NEG": 100, "COMM_AND": 150, "COMM_OR": 150,
    "COMPOUND": 145, "NESTED": 100,
}  # fmt: skip
"""Samples of each kind in version 1.0; `NESTED` is ours."""

MAX_PER_PAIR, MAX_PER_CONCEPT = 5, 10
TRIES_PER_SAMPLE = 400

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


def _swapped_concepts(operator: str) -> _Make:
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
    "COMM_AND": (Scene("equivalence", "COMM_AND", 2, 0, _swapped_concepts("AND")),),
    "COMM_OR": (Scene("equivalence", "COMM_OR", 1, 1, _swapped_concepts("OR")),),
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


def build_factor(
    images: LabelledImages,
    *,
    root: str | Path | None = None,
    seed: int = 0,
    counts: Mapping[str, int] = PUBLISHED_COUNTS,
    exclude: str = "person",
) -> list[FactorSample]:
    """Draw samples; the same seed and images give the same ones.

    Args:
        images: Labelled pictures; their labels must be complete over their classes.
        root: The folder that the pictures' paths are written relative to; by default their names alone.
        seed: Of the draw.
        counts: Kind → how many samples are wanted; fewer are made where the caps or the images allow no more.
        exclude: The class that is not asked about.

    Raises:
        InvalidOption: the images allow no sample at all.
    """
    names = [path.relative_to(root).as_posix() if root else path.name for path in images.paths]
    samples: list[FactorSample] = []
    for position, (kind, scenes) in enumerate(SCENES.items()):
        drawn = _Draw(images, names, np.random.default_rng([seed, position]), exclude)
        samples += drawn.samples(kind, scenes, counts.get(kind, 0))
    if not samples:
        raise InvalidOption("these images allow no sample: they need classes that some show and others lack")
    return samples


class _Draw:
    """Draws the samples of one kind under its caps."""

    def __init__(
        self,
        images: LabelledImages,
        names: Sequence[str],
        rng: np.random.Generator,
        exclude: str,
    ) -> None:
        self.images = images
        self.names = names
        self.rng = rng
        self.columns = [i for i, name in enumerate(images.classes) if name != exclude]
        self.pairs: Counter[tuple[int, ...]] = Counter()
        self.concepts: Counter[int] = Counter()
        self.taken: set[tuple[int, ...]] = set()

    def samples(self, kind: str, scenes: Sequence[Scene], wanted: int) -> list[FactorSample]:
        """Draw from the scenes in turn, so that none uses up the caps before another."""
        shares = [wanted * (i + 1) // len(scenes) - wanted * i // len(scenes) for i in range(len(scenes))]
        tries = [iter(range(share * TRIES_PER_SAMPLE)) for share in shares]
        found: list[list[FactorSample]] = [[] for _ in scenes]
        for turn in range(max(shares)):
            for number, scene in enumerate(scenes):
                if turn < shares[number]:
                    sample = self._next(scene, tries[number], f"{kind.lower()}_{number}_{turn:04d}")
                    found[number] += [] if sample is None else [sample]
            if any(scene.polarity for scene in scenes) and any(
                len(made) < min(turn + 1, share) for made, share in zip(found, shares, strict=True)
            ):
                found = [made[:turn] for made in found]
                break
        return self._placed(found)

    def _placed(self, found: Sequence[Sequence[FactorSample]]) -> list[FactorSample]:
        """All samples, the captions of every other one swapped, at random places of each scene."""
        samples: list[FactorSample] = []
        for made in found:
            swaps = self.rng.permutation(np.arange(len(samples), len(samples) + len(made)) % 2)
            samples += [_swapped(sample) if swap else sample for sample, swap in zip(made, swaps, strict=True)]
        return samples

    def _next(self, scene: Scene, tries: Iterator[int], name: str) -> FactorSample | None:
        for _ in tries:
            image = int(self.rng.integers(len(self.images)))
            chosen = self._choose(image, scene)
            if chosen is not None:
                return self._sample(name, image, scene, *chosen)
        return None

    def _choose(self, image: int, scene: Scene) -> tuple[list[int], list[int]] | None:
        row = self.images.labels[image]
        free = [c for c in self.columns if self.concepts[c] < MAX_PER_CONCEPT]
        there, lacking = [c for c in free if row[c]], [c for c in free if not row[c]]
        if len(there) < scene.present or len(lacking) < scene.absent:
            return None
        present = self.rng.choice(there, scene.present, replace=False).tolist() if scene.present else []
        absent = self.rng.choice(lacking, scene.absent, replace=False).tolist() if scene.absent else []
        involved = sorted([*present, *absent])
        pairs = list(combinations(involved, 2))
        if (image, *involved) in self.taken or any(self.pairs[pair] >= MAX_PER_PAIR for pair in pairs):
            return None
        self.taken.add((image, *involved))
        self.pairs.update(pairs)
        self.concepts.update(involved)
        return present, absent

    def _sample(self, name: str, image: int, scene: Scene, present: list[int], absent: list[int]) -> FactorSample:
        classes = self.images.classes
        there, lacking = [classes[c] for c in present], [classes[c] for c in absent]
        true, other = scene.make(self.rng, there, lacking)
        equivalence = scene.test_type == "equivalence"
        meta = {"concepts": [*there, *lacking], "polarity": scene.polarity}
        return FactorSample(
            sample_id=name,
            test_type=scene.test_type,
            operator=scene.operator,
            image=self.names[image],
            caption_a=true[0],
            caption_b=other[0],
            correct="both" if equivalence else "a",
            parse_a=true[1],
            parse_b=other[1],
            meta=meta,
        )


def _swapped(sample: FactorSample) -> FactorSample:
    return replace(
        sample,
        caption_a=sample.caption_b,
        caption_b=sample.caption_a,
        correct="both" if sample.correct == "both" else "b",
        parse_a=sample.parse_b,
        parse_b=sample.parse_a,
    )


@click.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.option("-o", "target", type=click.Path(path_type=Path), required=True, help="File to write.")
@click.option("--half", type=click.Choice(["A", "B"]))
def main(labels: Path, target: Path, half: Half | None) -> None:
    """Write a benchmark made from LABELS."""
    images = read_labels(labels)
    if half is not None:
        images = take_images(images, half_of(images, half))
    samples = build_factor(images, root=labels.parent)
    write_factor(samples, target)
    click.echo(f"wrote {len(samples)} samples to {target}: {dict(Counter(s.operator for s in samples))}")


if __name__ == "__main__":
    main()
