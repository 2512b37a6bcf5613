"""Build a benchmark of forced choices from any labelled photographs, by the published protocol.

Every sample shows one image and two captions about the same concepts, of which the labels make one true. The classes
exclude `person`, which is in nearly every picture; no pair of concepts serves more than 5 samples of an operator and no
concept more than 10; phrasings, answer positions and polarity are balanced by drawing; a detector may veto labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lcse_plugins.bench.factor import FactorSample
from lcse_plugins.bench.photographs import Progress, names_of
from lcse_plugins.bench.phrasing import AFFIRMED, PHRASINGS, article, operator_tree, phrase
from lcse_plugins.errors import InvalidOption
from lcse_plugins.labelled import LabelledImages
from lcse_plugins.query import And, Concept, Not, Or, Query

__all__ = ["PUBLISHED_COUNTS", "Detector", "build_factor"]

Detector: TypeAlias = Callable[[Path, str], bool]
"""Whether a picture shows a concept, by other means than its labels; it vetoes samples whose labels it contradicts."""

PUBLISHED_COUNTS: Mapping[str, int] = {
    "NOT": 300, "AND": 150, "OR": 150, "BUT_NOT": 250, "NEITHER": 250,
    "DE_MORGAN": 50, "DOUBLE_NEG": 100, "COMM_AND": 150, "COMM_OR": 150,
    "COMPOUND": 145, "NESTED": 100,
}  # fmt: skip
"""Samples of each kind in version 1.0; `NESTED` is ours."""

EQUIVALENCES: Mapping[str, str] = {
    "DE_MORGAN": "de_morgan", "DOUBLE_NEG": "double_negation", "COMM_AND": "commutativity", "COMM_OR": "commutativity",
}  # fmt: skip
"""Kind → its name among the published equivalences."""

TRIES_PER_SAMPLE = 400

_Caption: TypeAlias = tuple[str, Query]
_Make: TypeAlias = Callable[[np.random.Generator, Sequence[str], Sequence[str]], tuple[_Caption, _Caption]]


@dataclass(frozen=True)
class _Scene:
    """What an image must show and lack, and the captions (true, other) made of it."""

    test_type: str
    operator: str
    present: int
    absent: int
    make: _Make
    polarity: str | None = None


def build_factor(
    images: LabelledImages,
    *,
    root: str | Path | None = None,
    seed: int = 0,
    counts: Mapping[str, int] = PUBLISHED_COUNTS,
    exclude: Sequence[str] = ("person",),
    max_per_pair: int = 5,
    max_per_concept: int = 10,
    detector: Detector | None = None,
    progress: Progress | None = None,
) -> list[FactorSample]:
    """Draw samples; the same seed and images give the same ones.

    Args:
        images: Labelled pictures; their labels must be complete over their classes.
        root: The folder that the pictures' paths are written relative to; by default the one they have in common.
        seed: Of the draw.
        counts: Kind → how many samples are wanted; fewer are made where the caps or the images allow no more, and then
            of both polarities alike.
        exclude: Classes that are not asked about.
        max_per_pair: Samples of one kind about one pair of concepts.
        max_per_concept: Samples of one kind about one concept.
        detector: Validates presence and absence.
        progress: Called with (done, total) kinds.

    Raises:
        InvalidOption: `counts` names an unknown kind, or the images allow no sample at all.
    """
    unknown = sorted(set(counts) - set(_SCENES))
    if unknown:
        raise InvalidOption(f"unknown kinds of samples {unknown}; known are {', '.join(_SCENES)}")
    names = names_of(images.paths, root)
    samples: list[FactorSample] = []
    for position, (kind, scenes) in enumerate(_SCENES.items()):
        rng = np.random.default_rng([seed, position])
        drawn = _Draw(images, names, rng, frozenset(exclude), max_per_pair, max_per_concept, detector)
        samples += drawn.samples(kind, scenes, counts.get(kind, 0))
        if progress is not None:
            progress(position + 1, len(_SCENES))
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
        exclude: frozenset[str],
        max_per_pair: int,
        max_per_concept: int,
        detector: Detector | None,
    ) -> None:
        self.images = images
        self.names = names
        self.rng = rng
        self.columns = [i for i, name in enumerate(images.classes) if name not in exclude]
        self.max_per_pair = max_per_pair
        self.max_per_concept = max_per_concept
        self.detector = detector
        self.pairs: Counter[tuple[int, ...]] = Counter()
        self.concepts: Counter[int] = Counter()
        self.taken: set[tuple[int, ...]] = set()

    def samples(self, kind: str, scenes: Sequence[_Scene], wanted: int) -> list[FactorSample]:
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
        return [sample for made in found for sample in made]

    def _next(self, scene: _Scene, tries: Iterator[int], name: str) -> FactorSample | None:
        for _ in tries:
            image = int(self.rng.integers(len(self.images)))
            chosen = self._choose(image, scene)
            if chosen is not None:
                return self._sample(name, image, scene, *chosen)
        return None

    def _choose(self, image: int, scene: _Scene) -> tuple[list[int], list[int]] | None:
        row = self.images.labels[image]
        free = [c for c in self.columns if self.concepts[c] < self.max_per_concept]
        there, lacking = [c for c in free if row[c]], [c for c in free if not row[c]]
        if len(there) < scene.present or len(lacking) < scene.absent:
            return None
        present = self.rng.choice(there, scene.present, replace=False).tolist() if scene.present else []
        absent = self.rng.choice(lacking, scene.absent, replace=False).tolist() if scene.absent else []
        involved = sorted([*present, *absent])
        pairs = list(combinations(involved, 2))
        if (image, *involved) in self.taken or any(self.pairs[pair] >= self.max_per_pair for pair in pairs):
            return None
        if self.detector is not None:
            file = self.images.paths[image]
            if any(self.detector(file, self.images.classes[c]) != bool(row[c]) for c in involved):
                return None
        self.taken.add((image, *involved))
        self.pairs.update(pairs)
        self.concepts.update(involved)
        return present, absent

    def _sample(self, name: str, image: int, scene: _Scene, present: list[int], absent: list[int]) -> FactorSample:
        classes = self.images.classes
        there, lacking = [classes[c] for c in present], [classes[c] for c in absent]
        true, other = scene.make(self.rng, there, lacking)
        swapped = bool(self.rng.integers(2))
        first, second = (other, true) if swapped else (true, other)
        equivalence = EQUIVALENCES.get(scene.operator)
        meta: dict[str, Any] = {
            "position_swapped": swapped,
            "detector_validated": self.detector is not None,
            "concepts": [*there, *lacking],
            "present": there,
            "absent": lacking,
            "polarity": scene.polarity,
            "equivalence_type": equivalence,
            "n_concepts": len(there) + len(lacking),
        }
        return FactorSample(
            sample_id=name,
            test_type=scene.test_type,
            operator=scene.operator,
            image=self.names[image],
            caption_a=first[0],
            caption_b=second[0],
            correct="both" if equivalence else ("b" if swapped else "a"),
            parse_a=first[1],
            parse_b=second[1],
            meta=meta,
        )


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
        words = [article(name) if name in shown else f"no {name}" for name in order]
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


_SCENES: Mapping[str, tuple[_Scene, ...]] = {
    "NOT": (
        _Scene("operator", "NOT", 0, 1, _absent_one, "negation_correct"),
        _Scene("operator", "NOT", 1, 0, _present_one, "affirmation_correct"),
    ),
    "AND": (_Scene("operator", "AND", 1, 1, _only_one),),
    "OR": (_Scene("operator", "OR", 1, 1, _either("OR", "AND")),),
    "BUT_NOT": (
        _Scene("operator", "BUT_NOT", 1, 1, _either("BUT_NOT", "AND"), "negation_correct"),
        _Scene("operator", "BUT_NOT", 2, 0, _either("AND", "BUT_NOT"), "affirmation_correct"),
    ),
    "NEITHER": (
        _Scene("operator", "NEITHER", 0, 2, _either("NEITHER", "OR"), "negation_correct"),
        _Scene("operator", "NEITHER", 1, 1, _either("OR", "NEITHER"), "affirmation_correct"),
    ),
    "DE_MORGAN": (_Scene("equivalence", "DE_MORGAN", 1, 1, _de_morgan),),
    "DOUBLE_NEG": (_Scene("equivalence", "DOUBLE_NEG", 1, 0, _double_negation),),
    "COMM_AND": (_Scene("equivalence", "COMM_AND", 2, 0, _swapped("AND")),),
    "COMM_OR": (_Scene("equivalence", "COMM_OR", 1, 1, _swapped("OR")),),
    "COMPOUND": (
        _Scene("compound", "COMPOUND", 1, 2, _compound),
        _Scene("compound", "COMPOUND", 2, 1, _compound),
        _Scene("compound", "COMPOUND", 2, 2, _compound),
    ),
    "NESTED": (
        _Scene("nested", "NESTED", 1, 2, _nested_but_not, "negation_correct"),
        _Scene("nested", "NESTED", 2, 1, _nested_but_not, "affirmation_correct"),
    ),
}
