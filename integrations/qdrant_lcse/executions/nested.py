"""`nested`: one round trip. Each similarity of the formula is a prefetch with all candidate searches inside it."""

from __future__ import annotations

from qdrant_lcse.executions.requests import formula_request, nearest, prefetch
from qdrant_lcse.executions.strategy import SearchStrategy
from qdrant_lcse.formula import ScoreFormula
from qdrant_lcse.messages import Round, Searches
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema

__all__ = ["nested_round"]


def nested_round(schema: VectorSchema, options: Options, strategy: SearchStrategy, formula: ScoreFormula) -> Round:
    """Run the candidate searches, and score what they find, in one request."""
    depth, params = strategy.depth, strategy.params
    searches = [
        prefetch(schema, vectors, params=params, limit=depth, chosen=options.query_filter)
        for vectors in strategy.searches
    ]
    most = depth * len(searches)
    stages = [prefetch(schema, row, params=strategy.rescoring, limit=most, inner=searches) for row in formula.vectors]
    scored = formula_request(formula, stages, schema, options, strategy)
    # How deep the nested searches reached is not reported: where it proves something, ask for the point at that depth.
    probed = strategy.searches if options.exact else strategy.searches[: int(strategy.exhaustive)]
    deepest = [nearest(schema, vectors, options, params=params, limit=1, offset=depth - 1) for vectors in probed]
    points, *probes = yield Searches([scored, *deepest])
    return points, [probe[0].score if probe else None for probe in probes]
