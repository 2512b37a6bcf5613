"""One query from beginning to end, without input or output: requests to send, answers to read, hits.

    task = QueryTask(encoded, schema, options)
    while task.hits is None:
        task.read(client.query_batch_points(collection, task.requests()))

Whatever finds the points, they come with their vectors, and their scores are computed from those by the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from qdrant_client import models
from qdrant_client.http.models import QueryResponse

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.retrieval.plan import Bound
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.sources import rank_pool
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranking
from qdrant_lcse.formula import score_formula
from qdrant_lcse.hits import Execution, Hits
from qdrant_lcse.options import Options
from qdrant_lcse.pieces import Way, ways_of
from qdrant_lcse.schema import VectorSchema

__all__ = ["ExecutionChoice", "QueryTask"]

ExecutionChoice = Literal["auto", "client", "formula"]

BEAM, WIDE_BEAM = 512, 2048
"""HNSW's beam for candidates, and where nothing is wanted: graphs are built to find what is near."""

SCANNED, SCANNED_FOR_MANY, MANY = 40_000, 500_000, 50
"""Points up to which a search for what is far scans instead: about as fast as the wide beam, and it misses nothing;
and where more than a few results are wanted, which would take a wider beam still."""

GROWTH = 4
"""How much deeper each further round searches."""

ONE_TRIP = 100
"""Candidates up to which their payloads come with their vectors."""

WHOLE = 5_000
"""Points of a collection in local mode that is read whole."""

ROUNDING = 1e-5
"""What float32 may add to a similarity; a proof must hold by more than this."""


