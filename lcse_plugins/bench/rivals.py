"""The ways of answering a logical query that are compared: the plain encoder, what other tools do, and our modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import canonical, leaves
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.tiles import RegionPool
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig

__all__ = ["MODES", "Ranker", "best_score", "make_rankers", "subtraction"]

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
    tiles: FloatArray | None = None,
) -> dict[str, Ranker]:
    """Every way of scoring (n, d) image vectors, by name.

    Args:
        encoder: The encoder of the vectors.
        vectors: (n, d) unit rows.
        calibration: μ and β; by default the encoder's preset.
        modes: Our own ways; the rivals from other tools are always among them.
        tiles: (n, r, d) vectors of the images' tiles; `anchored` then also runs with them.
    """
    rankers: dict[str, Ranker] = {
        "subtraction": lambda parse: subtraction(parse, encoder, vectors),
        "best score": lambda parse: best_score(parse, encoder, vectors),
    }
    for name, config in modes.items():
        scorer = LogicScorer(encoder, calibration=calibration, config=config)
        rankers[name] = _mode_ranker(scorer, VectorPool(vectors))
    if tiles is not None:
        scorer = LogicScorer(encoder, calibration=calibration)
        rankers["anchored, tiles"] = _mode_ranker(scorer, RegionPool.fitted(encoder, vectors, tiles))
    return rankers


def _mode_ranker(scorer: LogicScorer, pool: VectorPool) -> Ranker:
    def rank(parse: Parse) -> NDArray[np.floating]:
        encoded = scorer.encode(parse)
        return encoded.score_similarities(pool.similarities(encoded, slice(0, len(pool))))[0]

    return rank


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
    nothing = np.full((len(vectors), 1), -np.inf, dtype=cosines.dtype)
    positive = np.concatenate([cosines[:, signs > 0], nothing], axis=1).max(axis=1)
    negative = np.concatenate([cosines[:, signs < 0], nothing], axis=1).max(axis=1)
    with np.errstate(invalid="ignore"):
        return np.where(positive > negative, _squashed(positive), -_squashed(negative))


def _squashed(x: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(0.5 * (x / (1.0 + np.abs(x)) + 1.0))


def _signed(parse: Parse) -> tuple[list[str], FloatArray]:
    """The distinct concepts, and 1 or -1 for each."""
    signs = {leaf.text: -1.0 if negated else 1.0 for leaf, negated in leaves(canonical(parse.query))}
    return list(signs), np.array(list(signs.values()), dtype=np.float32)
