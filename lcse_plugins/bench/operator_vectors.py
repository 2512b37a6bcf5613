"""What an operator does to a text vector: little, and not in the direction that would help.

A text of two concepts with an operator is compared with the same two concepts side by side. Their difference, the
*displacement*, is all that the operator adds. The *needed* direction is away from what the query excludes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.bench.metrics import area_under_curve
from lcse_plugins.bench.phrasing import article, phrase
from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors

__all__ = ["AMPLIFICATIONS", "OperatorVectors", "measure_operator_vectors"]

AMPLIFICATIONS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
EXCLUDED: Mapping[str, tuple[float, float]] = {"BUT_NOT": (0.0, 1.0), "NEITHER": (1.0, 1.0)}
"""Operator → which of the two concepts it excludes."""


@dataclass(frozen=True)
class OperatorVectors:
    """Means over pairs, by operator.

    Attributes:
        span: (coefficient of a, coefficient of b, share of the vector's length they explain), by least squares.
        gain: length of the displacement, as a share of the text vector's.
        alignment: cosine of the displacement with the needed direction, for operators that exclude something.
        amplification: AUC when the displacement is amplified by each factor.
        nulls: alignment of three displacements that do not exclude these concepts: a random one, that of a pair with
            neither of them (None when there is no such pair), a paraphrase's.
    """

    span: Mapping[str, tuple[float, float, float]]
    gain: Mapping[str, float]
    alignment: Mapping[str, float]
    amplification: Mapping[str, Mapping[float, float]]
    nulls: Mapping[str, Mapping[str, float | None]]


def measure_operator_vectors(
    encoder: Encoder,
    pairs: Sequence[tuple[str, str]],
    texts: Mapping[str, str],
    vectors: FloatArray,
    answers: Sequence[Mapping[str, NDArray[np.bool_]]],
    *,
    seed: int = 0,
) -> OperatorVectors:
    """Measure displacements.

    Args:
        encoder: The encoder of the vectors.
        pairs: Pairs of concepts.
        texts: Operator → phrasing.
        vectors: (n, d) image vectors, for the amplification.
        answers: For each pair, operator → (n,) which images answer.
        seed: Of the random displacements and of the other pairs.
    """
    rng = np.random.default_rng(seed)
    one = _unit(concept_vectors(encoder, [a for a, _ in pairs]))
    other = _unit(concept_vectors(encoder, [b for _, b in pairs]))
    plain = _unit(encoder.encode_texts([f"{article(a)}, {article(b)}" for a, b in pairs]))
    paraphrase = _unit(encoder.encode_texts([f"{article(a)} next to {article(b)}" for a, b in pairs])) - plain
    here, elsewhere = _other_pairs(pairs, np.random.default_rng(seed))
    span, gain, alignment, amplification, nulls = {}, {}, {}, {}, {}
    for operator, pattern in texts.items():
        text = _unit(encoder.encode_texts([phrase(pattern, a, b) for a, b in pairs]))
        moved = text - plain
        span[operator] = _span(text, one, other)
        gain[operator] = float(np.linalg.norm(moved, axis=1).mean())
        amplification[operator] = {
            factor: float(
                np.mean(
                    [
                        area_under_curve(vectors @ (plain[i] + factor * moved[i]), answer[operator])
                        for i, answer in enumerate(answers)
                    ]
                )
            )
            for factor in AMPLIFICATIONS
        }
        if operator in EXCLUDED:
            first, second = EXCLUDED[operator]
            needed = -(first * one + second * other)
            alignment[operator] = _cosine(moved, needed)
            nulls[operator] = {
                "random": _cosine(rng.standard_normal(moved.shape), needed),
                "another pair": _cosine(moved[elsewhere], needed[here]) if here else None,
                "paraphrase": _cosine(paraphrase, needed),
            }
    return OperatorVectors(span, gain, alignment, amplification, nulls)


def _other_pairs(pairs: Sequence[tuple[str, str]], rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Positions of pairs, and for each the position of one drawn from those that share no concept with it."""
    drawn = {}
    for i, pair in enumerate(pairs):
        apart = [j for j, other in enumerate(pairs) if not set(pair) & set(other)]
        if apart:
            drawn[i] = int(rng.choice(apart))
    return list(drawn), list(drawn.values())


def _span(
    text: NDArray[np.floating], one: NDArray[np.floating], other: NDArray[np.floating]
) -> tuple[float, float, float]:
    rows = []
    for t, a, b in zip(text, one, other, strict=True):
        basis = np.stack([a, b], axis=1)
        weights = np.linalg.lstsq(basis, t, rcond=None)[0]
        rows.append((*weights, np.linalg.norm(basis @ weights) / np.linalg.norm(t)))
    first, second, share = (float(x) for x in np.mean(rows, axis=0))
    return first, second, share


def _cosine(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    return float(np.einsum("ij,ij->i", _unit(first), _unit(second)).mean())


def _unit(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    table = np.asarray(rows, dtype=np.float64)
    return np.asarray(table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12))
