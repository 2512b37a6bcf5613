"""Build a benchmark of forced choices from any labelled photographs, by the published protocol.

Every sample shows one image and two captions about the same concepts, of which the labels make one true. The classes
exclude `person`, which is in nearly every picture; no pair of concepts serves more than 5 samples of an operator and no
concept more than 10; the true caption is the first in half of the samples, and of both polarities there are as many;
phrasings are drawn; a detector may veto labels.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lcse_plugins.bench.factor_file import FactorSample
from lcse_plugins.bench.factor_scenes import SCENES, Scene
from lcse_plugins.bench.photographs import Progress, names_of
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.errors import InvalidOption

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
        exclude: Classes that are not asked about, however they are written.
        max_per_pair: Samples of one kind about one pair of concepts.
        max_per_concept: Samples of one kind about one concept.
        detector: Validates presence and absence; it is asked once for each picture and class.
        progress: Called with (done, total) kinds.

    Raises:
        InvalidOption: `counts` names an unknown kind, or the images allow no sample at all.
    """
    unknown = sorted(set(counts) - set(SCENES))
    if unknown:
        raise InvalidOption(f"unknown kinds of samples {unknown}; known are {', '.join(SCENES)}")
    names = names_of(images.paths, root)
    excluded = frozenset(name.casefold() for name in exclude)
    asked = None if detector is None else functools.cache(detector)
    samples: list[FactorSample] = []
    for position, (kind, scenes) in enumerate(SCENES.items()):
        rng = np.random.default_rng([seed, position])
        drawn = _Draw(images, names, rng, excluded, max_per_pair, max_per_concept, asked)
        samples += drawn.samples(kind, scenes, counts.get(kind, 0))
        if progress is not None:
            progress(position + 1, len(SCENES))
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
        self.columns = [i for i, name in enumerate(images.classes) if name.casefold() not in exclude]
        self.max_per_pair = max_per_pair
        self.max_per_concept = max_per_concept
        self.detector = detector
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

    def _sample(self, name: str, image: int, scene: Scene, present: list[int], absent: list[int]) -> FactorSample:
        classes = self.images.classes
        there, lacking = [classes[c] for c in present], [classes[c] for c in absent]
        true, other = scene.make(self.rng, there, lacking)
        equivalence = EQUIVALENCES.get(scene.operator)
        meta: dict[str, Any] = {
            "position_swapped": False,
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
            image_id=_number(self.images.paths[image]),
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
        meta={**sample.meta, "position_swapped": True},
    )


def _number(picture: Path) -> int | None:
    """COCO's number of a picture, which is its file's name; None for other names."""
    return int(picture.stem) if picture.stem.isdecimal() and picture.stem.isascii() else None
