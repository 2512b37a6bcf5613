"""A score as Qdrant's formula: the largest of the smallest linear functions of similarities. Pure, with no call.

    max(a, b) = (a + b + |a - b|) / 2

A formula sees the similarities that its prefetches return, `$score[i]`. A point that prefetch i did not return has the
default there, which is far below any score: a way that did not find a point says nothing about it, and another may.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from qdrant_client import models

from qdrant_lcse.pieces import Part, Way

__all__ = ["distinct_parts", "score_formula"]

UNSEEN = -8.0
"""Similarity of a point that a prefetch did not return; no sum of it with an offset reaches a real score."""


def distinct_parts(ways: Sequence[Way]) -> list[tuple[Part, Way]]:
    """The parts of all ways in the order of a formula's similarities, each with the first way that has it."""
    return list({id(part): (part, way) for way in reversed(ways) for part in reversed(way.parts)}.values())[::-1]


def score_formula(ways: Sequence[Way], *, cosine: bool) -> models.FormulaQuery:
    """The formula over one similarity for each of `distinct_parts`.

    Args:
        ways: The ways to satisfy the query.
        cosine: Whether similarities come as cosines, whatever the length of a vector, or as dot products.
    """
    places = {id(part): place for place, (part, _) in enumerate(distinct_parts(ways))}
    smallest = [
        _extreme([_linear(places[id(part)], part.vector, part.offset, cosine) for part in way.parts], largest=False)
        for way in ways
    ]
    return models.FormulaQuery.model_construct(
        formula=_extreme(smallest, largest=True), defaults={f"$score[{place}]": UNSEEN for place in places.values()}
    )


def _linear(place: int, vector: np.ndarray, offset: float, cosine: bool) -> models.Expression:
    scaled: models.Expression = f"$score[{place}]"
    if cosine:
        scaled = models.MultExpression.model_construct(mult=[float(np.linalg.norm(vector)), scaled])
    return models.SumExpression.model_construct(sum=[scaled, offset]) if offset else scaled


def _extreme(parts: Sequence[models.Expression], *, largest: bool) -> models.Expression:
    """The largest or smallest; in halves, because a formula repeats its parts."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    a, b = _extreme(parts[:half], largest=largest), _extreme(parts[half:], largest=largest)
    apart: models.Expression = models.AbsExpression.model_construct(
        abs=models.SumExpression.model_construct(sum=[a, models.NegExpression.model_construct(neg=b)])
    )
    if not largest:
        apart = models.NegExpression.model_construct(neg=apart)
    return models.MultExpression.model_construct(mult=[0.5, models.SumExpression.model_construct(sum=[a, b, apart])])
