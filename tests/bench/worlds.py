"""Small labelled worlds for which the answers are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.query import And, Concept, Not, Or, Query
from lcse_plugins.testing import ToyEncoder

CLASSES = ("dog", "cat", "umbrella", "bench", "kite", "person")


def holds(query: Query, shown: set[str]) -> bool:
    """Whether a query is true of what is shown, by the truth tables."""
    match query:
        case Concept(text):
            return text in shown
        case Not(child):
            return not holds(child, shown)
        case And(children):
            return all(holds(child, shown) for child in children)
        case Or(children):
            return any(holds(child, shown) for child in children)
    raise AssertionError(query)


def toy_world(*, images: int = 120, seed: int = 0) -> tuple[ToyEncoder, LabelledImages, FloatArray]:
    """An encoder that hears words and no operators, images named by what they show, and their vectors."""
    rng = np.random.default_rng(seed)
    labels = rng.random((images, len(CLASSES))) < 0.35
    labels[np.arange(images), rng.integers(len(CLASSES), size=images)] = True
    names = [
        Path(
            " ".join([*(name for name, shown in zip(CLASSES, row, strict=True) if shown), f"scenery{i % 7}"])
            + f" {i:03d}.jpg"
        )
        for i, row in enumerate(labels)
    ]
    encoder = ToyEncoder(dimension=256)
    vectors = encoder.encode_images([Path(name.stem.rsplit(" ", 1)[0]) for name in names])
    return encoder, LabelledImages(paths=tuple(names), labels=labels, classes=CLASSES), vectors
