"""The ways of answering a logical query that are compared: the plain encoder, what other tools do, and our modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import canonical, leaves
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig

__all__ = ["MODES", "Ranker", "best_score", "make_rankers", "score_all", "subtraction"]

Ranker: TypeAlias = Callable[[Parse], NDArray[np.floating]]
"""(n,) scores of all images under a query that has been read."""

MODES: Mapping[str, ScoringConfig] = {
    "holistic": ScoringConfig(mode="holistic"),
    "lcse": ScoringConfig(mode="lcse"),
    "factored": ScoringConfig(mode="factored"),
    "routed": ScoringConfig(mode="routed"),
    "anchored, power mean": ScoringConfig(mode="anchored", aggregator="power"),
    "anchored": ScoringConfig(mode="anchored"),
}
"""Name in reports → how it scores; the last is the default."""


def make_rankers(
    encoder: Encoder,
    vectors: FloatArray,
    *,
    calibration: Calibration | None = None,
    modes: Mapping[str, ScoringConfig] = MODES,
) -> dict[str, Ranker]:
    """Every way of scoring (n, d) image vectors, by name: what other tools do, and our modes."""
    rankers: dict[str, Ranker] = {
        "subtraction": lambda parse: subtraction(parse, encoder, vectors),
        "best score": lambda parse: best_score(parse, encoder, vectors),
    }
    for name, config in modes.items():
        rankers[name] = _mode_ranker(LogicScorer(encoder, calibration=calibration, config=config), vectors)
    return rankers


def _mode_ranker(scorer: LogicScorer, vectors: FloatArray) -> Ranker:
    return lambda parse: score_all(scorer, parse, vectors)


def score_all(scorer: LogicScorer, query: Parse | str, vectors: FloatArray) -> NDArray[np.floating]:
    """(n,) scores of (n, d) image vectors under a query."""
    encoded = scorer.encode(query)
    return encoded.score_similarities(vectors @ encoded.matrix.T)[0]


def subtraction(parse: Parse, encoder: Encoder, vectors: FloatArray) -> NDArray[np.floating]:
    """(n,) similarity to the sum of the affirmed concepts less the negated ones: arithmetic on vectors."""
    names, signs = _signed(parse)
    return np.asarray(vectors @ (signs @ concept_vectors(encoder, names)))


def best_score(parse: Parse, encoder: Encoder, vectors: FloatArray) -> NDArray[np.floating]:
    """(n,) Qdrant's recommendation by `best_score`, with concepts as positive and negative examples.

    The nearest positive example gives the score where it is nearer than every negative one. Elsewhere the nearest
    negative example does, and counts against the image.
    """
    names, signs = _signed(parse)
    rows = concept_vectors(encoder, names)
    cosines = vectors @ (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T
    positive = cosines[:, signs > 0].max(axis=1, initial=-np.inf)
    negative = cosines[:, signs < 0].max(axis=1, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        return np.where(positive > negative, _squashed(positive), -_squashed(negative))


def _squashed(x: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(0.5 * (x / (1.0 + np.abs(x)) + 1.0))


def _signed(parse: Parse) -> tuple[list[str], FloatArray]:
    """The distinct concepts, and 1 or -1 for each."""
    signs = {leaf.text: -1.0 if negated else 1.0 for leaf, negated in leaves(canonical(parse.query))}
    return list(signs), np.array(list(signs.values()), dtype=np.float32)
