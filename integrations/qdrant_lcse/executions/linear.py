"""`linear`: one ordinary vector search, for a query whose score is a linear function of the image vector."""

from __future__ import annotations

from qdrant_client import models

from lcse_plugins.encoded import EncodedQuery
from qdrant_lcse.executions.pages import (
    from_start,
    pack_hits,
    page_of,
    scores_fit_vectors,
    widened,
    with_vectors,
)
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
    page, margin = options, 1
    while True:
        window = widened(page, margin)
        request = nearest(schema, linear.vector, options, params=params, **returned_parts(schema, window))
        (points,) = yield Searches([request])
        for point in points:
            point.score = scale * point.score + linear.offset
        if strategy.verify_schema and not scores_fit_vectors(encoded, schema, points):
            raise StaleSchema
        fit = with_vectors(schema, points)
        if len(fit) < len(points) and page.offset:
            page = from_start(options)
            continue
        found = page_of(fit, points, page=page, window=window, margin=margin)
        if found is not None:
            found = found[options.offset - page.offset :]
            return pack_hits(encoded, schema, options, found, exact=strategy.exhaustive, execution="linear")
        margin = window.limit


def _precise(params: models.SearchParams | None) -> models.SearchParams | None:
    """The same search, answered with similarities of the original vectors where the collection is quantised."""
    if params is None:
        return None
    quantization = params.quantization or models.QuantizationSearchParams()
    return params.model_copy(update={"quantization": quantization.model_copy(update={"rescore": True})})
