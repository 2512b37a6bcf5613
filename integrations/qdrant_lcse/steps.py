"""The conversation with Qdrant, without input or output: generators that yield what to ask and are sent the answers.

One query is a `Steps` generator: it yields `Searches` and `Fetch`, and returns its `Hits`. `together` runs several in
lockstep, so that their searches travel in one batch, and yields `Call`s: the method of a client and its arguments.
Whoever holds a client, blocking or asynchronous, carries the calls out.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
from qdrant_client import models
from qdrant_client.http.models import QueryResponse

from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.results import Candidate, Ranking
from lcse_plugins.search import SearchRequest, advance, search_steps
from qdrant_lcse.hits import Hits
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema, check_unit_sample, read_schema

__all__ = [
    "Call",
    "Fetch",
    "Manner",
    "Searches",
    "StaleSchema",
    "Steps",
    "client_steps",
    "learn_schema",
    "nearest",
    "together",
]

SAMPLE = 16
"""Stored vectors looked at to see whether a dot collection holds unit vectors."""

COARSE = 0.1
"""How far similarities of quantised vectors may be from those of the original ones, per length of the query vector."""

PointId: TypeAlias = int | str | UUID


@dataclass(frozen=True)
class Call:
    """A client's method to call, and what with."""

    method: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Searches:
    """Queries to run; the answer is one list of points for each."""

    requests: list[models.QueryRequest]


@dataclass(frozen=True)
class Fetch:
    """Points to read by id; the answer maps id → record."""

    ids: list[PointId] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How to search.

    Attributes:
        params: for candidates; None leaves it to the collection.
        rescoring: for scoring candidates that are already chosen: over all of them, with full precision.
        proves: whether candidate searches miss nothing.
        depth: how many points each candidate search fetches.
        doubts: whether to compare answers with what was learnt of the collection before, and raise `StaleSchema`.
    """

    params: models.SearchParams | None
    rescoring: models.SearchParams | None
    proves: bool
    depth: int
    doubts: bool = False


class StaleSchema(Exception):
    """Points do not have the similarities that their vectors should have: the collection has been made anew."""


Steps: TypeAlias = Generator["Searches | Fetch", Any, Hits]


def learn_schema(collection: str, vector_name: str | None) -> Generator[Call, Any, VectorSchema]:
    """Ask what the collection stores.

    Raises:
        CollectionError: it cannot be scored.
    """
    info = yield Call("get_collection", {"collection_name": collection})
    schema = read_schema(info, collection=collection, vector_name=vector_name)
    if not schema.cosine:
        records, _ = yield Call(
            "scroll",
            {
                "collection_name": collection,
                "limit": SAMPLE,
                "with_payload": False,
                "with_vectors": schema.with_vectors,
            },
        )
        schema = check_unit_sample(schema, records)
    return schema


def together(conversations: Sequence[Steps], *, collection: str, options: Options) -> Generator[Call, Any, list[Hits]]:
    """Run queries in lockstep; what they ask in one round goes out in one call of each kind."""
    hits: dict[int, Hits] = {}
    asked = {place: next(steps) for place, steps in enumerate(conversations)}
    while asked:
        requests = [request for ask in asked.values() if isinstance(ask, Searches) for request in ask.requests]
        ids = [point_id for ask in asked.values() if isinstance(ask, Fetch) for point_id in ask.ids]
        responses: list[QueryResponse] = []
        records: list[models.Record] = []
        common = {"collection_name": collection, "timeout": options.timeout}
        if requests:
            responses = yield Call("query_batch_points", {**common, "requests": requests})
        if ids:
            wanted = {"with_payload": options.with_payload, "with_vectors": options.with_vectors}
            records = yield Call("retrieve", {**common, **wanted, "ids": ids})
        by_id = {record.id: record for record in records}
        answered = iter(responses)
        for place, ask in list(asked.items()):
            answer = by_id if isinstance(ask, Fetch) else [next(answered).points for _ in ask.requests]
            try:
                asked[place] = conversations[place].send(answer)
            except StopIteration as end:
                hits[place] = end.value
                del asked[place]
    return [hits[place] for place in range(len(conversations))]


def nearest(schema: VectorSchema, vector: FloatArray, options: Options, **arguments: Any) -> models.QueryRequest:
    """A plain vector query for the points that pass the filter; not validated, which would look at every number."""
    return models.QueryRequest.model_construct(
        query=models.NearestQuery.model_construct(nearest=vector.tolist()),
        using=schema.vector_name,
        filter=options.query_filter,
        **arguments,
    )


def client_steps(encoded: EncodedQuery, schema: VectorSchema, options: Options, manner: Manner) -> Steps:
    """Fetch candidates with their vectors and score them here.

    Raises:
        StaleSchema: the similarities are not those of the vectors.
    """
    most = manner.depth * len(encoded.plan.candidates)
    steps = search_steps(
        encoded,
        limit=options.end if options.exact else min(options.end, most + 1),
        depth=manner.depth,
        exact=options.exact,
        exact_search=manner.proves,
        min_truth=options.min_truth,
    )
    known: dict[PointId, Candidate | None] = {}
    step = advance(steps)
    while isinstance(step, SearchRequest):
        depth = step.depth if options.exact else manner.depth
        wanted = {
            "limit": depth,
            "params": manner.params,
            "with_payload": False,
            "with_vector": schema.with_vectors,
        }
        answers = yield Searches([nearest(schema, vector, options, **wanted) for vector in step.vectors])
        if manner.doubts and not all(map(partial(_fits, schema), step.vectors, answers)):
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
    return Hits(points, ranking.exact, ranking.parse, "client", lambda: ranking)


def _fits(schema: VectorSchema, vector: FloatArray, points: Sequence[models.ScoredPoint]) -> bool:
    """Whether the best point's similarity is about what its vector says."""
    stored = schema.unit_vector_of(points[0]) if points else None
    if stored is None:
        return True
    apart = points[0].score * schema.scale(vector) - float(vector @ stored)
    return abs(apart) <= COARSE * float(np.linalg.norm(vector))


def _candidate(point: models.ScoredPoint, schema: VectorSchema) -> Candidate | None:
    vector = schema.vector_of(point)
    return None if vector is None else Candidate(point.id, vector, similarity=point.score, payload=point)


def _scored(point: models.ScoredPoint, score: float, records: Mapping[PointId, models.Record]) -> models.ScoredPoint:
    record = records.get(point.id)
    return point.model_copy(
        update={
            "score": score,
            "payload": None if record is None else record.payload,
            "vector": None if record is None else record.vector,
        }
    )
