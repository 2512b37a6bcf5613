"""Requests to Qdrant. They are not validated, which would look at every number of every vector."""

from __future__ import annotations

from typing import TypedDict

from qdrant_client import models

from lcse_plugins.encoders.protocol import FloatArray
from qdrant_lcse.executions.strategy import SearchStrategy
from qdrant_lcse.formula import ScoreFormula
from qdrant_lcse.options import Options, WithPayload, WithVectors
from qdrant_lcse.schema import VectorSchema

__all__ = ["ReturnedParts", "formula_request", "nearest", "prefetch", "returned_parts"]


class ReturnedParts(TypedDict):
    """Which points a request returns, and what of them."""

    limit: int
    offset: int
    with_payload: WithPayload
    with_vector: WithVectors


def nearest(
    schema: VectorSchema,
    vectors: FloatArray,
    options: Options,
    *,
    params: models.SearchParams | None,
    limit: int,
    offset: int = 0,
    with_payload: WithPayload = False,
    with_vector: WithVectors = False,
) -> models.QueryRequest:
    """A query by a vector (d,), or by the least product with several (b, d), for the points that pass the filter."""
    return models.QueryRequest.model_construct(
        query=_vector_query(vectors),
        using=schema.vector_name,
        filter=options.query_filter,
        params=params,
        limit=limit,
        offset=offset,
        with_payload=with_payload,
        with_vector=with_vector,
    )


def prefetch(
    schema: VectorSchema,
    vectors: FloatArray,
    *,
    params: models.SearchParams | None,
    limit: int,
    chosen: models.Filter | None = None,
    inner: list[models.Prefetch] | None = None,
) -> models.Prefetch:
    """The same inside another query: over the points that pass a filter, or that inner queries find."""
    return models.Prefetch.model_construct(
        query=_vector_query(vectors),
        using=schema.vector_name,
        params=params,
        limit=limit,
        filter=chosen,
        prefetch=inner,
    )


def _vector_query(vectors: FloatArray) -> models.NearestQuery | models.RecommendQuery:
    """Points by their product with a vector, or by the least of those with several.

    Qdrant knows the latter as recommendation by the best score: of a point with negative examples alone, that of the
    one most like it counts, against it.
    """
    if vectors.size == vectors.shape[-1]:
        return models.NearestQuery.model_construct(nearest=vectors.ravel().tolist())
    opposite = models.RecommendInput.model_construct(
        negative=(-vectors).tolist(), strategy=models.RecommendStrategy.BEST_SCORE
    )
    return models.RecommendQuery.model_construct(recommend=opposite)


def formula_request(
    formula: ScoreFormula,
    stages: list[models.Prefetch],
    schema: VectorSchema,
    options: Options,
    strategy: SearchStrategy,
) -> models.QueryRequest:
    """The best points by the formula; `stages` give the similarities that it names, in their order."""
    return models.QueryRequest.model_construct(
        prefetch=stages,
        query=formula.query,
        params=strategy.rescoring,
        score_threshold=formula.threshold,
        **returned_parts(schema, options),
    )


def returned_parts(schema: VectorSchema, options: Options) -> ReturnedParts:
    """What to return of the best points: what was asked for, and the vectors from which their evidence is computed."""
    vectors: WithVectors = schema.with_vectors
    if isinstance(options.with_vectors, list) and isinstance(vectors, list):
        vectors = sorted({*options.with_vectors, *vectors})
    return {
        "limit": options.limit,
        "offset": options.offset,
        "with_payload": options.with_payload,
        "with_vector": True if options.with_vectors is True else vectors,
    }
