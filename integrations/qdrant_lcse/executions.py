"""The ways to score in the database, as conversations: one plain search, one nested query, or two trips.

A formula can only see similarities of points that *every* one of its prefetches returned; a point that one of them
misses silently counts as similarity 0 there. So each prefetch re-scores the same candidates, all of them, exactly:
in one trip by nesting the candidate searches inside each prefetch, in two by naming the candidates' ids.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from qdrant_client import models

from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.pool import VectorPool
from lcse_plugins.results import Ranking
from lcse_plugins.search import DEPTH_GROWTH
from qdrant_lcse.formula import ScoreFormula
from qdrant_lcse.hits import Execution, Hits, explain_points
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema
from qdrant_lcse.steps import Fetch, Manner, Searches, StaleSchema, Steps, nearest

__all__ = ["formula_steps", "linear_steps"]

APART = 1e-3
"""How far a score may be from the one computed here before the collection is looked at anew."""


def linear_steps(encoded: EncodedQuery, schema: VectorSchema, options: Options, manner: Manner) -> Steps:
    """One ordinary vector search, for a query whose score is a linear function of the image vector.

    Raises:
        StaleSchema: the scores are not those of the vectors.
    """
    linear = encoded.plan.linear
    if linear is None:
        raise AssertionError("only a linear score can be searched for directly")
    wanted = _wanted(schema, options)
    (points,) = yield Searches([nearest(schema, linear.vector, options, params=_precise(manner.params), **wanted)])
    scale = schema.scale(linear.vector)
    for point in points:
        point.score = scale * point.score + linear.offset
    if manner.doubts and not _agree(encoded, schema, points):
        raise StaleSchema
    return _packed(encoded, schema, options, points, exact=manner.proves, execution="linear")


def _precise(params: models.SearchParams | None) -> models.SearchParams | None:
    """The same search, answered with similarities of the original vectors where the collection is quantised."""
    if params is None:
        return None
    quantization = params.quantization or models.QuantizationSearchParams()
    return params.model_copy(update={"quantization": quantization.model_copy(update={"rescore": True})})


def formula_steps(
    encoded: EncodedQuery,
    schema: VectorSchema,
    options: Options,
    manner: Manner,
    *,
    formula: ScoreFormula,
    execution: Literal["nested", "two-trip"],
) -> Steps:
    """Score candidates in the database by a formula; go deeper until the result is proved when that was asked for.

    Args:
        encoded: The query.
        schema: What the collection stores.
        options: What was asked for.
        manner: How to search.
        formula: The score.
        execution: In one trip or two.

    Raises:
        StaleSchema: the scores are not those of the vectors.
    """
    plan, depth = encoded.plan, manner.depth
    bounds = (plan.bounds or ()) if options.exact else ()
    vectors = np.concatenate([plan.candidates, *(bound.vector[None, :] for bound in bounds)])
    # The database leaves points near the demanded truth in doubt, so that places are counted here.
    page = options if formula.threshold is None else replace(options, offset=0, limit=options.end)
    asked = page
    trip = _in_one_trip if execution == "nested" else _in_two_trips
    while True:
        points, last = yield from trip(schema, asked, manner, formula, vectors, depth)
        if manner.doubts and not _agree(encoded, schema, points):
            raise StaleSchema
        found = points if formula.threshold is None else _true(encoded, schema, points, options.min_truth)
        if len(found) < page.limit and len(found) < len(points) == asked.limit:
            asked = replace(asked, limit=2 * asked.limit)
            continue
        found = found[: page.limit]
        complete = None in last
        if not complete and bounds and len(found) == page.limit:
            reached = [
                similarity * schema.scale(bound.vector)
                for bound, similarity in zip(bounds, last[-len(bounds) :], strict=True)
                if similarity is not None
            ]
            complete = plan.proves(found[-1].score, reached)
        if complete or not options.exact:
            found = found[options.offset - page.offset :]
            return _packed(encoded, schema, options, found, exact=complete and manner.proves, execution=execution)
        depth *= DEPTH_GROWTH


def _true(
    encoded: EncodedQuery, schema: VectorSchema, points: Sequence[models.ScoredPoint], min_truth: float | None
) -> list[models.ScoredPoint]:
    """The points whose truth, as it is computed here, is not below the one demanded."""
    stored = [(point, vector) for point in points if (vector := schema.vector_of(point)) is not None]
    if not stored:
        return []
    kept, _ = VectorPool(np.stack([vector for _, vector in stored])).top(encoded, min_truth=min_truth)
    return [stored[place][0] for place in sorted(kept)]


def _agree(encoded: EncodedQuery, schema: VectorSchema, points: Sequence[models.ScoredPoint]) -> bool:
    """Whether the first and the last point score about what their vectors say."""
    ends = ((point.score, schema.unit_vector_of(point)) for point in (*points[:1], *points[-1:]))
    checked = [(score, vector) for score, vector in ends if vector is not None]
    if not checked:
        return True
    rows, linear = np.stack([vector for _, vector in checked]), encoded.plan.linear
    own = encoded.scores(rows @ encoded.matrix.T) if linear is None else rows @ linear.vector + linear.offset
    return all(abs(score - float(right)) <= APART for (score, _), right in zip(checked, own, strict=True))


_Round = Generator["Searches | Fetch", Any, tuple[list[models.ScoredPoint], list[float | None]]]
"""A round gives the best points, and for each candidate search its last similarity: None when it found all points."""


def _in_one_trip(
    schema: VectorSchema,
    options: Options,
    manner: Manner,
    formula: ScoreFormula,
    vectors: FloatArray,
    depth: int,
) -> _Round:
    searches = [
        models.Prefetch.model_construct(
            query=models.NearestQuery.model_construct(nearest=vector.tolist()),
            using=schema.vector_name,
            filter=options.query_filter,
            params=manner.params,
            limit=depth,
        )
        for vector in vectors
    ]
    stages = [_stage(row, schema, manner, prefetch=searches, limit=depth * len(vectors)) for row in formula.vectors]
    scored = _scored(formula, stages, schema, options, manner)
    # How deep the nested searches reached is not reported: where it proves something, ask for the point at that depth.
    probed = vectors if options.exact else vectors[: int(manner.proves)]
    deepest = {"limit": 1, "offset": depth - 1, "params": manner.params, "with_payload": False, "with_vector": False}
    points, *probes = yield Searches([scored, *(nearest(schema, row, options, **deepest) for row in probed)])
    return points, [probe[0].score if probe else None for probe in probes]


def _in_two_trips(
    schema: VectorSchema,
    options: Options,
    manner: Manner,
    formula: ScoreFormula,
    vectors: FloatArray,
    depth: int,
) -> _Round:
    bare = {"limit": depth, "params": manner.params, "with_payload": False, "with_vector": False}
    found = yield Searches([nearest(schema, vector, options, **bare) for vector in vectors])
    last = [points[-1].score if len(points) >= depth else None for points in found]
    ids = list(dict.fromkeys(point.id for points in found for point in points))
    if not ids:
        return [], last
    chosen = models.Filter.model_construct(must=[models.HasIdCondition.model_construct(has_id=ids)])
    stages = [_stage(row, schema, manner, filter=chosen, limit=len(ids)) for row in formula.vectors]
    (points,) = yield Searches([_scored(formula, stages, schema, options, manner)])
    return points, last


def _stage(row: FloatArray, schema: VectorSchema, manner: Manner, **arguments: Any) -> models.Prefetch:
    query = models.NearestQuery.model_construct(nearest=row.tolist())
    return models.Prefetch.model_construct(query=query, using=schema.vector_name, params=manner.rescoring, **arguments)


def _scored(
    formula: ScoreFormula, stages: list[models.Prefetch], schema: VectorSchema, options: Options, manner: Manner
) -> models.QueryRequest:
    wanted = _wanted(schema, options)
    return models.QueryRequest.model_construct(
        prefetch=stages, query=formula.query, params=manner.rescoring, score_threshold=formula.threshold, **wanted
    )


def _wanted(schema: VectorSchema, options: Options) -> dict[str, Any]:
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


def _packed(
    encoded: EncodedQuery,
    schema: VectorSchema,
    options: Options,
    points: Sequence[models.ScoredPoint],
    *,
    exact: bool,
    execution: Execution,
) -> Hits:
    kept, stored = [], []
    for point in points:
        if (vector := schema.stored_vector(point)) is not None:
            kept.append(point)
            stored.append(vector)
            point.vector = _asked_for(point.vector, options)

    def find_ranking() -> Ranking:
        vectors = [np.asarray(vector, dtype=np.float32) for vector in stored]
        return explain_points(encoded, kept, vectors, exact=exact)

    return Hits(kept, exact, encoded.parse, execution, find_ranking)


def _asked_for(vector: Any, options: Options) -> Any:
    if not options.with_vectors:
        return None
    if isinstance(options.with_vectors, list) and isinstance(vector, dict):
        return {name: vector[name] for name in options.with_vectors if name in vector}
    return vector
