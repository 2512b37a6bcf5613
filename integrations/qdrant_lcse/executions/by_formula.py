"""What `nested` and `two-trip` share: the database scores candidates by a formula.

A formula can only see similarities of points that *every* one of its prefetches returned; a point that one of them
misses silently counts as similarity 0 there. So each prefetch re-scores the same candidates, all of them, exactly:
in one trip by nesting the candidate searches inside each prefetch, in two by naming the candidates' ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from qdrant_client import models

from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.pool import VectorPool
from lcse_plugins.search import DEPTH_GROWTH
from qdrant_lcse.executions.nested import nested_round
from qdrant_lcse.executions.pages import (
    from_start,
    pack_hits,
    page_of,
    scores_fit_vectors,
    widened,
    with_vectors,
)
from qdrant_lcse.executions.strategy import SearchStrategy
from qdrant_lcse.executions.two_trip import two_trip_round
from qdrant_lcse.formula import ScoreFormula
from qdrant_lcse.messages import StaleSchema, Steps
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema

__all__ = ["formula_steps"]


def formula_steps(
    encoded: EncodedQuery,
    schema: VectorSchema,
    options: Options,
    strategy: SearchStrategy,
    *,
    formula: ScoreFormula,
    execution: Literal["nested", "two-trip"],
) -> Steps:
    """Score candidates in the database; go deeper until the result is proved when that was asked for.

    Args:
        encoded: The query.
        schema: What the collection stores.
        options: What was asked for.
        strategy: How to search.
        formula: The score.
        execution: In one trip or two.

    Raises:
        StaleSchema: the scores are not those of the vectors.
    """
    plan, margin = encoded.plan, 1
    bounds = (plan.bounds or ()) if options.exact else ()
    vectors = np.concatenate([plan.search_vectors, *(bound.vector[None, :] for bound in bounds)])
    # The database leaves points near the demanded truth in doubt, so that places are counted here.
    page = options if formula.threshold is None else from_start(options)
    score_round = nested_round if execution == "nested" else two_trip_round
    while True:
        window = widened(page, margin)
        points, last = yield from score_round(schema, window, strategy, formula, vectors)
        if strategy.verify_schema and not scores_fit_vectors(encoded, schema, points):
            raise StaleSchema
        fit = with_vectors(schema, points)
        if len(fit) < len(points) and page.offset:
            page = from_start(options)
            continue
        if formula.threshold is not None:
            fit = _true_enough(encoded, schema, fit, options.min_truth)
        found = page_of(fit, points, page=page, window=window, margin=margin)
        if found is None:
            margin = window.limit
            continue
        complete = None in last
        if not complete and bounds and len(found) == page.limit:
            reached = [
                similarity * schema.scale(bound.vector)
                for bound, similarity in zip(bounds, last[-len(bounds) :], strict=True)
                if similarity is not None
            ]
            complete = plan.proves(found[-1].score, reached)
        if complete or not options.exact:
            found, exact = found[options.offset - page.offset :], complete and strategy.exhaustive
            return pack_hits(encoded, schema, options, found, exact=exact, execution=execution)
        strategy = replace(strategy, depth=strategy.depth * DEPTH_GROWTH)


def _true_enough(
    encoded: EncodedQuery, schema: VectorSchema, points: Sequence[models.ScoredPoint], min_truth: float | None
) -> list[models.ScoredPoint]:
    """The points whose truth, as it is computed here, is not below the one demanded."""
    vectors = [vector for point in points if (vector := schema.vector_of(point)) is not None]
    if not vectors:
        return []
    kept, _ = VectorPool(np.stack(vectors)).top(encoded, min_truth=min_truth)
    return [points[place] for place in sorted(kept)]
