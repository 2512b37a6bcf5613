"""The page that was asked for, out of the points that came: equal scores in the order of ids, packed as `Hits`.

Which of equal points Qdrant returns first may differ from one request to the next, but the places that they take
together do not. So a page is read with a few places on each side of it, until no group of equals is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from qdrant_client import models

from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.results import Ranking
from qdrant_lcse.hits import Execution, Hits, explain_points
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema

__all__ = ["from_start", "pack_hits", "page_of", "scores_fit_vectors", "widened", "with_vectors"]

MOST_EQUALS = 256
"""Places on each side of a page within which equal scores are looked for; beyond, their order is Qdrant's."""

SCORE_TOLERANCE = 1e-3
"""How far a score may be from the one computed here before the collection is looked at anew."""


def widened(page: Options, margin: int) -> Options:
    """The page and so many places on each side of it."""
    start = max(0, page.offset - margin)
    return replace(page, offset=start, limit=page.end + margin - start)


def by_score_and_id(points: Sequence[models.ScoredPoint]) -> list[models.ScoredPoint]:
    """Points in the order that every execution gives them."""
    return sorted(points, key=lambda point: (-point.score, type(point.id).__name__, point.id))


def from_start(page: Options) -> Options:
    """The page and all places before it."""
    return replace(page, offset=0, limit=page.end)


def with_vectors(schema: VectorSchema, points: Sequence[models.ScoredPoint]) -> list[models.ScoredPoint]:
    """The points that can be scored: Qdrant gives a place to zero vectors too."""
    return [point for point in points if schema.vector_of(point) is not None]


def page_of(
    found: Sequence[models.ScoredPoint],
    fetched: Sequence[models.ScoredPoint],
    *,
    page: Options,
    window: Options,
    margin: int,
) -> list[models.ScoredPoint] | None:
    """The page, out of what was found fit of the points fetched; None if it takes more of them to tell."""
    kept = by_score_and_id(found)[page.offset - window.offset :][: page.limit]
    short = len(kept) < page.limit and len(fetched) == window.limit
    return None if short or _cuts_equals(kept, fetched, window, margin) else kept


def _cuts_equals(
    page: Sequence[models.ScoredPoint], fetched: Sequence[models.ScoredPoint], window: Options, margin: int
) -> bool:
    """Whether points equal to the first or the last of the page may lie outside of what was fetched."""
    if not page or margin > MOST_EQUALS:
        return False
    before = window.offset > 0 and fetched[0].score == page[0].score
    after = len(fetched) == window.limit and fetched[-1].score == page[-1].score
    return before or after


def scores_fit_vectors(encoded: EncodedQuery, schema: VectorSchema, points: Sequence[models.ScoredPoint]) -> bool:
    """Whether the first and the last point score about what their vectors say."""
    ends = ((point.score, schema.unit_vector_of(point)) for point in (*points[:1], *points[-1:]))
    checked = [(score, vector) for score, vector in ends if vector is not None]
    if not checked:
        return True
    rows, linear = np.stack([vector for _, vector in checked]), encoded.plan.linear
    own = encoded.scores(rows @ encoded.matrix.T) if linear is None else rows @ linear.vector + linear.offset
    return all(abs(score - float(right)) <= SCORE_TOLERANCE for (score, _), right in zip(checked, own, strict=True))


def pack_hits(
    encoded: EncodedQuery,
    schema: VectorSchema,
    options: Options,
    points: Sequence[models.ScoredPoint],
    *,
    exact: bool,
    execution: Execution,
) -> Hits:
    """The points as hits whose evidence is computed, when it is looked at, from the vectors that came with them."""
    kept, vectors = [], []
    for point in points:
        if (vector := schema.vector_of(point)) is not None:
            kept.append(point)
            vectors.append(vector)
            point.vector = _asked_for(point.vector, options)

    def find_ranking() -> Ranking:
        return explain_points(encoded, kept, vectors, exact=exact)

    return Hits(kept, exact, encoded.parse, execution, find_ranking=find_ranking)


def _asked_for(vector: Any, options: Options) -> Any:
    """The part of a point's vectors that the caller asked for."""
    if not options.with_vectors:
        return None
    if isinstance(options.with_vectors, list) and isinstance(vector, dict):
        return {name: vector[name] for name in options.with_vectors if name in vector}
    return vector
