"""The score of a query as Qdrant's formula: the largest of a few smallest linear functions. Pure, with no call.

With min for AND and max for OR, and truth as a similarity, a score is `max over ways of min over parts of <v, u> + c`.
A *way* is one conjunction of the query's disjunctive form; a *part* is one concept of it, wanted or not, averaged with
what all parts share (the text of what is affirmed, or the mean of the concepts). So one vector search per part gives
all that a database needs to compute the score, with no exponential or logarithm:

    max(a, b) = (a + b + |a - b|) / 2

A formula sees the similarities that its prefetches return, `$score[i]`. A point that prefetch i did not return has the
default there, which is far below any score: a way that did not find a point says nothing about it, and another may.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
from qdrant_client import models

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.query import Group, Or, Plain, fold
from lcse_plugins.scoring.edit import holistic_share, leaf_weights
from lcse_plugins.scoring.encoded import EncodedQuery

__all__ = ["Part", "Way", "distinct_parts", "score_formula", "ways_of"]

MOST_PARTS = 24
"""Parts of all ways together; a query with more is scored in the client."""

LEANING, LEANING_TO_ONE = 0.25, 0.125
"""How far what is unwanted leans towards each thing that is wanted, or the only one, when they share a text; found by
trial."""

UNSEEN = -8.0
"""Similarity of a point that a prefetch did not return; no sum of it with an offset reaches a real score."""

_Leaf: TypeAlias = tuple[str, bool]


class Part(NamedTuple):
    """A linear function <v, vector> + offset of an image vector; `negated` when the concept is not wanted."""

    vector: FloatArray
    offset: float
    negated: bool


@dataclass(frozen=True, eq=False)
class Way:
    """One way to satisfy a query: its score is the smallest of its parts.

    Attributes:
        parts: its concepts.
        anchored: whether what they share is the text of what is affirmed.
    """

    parts: tuple[Part, ...]
    anchored: bool = False

    @property
    def far(self) -> bool:
        """Whether nothing is wanted: its best images are far from any vector that is searched with."""
        return all(part.negated for part in self.parts)

    @cached_property
    def bound(self) -> Part:
        """The mean of the parts: never below their smallest."""
        vector = np.mean([part.vector for part in self.parts], axis=0)
        return Part(vector, float(np.mean([part.offset for part in self.parts])), self.far)

    @cached_property
    def search(self) -> FloatArray:
        """(b, d) unit vectors of the candidate search, which ranks images by their least cosine with them.

        Cosines carry no offsets, so parts that are not alike cannot be compared by them: what is unwanted leans
        towards what is wanted.
        """
        rows, negated = np.stack([part.vector for part in self.parts]), np.array([part.negated for part in self.parts])
        if negated.any() and not negated.all():
            wanted = rows[~negated]
            leaning = LEANING if len(wanted) > 1 else LEANING_TO_ONE
            rows = rows + np.outer(negated, leaning * wanted.sum(axis=0) if self.anchored else wanted.mean(axis=0))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(lengths, np.finfo(np.float64).tiny))


def ways_of(encoded: EncodedQuery) -> tuple[Way, ...] | None:
    """The ways to satisfy a query, whose largest is its score; None when its score has no such form."""
    linear = encoded.plan.linear
    if linear is not None:
        return (Way((Part(linear.vector, linear.offset, encoded.affirms_nothing),)),)
    if encoded.config.aggregator != "minmax" or encoded.config.mode == "lcse":
        return None
    forms = fold(encoded.tree, lambda text, negated: [frozenset({(text, negated)})], _combined)
    if forms is None or sum(map(len, forms)) > MOST_PARTS:
        return None
    anchored = holistic_share(encoded.tree, encoded.config) > 0
    parts = {leaf: _part(encoded, leaf) for leaf in frozenset().union(*forms)}
    return tuple(Way(tuple(parts[leaf] for leaf in sorted(form)), anchored) for form in _without_supersets(forms))


def _combined(group: Group, children: Sequence[list[frozenset[_Leaf]] | None]) -> list[frozenset[_Leaf]] | None:
    """The disjunctive form of a group; None when it has none, or one that is too large."""
    known = [child for child in children if child is not None]
    if len(known) < len(children) or (isinstance(group, Plain) and len(known) > 1):
        return None
    if isinstance(group, Or):
        return [form for child in known for form in child]
    if math.prod(map(len, known)) > MOST_PARTS:
        return None
    return [frozenset().union(*choice) for choice in product(*known)]


def _without_supersets(forms: Sequence[frozenset[_Leaf]]) -> list[frozenset[_Leaf]]:
    """The forms that no other one implies: more parts never score higher.

    So no way of one part shares it with another way: such a part is searched by itself, others only among candidates.
    """
    distinct = list(dict.fromkeys(forms))
    return [form for form in distinct if not any(other < form for other in distinct)]


def _part(encoded: EncodedQuery, leaf: _Leaf) -> Part:
    """One concept of a way, with what all of them share added to it."""
    text, negated = leaf
    rows = dict(zip(encoded.concepts, encoded.concept_vectors.astype(np.float64), strict=True))
    mu, sign = encoded.calibration.mu, -1.0 if negated else 1.0
    vector, offset = sign * rows[text], 2.0 * mu if negated else 0.0
    if weights := leaf_weights(encoded.tree, encoded.config):
        shared = np.sum([weight * rows[name] for name, weight in weights.items()], axis=0)
        return Part((vector + shared) / 2, (offset + mu * (1.0 - sum(weights.values()))) / 2, negated)
    share = holistic_share(encoded.tree, encoded.config)
    vector = share * encoded.holistic_vector.astype(np.float64) + (1.0 - share) * vector
    return Part(vector, (1.0 - share) * offset, negated)


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
