"""`nested`: one round trip. Each similarity of the formula is a prefetch with all candidate searches inside it."""

from __future__ import annotations

from lcse_plugins.encoders.protocol import FloatArray
from qdrant_lcse.executions.requests import formula_request, nearest, prefetch
from qdrant_lcse.executions.strategy import SearchStrategy
from qdrant_lcse.formula import ScoreFormula
from qdrant_lcse.messages import Round, Searches
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema

__all__ = ["nested_round"]


def nested_round(
    schema: VectorSchema, options: Options, strategy: SearchStrategy, formula: ScoreFormula, vectors: FloatArray
) -> Round:
    """Search for candidates of each vector, and score them, in one request."""
    depth, params = strategy.depth, strategy.params
    searches = [prefetch(schema, vector, params=params, limit=depth, chosen=options.query_filter) for vector in vectors]
    most = depth * len(vectors)
    stages = [prefetch(schema, row, params=strategy.rescoring, limit=most, inner=searches) for row in formula.vectors]
    scored = formula_request(formula, stages, schema, options, strategy)
    # How deep the nested searches reached is not reported: where it proves something, ask for the point at that depth.
    probed = vectors if options.exact else vectors[: int(strategy.exhaustive)]
    deepest = [nearest(schema, row, options, params=params, limit=1, offset=depth - 1) for row in probed]
    points, *probes = yield Searches([scored, *deepest])
    return points, [probe[0].score if probe else None for probe in probes]
