"""What an encoder can do on labelled, captioned photographs: detection, caption search, and questions of logic."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.query import Concept, Query
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import score_arrays

Floats = NDArray[np.floating[Any]]

PHRASINGS: dict[str, tuple[str, ...]] = {
    "is": ("a {a}", "there is a {a}", "a photo of a {a}", "with a {a}"),
    "not": ("no {a}", "there is no {a}", "a photo without a {a}", "an image with no {a}"),
    "and": ("a {a} and a {b}", "both a {a} and a {b}", "a {a} together with a {b}", "a photo of a {a} and a {b}"),
    "but_not": ("a {a} but no {b}", "a {a} without a {b}", "a {a} and no {b}", "a photo of a {a} but not a {b}"),
    "or": ("a {a} or a {b}", "either a {a} or a {b}", "a photo of a {a} or a {b}"),
    "neither": ("neither a {a} nor a {b}", "no {a} and no {b}", "without a {a} and without a {b}"),
}
OPPOSITE = {"is": "not", "not": "is", "and": "but_not", "but_not": "and", "or": "neither", "neither": "or"}


def tree(kind: str, a: str, b: str) -> Query:
    """The query a phrasing stands for."""
    first, second = Concept(a), Concept(b)
    trees: dict[str, Query] = {
        "is": first,
        "not": ~first,
        "and": first & second,
        "but_not": first & ~second,
        "or": first | second,
        "neither": ~first & ~second,
    }
    return trees[kind]


def area_under_curve(scores: Floats, truth: NDArray[np.bool_]) -> float:
    """Chance that a random positive outranks a random negative; ties count half."""
    _, index, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[index]
    positives = int(truth.sum())
    negatives = len(truth) - positives
    return float((ranks[truth].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def detection(similarities: Floats, labels: NDArray[np.bool_], *, fewest: int = 1) -> list[float]:
    """AUC of each class that some image shows and some does not; similarities and labels are (images, classes)."""
    usable = (labels.sum(0) >= fewest) & (labels.sum(0) < len(labels))
    return [area_under_curve(similarities[:, j], labels[:, j]) for j in np.flatnonzero(usable)]


def caption_recall(images: Floats, captions: Floats, owners: NDArray[np.int_], *, k: int = 10) -> float:
    """Share of captions whose own image is among the k nearest."""
    similarities = captions @ images.T
    own = similarities[np.arange(len(owners)), owners]
    return float(((similarities > own[:, None]).sum(1) < k).mean())


@dataclass(frozen=True, kw_only=True)
class Question:
    """One image and two texts over the same concepts, of which the first is true."""

    image: int
    kinds: tuple[str, str]
    texts: tuple[str, str]
    a: str
    b: str


def questions(shown: Sequence[Mapping[str, Any]], classes: Sequence[str], *, each: int, seed: int) -> list[Question]:
    """`each` questions for every kind, on images drawn at random; `person` is left out as in FACTOR-Bench."""
    rng = random.Random(seed)
    names = [name for name in classes if name != "person"]
    made: list[Question] = []
    for kind in PHRASINGS:
        count = 0
        while count < each:
            image = rng.randrange(len(shown))
            there = [name for name in names if name in shown[image]]
            absent = [name for name in names if name not in shown[image]]
            wanted = {"is": (1, 1), "not": (0, 2), "and": (2, 0), "but_not": (1, 1), "or": (1, 1), "neither": (0, 2)}
            if len(there) < wanted[kind][0]:
                continue
            pair = rng.sample(there, wanted[kind][0]) + rng.sample(absent, wanted[kind][1])
            if kind == "or" and rng.random() < 0.5:
                pair.reverse()
            kinds = (kind, OPPOSITE[kind])
            texts = [rng.choice(PHRASINGS[k]).format(a=pair[0], b=pair[1]) for k in kinds]
            made.append(Question(image=image, kinds=kinds, texts=(texts[0], texts[1]), a=pair[0], b=pair[1]))
            count += 1
    return made


def forced_choice(
    asked: Sequence[Question],
    images: Floats,
    texts: Mapping[str, Floats],
    concepts: Mapping[str, Floats],
    *,
    calibration: Calibration,
    config: ScoringConfig,
) -> float:
    """Share of questions in which the true text scores higher for the image."""
    right = 0
    for question in asked:
        vector = images[question.image]
        similarities = {name: np.array([vector @ concepts[name]]) for name in (question.a, question.b)}
        scores = [
            score_arrays(
                tree(kind, question.a, question.b),
                np.array([vector @ texts[text]]),
                similarities,
                calibration=calibration,
                config=config,
            )[0]
            for kind, text in zip(question.kinds, question.texts, strict=True)
        ]
        right += scores[0] > scores[1]
    return float(right / len(asked))
