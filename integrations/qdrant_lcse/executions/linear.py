"""`linear`: one ordinary vector search, for a query whose score is a linear function of the image vector."""

from __future__ import annotations

from qdrant_client import models

from lcse_plugins.scoring.encoded import EncodedQuery
from qdrant_lcse.executions.pages import Paging, pack_hits, scores_fit_vectors, with_vectors
from qdrant_lcse.executions.requests import nearest, returned_parts
from qdrant_lcse.executions.strategy import SearchStrategy
from qdrant_lcse.messages import Searches, StaleSchema, Steps
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema

__all__ = ["linear_steps"]


def linear_steps(encoded: EncodedQuery, schema: VectorSchema, options: Options, strategy: SearchStrategy) -> Steps:
    """Search for the vector that the score is the inner product with.

    Raises:
        StaleSchema: the scores are not those of the vectors.
    """
    linear = encoded.plan.linear
    if linear is None:
        raise AssertionError("only a linear score can be searched for directly")
    params, scale = _precise(strategy.params), schema.scale(linear.vector)
    paging = Paging(options)
    while True:
        parts = returned_parts(schema, paging.window)
        (points,) = yield Searches([nearest(schema, linear.vector, options, params=params, **parts)])
        for point in points:
            point.score = scale * point.score + linear.offset
        fit = with_vectors(schema, points)
        if strategy.verify_schema and not scores_fit_vectors(encoded, fit):
            raise StaleSchema
        page = paging.read(fit, points)
        if page is not None:
            return pack_hits(encoded, options, page, exact=strategy.exhaustive, execution="linear")


def _precise(params: models.SearchParams | None) -> models.SearchParams | None:
    """The same search, answered with similarities of the original vectors where the collection is quantised."""
    if params is None:
        return None
    quantization = params.quantization or models.QuantizationSearchParams()
    return params.model_copy(update={"quantization": quantization.model_copy(update={"rescore": True})})
