"""`two-trip`: a first round trip finds the candidates' ids, a second one scores the points of these ids."""

from __future__ import annotations

from qdrant_client import models

from qdrant_lcse.executions.requests import formula_request, nearest, prefetch
from qdrant_lcse.executions.strategy import SearchStrategy
from qdrant_lcse.formula import ScoreFormula
from qdrant_lcse.messages import Round, Searches
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema

__all__ = ["two_trip_round"]


def two_trip_round(schema: VectorSchema, options: Options, strategy: SearchStrategy, formula: ScoreFormula) -> Round:
    """Run the candidate searches, then score what they found."""
    depth = strategy.depth
    found = yield Searches(
        [nearest(schema, vectors, options, params=strategy.params, limit=depth) for vectors in strategy.searches]
    )
    last = [points[-1].score if len(points) >= depth else None for points in found]
    ids = list(dict.fromkeys(point.id for points in found for point in points))
    if not ids:
        return [], last
    chosen = models.Filter.model_construct(must=[models.HasIdCondition.model_construct(has_id=ids)])
    stages = [
        prefetch(schema, row, params=strategy.rescoring, limit=len(ids), chosen=chosen) for row in formula.vectors
    ]
    (points,) = yield Searches([formula_request(formula, stages, schema, options, strategy)])
    return points, last