class QueryTask:
    """Asks for candidates and reads the answers, until the hits are known.

    Args:
        encoded: The query.
        schema: What the collection stores and allows.
        options: What was asked for.
        execution: Where to score.
        local: Whether the client is in local mode, which scans everything and takes no parameters.
    """

    def __init__(
        self,
        encoded: EncodedQuery,
        schema: VectorSchema,
        options: Options,
        *,
        execution: ExecutionChoice = "auto",
        local: bool = False,
    ) -> None:
        self.hits: Hits | None = None
        self._encoded, self._schema, self._options, self._local = encoded, schema, options, local
        self._notes: dict[str, None] = {}
        self._ways = ways_of(encoded) or ()
        self._execution = self._choose(execution)
        self._exact = options.exact and self._may_scan()
        self._growth = 1
        self._start = 0 if options.min_truth or self._execution == "client" else options.offset
        self._want = options.end - self._start
        self._ranking: Ranking | None = None  # of `client`, while its payloads are fetched

    def _choose(self, asked: ExecutionChoice) -> Execution:
        if self._encoded.plan.linear is not None:
            return "linear"
        if asked == "formula" and not self._ways:
            raise InvalidOption(
                f"a query in mode {self._encoded.config.mode!r} with aggregator {self._encoded.config.aggregator!r}, "
                "or one this large, is scored in the client; use execution='auto'"
            )
        if asked == "client" or not self._ways or (asked == "auto" and self._local):
            return "client"
        # What is far is found by one expensive search, which a formula would repeat for each of its parts.
        (first, *others), exact = self._ways, self._options.exact
        lone = not others and first.far and not first.anchored and not exact
        return "client" if asked == "auto" and lone else "formula"

    def _may_scan(self) -> bool:
        if self._local or self._schema.strict.exact:
            return True
        self._note("strict mode allows no exact search: nothing is proved, and some of the best may be missing")
        return False

    # Requests

    def requests(self) -> list[models.QueryRequest]:
        """What to ask next."""
        if self._ranking is not None:
            ids = [ranked.id for ranked in self._ranking]
            chosen = models.Filter.model_construct(must=[models.HasIdCondition.model_construct(has_id=ids)])
            vectors = self._options.with_vectors
            return [self._request(limit=len(ids), filter=chosen, payload=True, with_vector=vectors)]
        match self._execution:
            case "linear":
                (way,) = self._ways
                query = _nearest(way.parts[0].vector)
                params = _rescored(self._params(way.far, self._want))
                return [self._leaf_request(query, params, limit=self._want, offset=self._start, payload=True)]
            case "formula":
                return [self._formula_request(), *self._probes()]
            case _:
                depth = self._depth()
                together = depth * len(self._searches) <= ONE_TRIP
                return [
                    self._leaf_request(_nearest(rows), self._params(far, depth), limit=depth, payload=together)
                    for rows, far in self._searches
                ]

    def _formula_request(self) -> models.QueryRequest:
        prefetches: list[models.Prefetch] = []
        for way in self._ways:
            depth = self._depth(way)
            params = self._params(way.far, depth)
            leaves: dict[str, Any] = {
                "using": self._schema.using,
                "filter": self._options.query_filter,
                "params": params,
            }
            if len(way.parts) == 1:
                query = _nearest(way.parts[0].vector)
                prefetches.append(models.Prefetch.model_construct(query=query, limit=depth, **leaves))
                continue
            searches = [way.search, way.bound.vector] if self._proves else [way.search]
            inner = [models.Prefetch.model_construct(query=_nearest(rows), limit=depth, **leaves) for rows in searches]
            most = self._allowed(depth * len(inner))
            prefetches += [
                models.Prefetch.model_construct(
                    prefetch=inner,
                    query=_nearest(part.vector),
                    using=self._schema.using,
                    params=self._rescoring,
                    limit=most,
                )
                for part in way.parts
            ]
        return self._request(
            prefetch=prefetches,
            query=score_formula(self._ways, cosine=self._schema.cosine),
            params=self._rescoring,
            limit=self._want,
            offset=self._start,
            payload=True,
        )

    def _probes(self) -> list[models.QueryRequest]:
        """How far down each way's bound was searched: the point at that depth."""
        if not self._proves:
            return []
        return [
            self._leaf_request(
                _nearest(way.bound.vector),
                self._params(way.far),
                limit=1,
                offset=self._depth(way) - 1,
                payload=False,
                with_vector=False,
            )
            for way in self._ways
        ]

    def _leaf_request(self, query: Any, params: models.SearchParams | None, **arguments: Any) -> models.QueryRequest:
        return self._request(query=query, params=params, filter=self._options.query_filter, **arguments)

    def _request(
        self, *, payload: bool, with_vector: bool | list[str] | None = None, **arguments: Any
    ) -> models.QueryRequest:
        return models.QueryRequest.model_construct(
            using=self._schema.using,
            with_payload=self._options.with_payload if payload else False,
            with_vector=self._returned_vectors if with_vector is None else with_vector,
            shard_key=self._options.shard_key_selector,
            **arguments,
        )

    @property
    def _returned_vectors(self) -> bool | list[str]:
        """Those that were asked for, and those that scores are computed from."""
        own, asked = self._schema.with_vectors, self._options.with_vectors
        if asked is True or own is True:
            return True
        return sorted({*own, *(asked or ())})  # type: ignore[misc]

    # How to search

    def _params(self, far: bool, depth: int = 0) -> models.SearchParams | None:
        """How to search this deep; a beam no wider than what it returns misses much of the tail."""
        given, strict = self._options.search_params, self._schema.strict
        if self._local:
            return None
        if self._exact:
            return (given or models.SearchParams()).model_copy(update={"exact": True})
        if given is not None or self._encoded.edits_nothing:
            return given
        most = SCANNED_FOR_MANY if self._options.end > MANY else SCANNED
        few = self._schema.points is not None and self._schema.points <= most
        if far and few and strict.exact:
            return models.SearchParams(exact=True)
        wanted = max(WIDE_BEAM if far else BEAM, 3 * depth // 2)
        beam = wanted if strict.beam is None else min(wanted, strict.beam)
        if beam < wanted:
            self._note(f"strict mode allows a beam of {beam:,}, not {wanted:,}: some of the best may be missing")
        return models.SearchParams(hnsw_ef=beam)

    @property
    def _rescoring(self) -> models.SearchParams | None:
        """For points that are already chosen: all of them, by their original vectors."""
        if self._local:
            return None
        if self._schema.strict.exact:
            return models.SearchParams(exact=True)
        return models.SearchParams(quantization=models.QuantizationSearchParams(ignore=True))

    @property
    def _exhaustive(self) -> bool:
        """Whether no candidate search misses a point."""
        if self._local:
            return True
        found = [self._params(far) for far in {way.far for way in self._ways} or {False}]
        return all(params is not None and params.exact and not params.indexed_only for params in found)

    @property
    def _proves(self) -> bool:
        """Whether it is looked at how deep the searches went."""
        return self._exhaustive and (self._exact or self._options.search_params is not None or self._local)

    @property
    def _searches(self) -> list[tuple[FloatArray, bool]]:
        """The candidate searches of `client`: vectors, and whether their best points are far."""
        if self._whole:
            return [(self._encoded.holistic_vector, False)]
        if self._ways and not self._options.exact:
            return [(way.search, way.far) for way in self._ways]
        far = self._encoded.affirms_nothing
        rows = [*self._encoded.plan.search_vectors, *(bound.vector for bound in self._bounds)]
        return [(row, far) for row in rows]

    @property
    def _bounds(self) -> Sequence[Bound]:
        return (self._encoded.plan.bounds or ()) if self._options.exact else ()

    @property
    def _whole(self) -> bool:
        """Whether all points are read: a small collection in local mode."""
        return self._local and self._schema.points is not None and self._schema.points < WHOLE

    def _depth(self, way: Way | None = None) -> int:
        """How many points a candidate search fetches."""
        end, points = self._options.end, self._schema.points
        searches = len(self._ways) or len(self._searches)
        if self._whole:
            depth = max(end, (points or 0) + 1)
        elif self._options.candidates is not None:
            depth = max(end, -(-self._options.candidates // searches))
        elif way is None:  # vectors travel
            depth = 20 + 2 * end if self._ways else max(400, 8 * end) // searches + end
        elif len(way.parts) == 1:
            depth = 20 + end
        elif not way.mixed or (way.anchored and len(way.parts) == 2):
            depth = 100 + 2 * end
        elif len(way.parts) == 2:  # offsets matter more, and a search by cosines knows none
            depth = 200 + 4 * end
        else:
            depth = 500 + 4 * end
        return self._allowed(depth * self._growth)

    def _allowed(self, wanted: int) -> int:
        most = self._schema.strict.limit
        if most is None or wanted <= most:
            return wanted
        self._note(f"strict mode allows {most:,} points a search, not {wanted:,}: some of the best may be missing")
        return most

    def _note(self, text: str) -> None:
        self._notes[text] = None

    # Answers

    def read(self, responses: Sequence[QueryResponse]) -> None:
        """Take the answers to `requests()`; `hits` is set when no more are needed."""
        found = [response.points for response in responses]
        if self._ranking is not None:
            self._finish(self._ranking, {point.id: point for point in found[0]})
            return
        if self._execution == "formula":
            answers, probes = found[:1], found[1:]
        else:
            answers, probes = found, []
        points = {point.id: point for points in answers for point in points}
        ranking = self._ranked(points)
        page = ranking[self._options.offset - self._start : self._options.end - self._start]
        if self._execution == "client":
            complete = self._client_proof(ranking, answers)
            if not complete and self._deeper():
                return
        else:
            full = len(answers[0]) == self._want
            if len(page) < self._options.limit and full and self._wider():
                return
            if self._execution == "linear":
                complete = self._exhaustive
            else:
                complete = self._formula_proof(page, probes, all_read=not full)
                if not complete and self._deeper():
                    return
        page.exact = complete
        if self._execution == "client" and self._lacks_payload and page:
            self._ranking = page
            return
        self._finish(page, points)

    def _ranked(self, points: dict[Any, models.ScoredPoint]) -> Ranking:
        """The points by the scores of their vectors; equal ones in the order of their ids."""
        encoded, options = self._encoded, self._options
        ordered = sorted(points.values(), key=lambda point: (type(point.id).__name__, point.id))
        candidates = [
            Candidate(point.id, vector, payload=point.payload)
            for point in ordered
            if (vector := self._schema.vector_of(point)) is not None
        ]
        if not candidates:
            return Ranking([], parse=encoded.parse, mode=encoded.config.mode, exact=False)
        ranking = rank_pool(
            encoded, VectorPool.of(candidates), limit=options.end - self._start, min_truth=options.min_truth
        )
        if options.score_threshold is not None:
            kept = [ranked for ranked in ranking if ranked.score >= options.score_threshold]
            ranking = Ranking(kept, parse=ranking.parse, mode=ranking.mode, exact=ranking.exact)
        return ranking

    def _wider(self) -> bool:
        """Whether more points are to be read, because not all that came were fit."""
        if self._options.score_threshold is not None:
            return False
        self._start, before = 0, self._want
        self._want = self._allowed(max(self._options.end, self._want) * GROWTH)
        return self._want > before

    def _deeper(self) -> bool:
        """Whether to search again, deeper, because the result is not proved."""
        if not self._exact or not self._exhaustive:
            return False
        before = [self._depth(way) for way in self._ways or (None,)]
        self._growth *= GROWTH
        return [self._depth(way) for way in self._ways or (None,)] > before

    def _formula_proof(self, page: Ranking, probes: Sequence[Sequence[models.ScoredPoint]], *, all_read: bool) -> bool:
        """Whether no point that a way did not find can belong on the page."""
        if not probes:
            return False
        unseen = [
            probe[0].score * self._schema.scale(way.bound.vector) + way.bound.offset
            for way, probe in zip(self._ways, probes, strict=True)
            if probe
        ]
        if len(page) < self._options.limit:
            return not unseen and all_read
        return not unseen or page[-1].score > max(unseen) + ROUNDING

    def _client_proof(self, ranking: Ranking, answers: Sequence[Sequence[models.ScoredPoint]]) -> bool:
        if not self._exhaustive:
            return False
        if any(len(points) < self._depth() for points in answers):
            return True
        if len(ranking) < self._options.end or not self._bounds:
            return False
        lasts = [
            float(bound.vector @ vector) / float(np.linalg.norm(vector))
            for bound, points in zip(self._bounds, answers[-len(self._bounds) :], strict=True)
            if (vector := self._schema.vector_of(points[-1])) is not None
        ]
        return len(lasts) == len(self._bounds) and self._encoded.plan.proves(ranking[-1].score, lasts)

    @property
    def _lacks_payload(self) -> bool:
        wanted = bool(self._options.with_payload) or bool(self._options.with_vectors)
        return wanted and self._depth() * len(self._searches) > ONE_TRIP

    def _finish(self, page: Ranking, points: dict[Any, models.ScoredPoint]) -> None:
        """Pack the page, with what came of each point; one that has gone meanwhile is left out."""
        kept = Ranking([r for r in page if r.id in points], parse=page.parse, mode=page.mode, exact=page.exact)
        for place, ranked in enumerate(kept):
            point = points[ranked.id]
            point.score, point.vector = ranked.score, self._asked_for(point.vector)
            if ranked.candidate.payload is not point.payload:
                kept[place] = replace(ranked, candidate=replace(ranked.candidate, payload=point.payload))
        found = [points[ranked.id] for ranked in kept]
        self.hits = Hits(found, kept, self._execution, tuple(self._notes))

    def _asked_for(self, vector: Any) -> Any:
        asked = self._options.with_vectors
        if not asked:
            return None
        if isinstance(asked, list) and isinstance(vector, dict):
            return {name: vector[name] for name in asked if name in vector}
        return vector


class _Vector(list[float]):
    """A vector in a request; the client copies every request deeply, number by number, where this stays one."""

    def __deepcopy__(self, memo: object) -> _Vector:
        return self


def _nearest(rows: FloatArray) -> models.NearestQuery | models.RecommendQuery:
    """Points by their similarity to a vector, or by the least of those to several.

    Qdrant knows the latter as recommendation by the best score: of a point with negative examples alone, that of the
    one most like it counts, against it. Seven decimals are as much as float32 holds, and make requests shorter.
    """
    if rows.size == rows.shape[-1]:
        return models.NearestQuery.model_construct(nearest=_Vector(np.round(rows.ravel(), 7).tolist()))
    opposite = models.RecommendInput.model_construct(
        negative=[_Vector(row) for row in np.round(-rows, 7).tolist()], strategy=models.RecommendStrategy.BEST_SCORE
    )
    return models.RecommendQuery.model_construct(recommend=opposite)


def _rescored(params: models.SearchParams | None) -> models.SearchParams | None:
    """The same search, answered by the original vectors where the collection is quantised."""
    if params is None:
        return None
    quantization = params.quantization or models.QuantizationSearchParams()
    return params.model_copy(update={"quantization": quantization.model_copy(update={"rescore": True})})
