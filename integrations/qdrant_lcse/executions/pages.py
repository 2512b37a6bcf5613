"""The page that was asked for, out of the points that came: equal scores in the order of ids, packed as `Hits`.

Which of equal points Qdrant returns first may differ from one request to the next, but the places that they take
together do not. So a page is read with a few places on each side of it, until no group of equals is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from qdrant_client import models

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.retrieval.tables import unit_rows
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Ranking
from qdrant_lcse.hits import Execution, Hits, explain_points
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema

__all__ = ["Fit", "Paging", "pack_hits", "scores_fit_vectors", "with_vectors"]

MOST_EQUALS = 256
"""Places on each side of a page within which equal scores are looked for; beyond, their order is Qdrant's."""

SCORE_TOLERANCE = 1e-3
"""How far a score may be from the one computed here before the collection is looked at anew."""


class Fit(NamedTuple):
    """A point that can be scored, with its vector."""

    point: models.ScoredPoint
    vector: FloatArray


def with_vectors(schema: VectorSchema, points: Sequence[models.ScoredPoint]) -> list[Fit]:
    """The points that can be scored: Qdrant gives a place to zero vectors too."""
    return [Fit(point, vector) for point in points if (vector := schema.vector_of(point)) is not None]


class Paging:
    """Reads the page that was asked for, and more around it for as long as that takes.

    Args:
        options: What was asked for.
        from_start: Whether places are counted here, because not all that is fetched will be fit.
    """

    def __init__(self, options: Options, *, from_start: bool = False) -> None:
        self._asked = options
        self._page, self._margin = options, 1
        if from_start:
            self._count_from_start()

    @property
    def window(self) -> Options:
        """What to fetch next."""
        start = max(0, self._page.offset - self._margin)
        return replace(self._page, offset=start, limit=self._page.end + self._margin - start)

    def read(self, fit: Sequence[Fit], fetched: Sequence[models.ScoredPoint]) -> list[Fit] | None:
        """The page, out of what is fit of the points fetched; None if another window has to be fetched."""
        page, window = self._page, self.window
        if page.offset and len(fit) < len(fetched):
            self._count_from_start()
            return None
        kept = _by_score_and_id(fit)[page.offset - window.offset :][: page.limit]
        short = len(kept) < page.limit and len(fetched) == window.limit
        if short or _cuts_equals([one.point for one in kept], fetched, window, self._margin):
            self._margin = window.limit
            return None
        return kept[self._asked.offset - page.offset :]

    def _count_from_start(self) -> None:
        self._page = replace(self._asked, offset=0, limit=self._asked.end)


def _by_score_and_id(fit: Sequence[Fit]) -> list[Fit]:
    """Points in the order that every execution gives them."""
    return sorted(fit, key=lambda one: (-one.point.score, type(one.point.id).__name__, one.point.id))


def _cuts_equals(
    page: Sequence[models.ScoredPoint], fetched: Sequence[models.ScoredPoint], window: Options, margin: int
) -> bool:
    """Whether points equal to the first or the last of the page may lie outside of what was fetched."""
    if not page or margin > MOST_EQUALS:
        return False
    before = window.offset > 0 and fetched[0].score == page[0].score
    after = len(fetched) == window.limit and fetched[-1].score == page[-1].score
    return before or after


def scores_fit_vectors(encoded: EncodedQuery, fit: Sequence[Fit]) -> bool:
    """Whether the first and the last point score about what their vectors say."""
    if not fit:
        return True
    ends, linear = (fit[0], fit[-1]), encoded.plan.linear
    rows = unit_rows(np.stack([one.vector for one in ends]))
    own = encoded.scores(rows @ encoded.matrix.T) if linear is None else rows @ linear.vector + linear.offset
    return all(abs(one.point.score - float(right)) <= SCORE_TOLERANCE for one, right in zip(ends, own, strict=True))


def pack_hits(
    encoded: EncodedQuery, options: Options, page: Sequence[Fit], *, exact: bool, execution: Execution
) -> Hits:
    """The page as hits whose evidence is computed, when it is looked at, from the vectors that came with them."""
    points, vectors = [one.point for one in page], [one.vector for one in page]
    for point in points:
        point.vector = _asked_for(point.vector, options)

    def find_ranking() -> Ranking:
        return explain_points(encoded, points, vectors, exact=exact)

    return Hits(points, exact, encoded.parse, execution, find_ranking=find_ranking)


def _asked_for(vector: Any, options: Options) -> Any:
    """The part of a point's vectors that the caller asked for."""
    if not options.with_vectors:
        return None
    if isinstance(options.with_vectors, list) and isinstance(vector, dict):
        return {name: vector[name] for name in options.with_vectors if name in vector}
    return vector
