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

from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.sources import DEPTH_GROWTH
from lcse_plugins.scoring.encoded import EncodedQuery
from qdrant_lcse.executions.nested import nested_round
from qdrant_lcse.executions.pages import Fit, Paging, pack_hits, scores_fit_vectors, with_vectors
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
    plan = encoded.plan
    bounds = (plan.bounds or ()) if options.exact else ()
    strategy = replace(strategy, searches=(*strategy.searches, *(bound.vector[None, :] for bound in bounds)))
    # The database leaves points near the demanded truth in doubt, so that places are counted here.
    paging = Paging(options, from_start=formula.threshold is not None)
    score_round = nested_round if execution == "nested" else two_trip_round
    while True:
        points, last = yield from score_round(schema, paging.window, strategy, formula)
        fit = with_vectors(schema, points)
        if strategy.verify_schema and not scores_fit_vectors(encoded, fit):
            raise StaleSchema
        if formula.threshold is not None:
            fit = _true_enough(encoded, fit, options.min_truth)
        page = paging.read(fit, points)
        if page is None:
            continue
        complete = None in last
        if not complete and bounds and len(page) == options.limit:
            reached = [
                similarity * schema.scale(bound.vector)
                for bound, similarity in zip(bounds, last[-len(bounds) :], strict=True)
                if similarity is not None
            ]
            complete = plan.proves(page[-1].point.score, reached)
        if complete or not options.exact:
            exact = complete and strategy.exhaustive
            return pack_hits(encoded, options, page, exact=exact, execution=execution)
        strategy = replace(strategy, depth=strategy.depth * DEPTH_GROWTH)


def _true_enough(encoded: EncodedQuery, fit: Sequence[Fit], min_truth: float | None) -> list[Fit]:
    """The points whose truth, as it is computed here, is not below the one demanded."""
    if not fit:
        return []
    kept, _ = VectorPool(np.stack([one.vector for one in fit])).top(encoded, min_truth=min_truth)
    return [fit[place] for place in sorted(kept)]
