"""`client`: candidates come with their vectors, and the core scores them here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from qdrant_client import models

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.retrieval.sources import SearchRequest, advance, search_steps
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranking
from qdrant_lcse.executions.requests import nearest
from qdrant_lcse.executions.strategy import SearchStrategy
from qdrant_lcse.hits import Hits
from qdrant_lcse.messages import Fetch, PointId, Searches, StaleSchema, Steps
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema

__all__ = ["client_steps"]

QUANTISATION_TOLERANCE = 0.1
"""How far similarities of quantised vectors may be from those of the original ones, per length of the query vector."""


def client_steps(encoded: EncodedQuery, schema: VectorSchema, options: Options, strategy: SearchStrategy) -> Steps:
    """Fetch candidates with their vectors and score them; then fetch the payloads of the best.

    Raises:
        StaleSchema: the similarities are not those of the vectors.
    """
    most = strategy.depth * len(strategy.searches)
    steps = search_steps(
        encoded,
        limit=options.end if options.exact else min(options.end, most + 1),
        depth=strategy.depth,
        exact=options.exact,
        exhaustive=strategy.exhaustive,
        min_truth=options.min_truth,
        searches=strategy.searches,
    )
    known: dict[PointId, Candidate | None] = {}
    step = advance(steps)
    while isinstance(step, SearchRequest):
        depth = step.depth if options.exact else strategy.depth
        answers = yield Searches(
            [
                nearest(schema, rows, options, params=strategy.params, limit=depth, with_vector=schema.with_vectors)
                for rows in step.vectors
            ]
        )
        if strategy.verify_schema and not all(map(partial(_fits, schema), step.vectors, answers)):
            raise StaleSchema
        known.update({p.id: _candidate(p, schema) for points in answers for p in points if p.id not in known})
        beyond = [None] * (step.depth - depth)  # there are more points, but pages are cut from the same candidates
        step = advance(
            steps,
            [[*(known[p.id] for p in points), *(beyond if len(points) == depth else ())] for points in answers],
        )
    ranking = Ranking(step[options.offset :], parse=step.parse, mode=step.mode, exact=step.exact)
    records: dict[PointId, models.Record] = {}
    if ranking and (options.with_payload is not False or options.with_vectors):
        records = yield Fetch([ranked.candidate.payload.id for ranked in ranking])
    points = [_scored(ranked.candidate.payload, ranked.score, records) for ranked in ranking]
    for place, point in enumerate(points):
        ranked = ranking[place]
        ranking[place] = replace(ranked, candidate=replace(ranked.candidate, payload=point.payload))
    return Hits(points, ranking.exact, ranking.parse, "client", find_ranking=lambda: ranking)


def _fits(schema: VectorSchema, vectors: FloatArray, points: Sequence[models.ScoredPoint]) -> bool:
    """Whether the best point's similarity is about what its vector says; of a search by several it is not known."""
    stored = schema.unit_vector_of(points[0]) if points else None
    if stored is None or vectors.size > len(stored):
        return True
    vector = vectors.ravel()
    apart = points[0].score * schema.scale(vector) - float(vector @ stored)
    return abs(apart) <= QUANTISATION_TOLERANCE * float(np.linalg.norm(vector))


def _candidate(point: models.ScoredPoint, schema: VectorSchema) -> Candidate | None:
    vector = schema.vector_of(point)
    return None if vector is None else Candidate(point.id, vector, payload=point)


def _scored(point: models.ScoredPoint, score: float, records: Mapping[PointId, models.Record]) -> models.ScoredPoint:
    """The point with its score and what was fetched of it."""
    record = records.get(point.id)
    return point.model_copy(
        update={
            "score": score,
            "payload": None if record is None else record.payload,
            "vector": None if record is None else record.vector,
        }
    )
