"""Requests to Qdrant. They are not validated, which would look at every number of every vector."""

from __future__ import annotations

from typing import Any

from qdrant_client import models

from lcse_plugins.encoders.protocol import FloatArray
from qdrant_lcse.executions.strategy import SearchStrategy
from qdrant_lcse.formula import ScoreFormula
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema

__all__ = ["formula_request", "nearest", "prefetch", "returned_parts"]


def nearest(schema: VectorSchema, vector: FloatArray, options: Options, **arguments: Any) -> models.QueryRequest:
    """A plain vector query for the points that pass the filter."""
    return models.QueryRequest.model_construct(
        query=models.NearestQuery.model_construct(nearest=vector.tolist()),
        using=schema.vector_name,
        filter=options.query_filter,
        **arguments,
    )


def prefetch(schema: VectorSchema, vector: FloatArray, **arguments: Any) -> models.Prefetch:
    """A plain vector query inside another one."""
    query = models.NearestQuery.model_construct(nearest=vector.tolist())
    return models.Prefetch.model_construct(query=query, using=schema.vector_name, **arguments)


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


def returned_parts(schema: VectorSchema, options: Options) -> dict[str, Any]:
    """What to return of the best points: what was asked for, and the vectors from which their evidence is computed."""
    vectors: bool | list[str] = schema.with_vectors
    if isinstance(options.with_vectors, list) and isinstance(vectors, list):
        vectors = sorted({*options.with_vectors, *vectors})
    return {
        "limit": options.limit,
        "offset": options.offset,
        "with_payload": options.with_payload,
        "with_vector": True if options.with_vectors is True else vectors,
    }
