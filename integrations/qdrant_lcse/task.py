"""One query from beginning to end, without input or output: requests to send, answers to read, hits.

    task = QueryTask(encoded, schema, options)
    while task.hits is None:
        task.read(client.query_batch_points(collection, task.requests()))

First come candidates: their ids alone where a formula in the database then scores them, else their vectors. The points
of the page come with their vectors, and their scores are computed from those by the core, whatever chose them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

import numpy as np
from qdrant_client import models
from qdrant_client.http.models import QueryResponse

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.retrieval.plan import ROUNDING, Bound
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.sources import rank_pool
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranking
from qdrant_lcse.formula import Part, Way, distinct_parts, score_formula, ways_of
from qdrant_lcse.hits import Execution, Hits
from qdrant_lcse.options import Options
from qdrant_lcse.schema import VectorSchema

__all__ = ["ExecutionChoice", "QueryTask"]

ExecutionChoice = Literal["auto", "client", "formula"]

BEAM, WIDE_BEAM = 300, 4096
"""HNSW's beam for each vector that candidates are searched with, and where nothing is wanted: graphs are built to find
what is near."""

SCANNED, SCANNED_FOR_MANY, MANY = 60_000_000, 250_000_000, 50
"""Numbers in a collection's vectors up to which a search for what is far scans instead: about as fast as the wide beam,
and it misses nothing; and where more than a few results are wanted, which would take a wider beam still."""

GROWTH = 4
"""How much deeper each further round searches."""

ONE_TRIP = 100
"""Candidates up to which their payloads come with their vectors."""

WHOLE = 5_000
"""Points of a collection in local mode that is read whole."""


class _Search(NamedTuple):
    """A search for candidates: by the least cosine with (b, d) vectors.

    Attributes:
        rows: what to search with.
        far: whether its best points are far from all of them.
        offset: of a bound, what is added to its similarities: no point that it did not return scores more than its
            last one; None of other searches.
    """

    rows: FloatArray
    far: bool
    offset: float | None = None


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
        self._exact = options.exact and (local or schema.strict.exact)
        if options.exact and not self._exact:
            self._note("strict mode allows no exact search: nothing is proved, and some of the best may be missing")
        self._growth = 1
        self._start = 0 if options.min_truth or self._execution == "client" else options.offset
        self._want = options.end - self._start
        self._ids: list[Any] | None = None  # candidates that a formula is to score
        self._unseen: list[float] | None = None  # what points that were not found may score; None for any number
        self._page: Ranking | None = None  # what is known but for its payloads

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
        return "formula"

    # Requests

    def requests(self) -> list[models.QueryRequest]:
        """What to ask next."""
        if self._page is not None:
            ids, vectors = [ranked.id for ranked in self._page], self._options.with_vectors
            return [self._request(limit=len(ids), filter=_has_id(ids), payload=True, with_vector=vectors)]
        if self._execution == "linear":
            (way,) = self._ways
            query, params = _nearest(way.bound.vector), _rescored(self._params(way.far, self._want))
            return [self._request(query=query, params=params, limit=self._want, offset=self._start, payload=True)]
        if self._execution == "formula" and (self._ids is not None or not self._searches):
            return [self._formula_request()]
        scored = self._execution == "formula"
        payload = not scored and not self._lacks_payload
        return [
            self._request(
                query=_nearest(search.rows),
                params=self._params(search.far, self._depth, len(search.rows)),
                limit=self._depth,
                payload=payload,
                with_vector=False if scored else self._returned_vectors,
            )
            for search in self._searches
        ]

    def _formula_request(self) -> models.QueryRequest:
        """Score the candidates, and the best of each way that one vector search ranks."""
        depth = self._allowed(20 + self._options.end)
        chosen = {"filter": _has_id(self._ids or []), "params": self._rescoring, "limit": max(1, len(self._ids or []))}
        prefetches = []
        for part, way in distinct_parts(self._ways):
            best = {"filter": self._options.query_filter, "params": self._params(way.far, depth), "limit": depth}
            where: dict[str, Any] = chosen if way in self._scored else best
            query = _nearest(part.vector)
            prefetches.append(models.Prefetch.model_construct(query=query, using=self._schema.using, **where))
        return self._request(
            prefetch=prefetches,
            query=score_formula(self._ways, cosine=self._schema.cosine),
            filter=None,  # each prefetch has its own
            params=self._rescoring,
            limit=self._want,
            offset=self._start,
            payload=True,
        )

    def _request(self, *, payload: bool, **arguments: Any) -> models.QueryRequest:
        usual: dict[str, Any] = {"filter": self._options.query_filter, "with_vector": self._returned_vectors}
        return _Request.model_construct(
            using=self._schema.using,
            with_payload=self._options.with_payload if payload else False,
            shard_key=self._options.shard_key_selector,
            **{**usual, **arguments},
        )

    @property
    def _returned_vectors(self) -> bool | list[str]:
        """Those that were asked for, and those that scores are computed from."""
        own, asked = self._schema.with_vectors, self._options.with_vectors
        if asked is True or own is True:
            return True
        return sorted({*own, *(asked or ())})  # type: ignore[misc]

    # How to search

    @cached_property
    def _scored(self) -> tuple[Way, ...]:
        """The ways whose candidates a formula scores; of the others one search gives the scores, with no proof."""
        return tuple(way for way in self._ways if self._proves or len(way.parts) > 1)

    @cached_property
    def _searches(self) -> list[_Search]:
        """The searches for candidates."""
        if self._whole:
            return [_Search(self._encoded.holistic_vector[None, :], False)]
        bounds: Sequence[tuple[Bound | Part, bool]] = ()
        if self._execution == "formula":
            found = [_Search(way.search, way.far) for way in self._scored if len(way.parts) > 1]
            bounds = [(way.bound, way.far) for way in self._scored if self._proves]
        elif self._ways and not self._options.exact:
            found = [_Search(way.search, way.far) for way in self._ways]
        else:
            far = self._encoded.affirms_nothing
            found = [_Search(row[None, :], far) for row in self._encoded.plan.search_vectors]
            bounds = [(bound, far) for bound in self._encoded.plan.bounds or () if self._options.exact]
        return [*found, *(_Search(bound.vector[None, :], far, bound.offset) for bound, far in bounds)]

    @property
    def _depth(self) -> int:
        """How many points a search for candidates fetches."""
        end, searches = self._options.end, len(self._searches)
        if self._whole:
            depth = max(end, (self._schema.points or 0) + 1)
        elif self._options.candidates is not None:
            depth = max(end, -(-self._options.candidates // searches))
        elif self._ways:  # two parts alike are ranked nearly as their scores are, many unlike ones less
            parts = max(len(way.parts) for way in self._ways)
            alike = len(self._ways) == 1 and self._ways[0].far and not self._ways[0].anchored
            depth = 300 + 4 * end if parts > 2 else 20 + 2 * end if alike else 120 + 4 * end
        else:  # vectors travel
            depth = max(400, 8 * end) // searches + end
        return self._allowed(depth * self._growth)

    def _params(self, far: bool, depth: int = 0, vectors: int = 1) -> models.SearchParams | None:
        """How to search this deep; a beam no wider than what it returns misses much of the tail."""
        given, strict = self._options.search_params, self._schema.strict
        if self._local:
            return None
        if self._exact:
            return (given or models.SearchParams()).model_copy(update={"exact": True})
        if given is not None or self._encoded.edits_nothing:
            return given
        most = SCANNED_FOR_MANY if self._options.end > MANY else SCANNED
        few = self._schema.points is not None and self._schema.points * self._schema.size <= most
        if far and few and strict.exact:
            return models.SearchParams(exact=True)
        wanted = max(WIDE_BEAM if far else BEAM * vectors, 3 * depth // 2)
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

    @cached_property
    def _exhaustive(self) -> bool:
        """Whether no candidate search misses a point."""
        if self._local:
            return True
        found = [self._params(far) for far in {way.far for way in self._ways} or {False}]
        return all(params is not None and params.exact and not params.indexed_only for params in found)

    @cached_property
    def _proves(self) -> bool:
        """Whether it is looked at how deep the searches went."""
        return self._exhaustive and (self._exact or self._options.search_params is not None or self._local)

    @property
    def _whole(self) -> bool:
        """Whether all points are read: a small collection in local mode."""
        small = self._schema.points is not None and self._schema.points < WHOLE
        return self._local and small and self._execution == "client"

    @property
    def _lacks_payload(self) -> bool:
        """Whether candidates come without what was asked for, which is fetched for the best alone."""
        wanted, most = bool(self._options.with_payload) or bool(self._options.with_vectors), self._schema.strict.ids
        can_be_named = most is None or self._options.limit <= most
        return wanted and can_be_named and self._depth * len(self._searches) > ONE_TRIP

    def _allowed(self, wanted: int, *, named: bool = False) -> int:
        """As many of the points wanted as one search may return; or, when they are named, as one may be given."""
        most = self._schema.strict.ids if named else self._schema.strict.limit
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
        if self._page is not None:
            self._finish(self._page, {point.id: point for point in found[0]})
            return
        if self._execution != "linear" and self._searches and self._ids is None:
            self._unseen = self._bounded(found)
            if self._execution == "formula":
                turns = (point for row in zip_longest(*found) for point in row if point is not None)
                ids = list(dict.fromkeys(point.id for point in turns))
                self._ids = ids[: self._allowed(len(ids), named=True)]
                if len(self._ids) < len(ids):
                    self._unseen = None
                return
        points = {point.id: point for one in found for point in one}
        ranking, options = self._ranked(points), self._options
        page = ranking[options.offset - self._start : options.end - self._start]
        short = len(page) < options.limit
        cut = short and self._execution != "client" and len(points) == self._want and options.score_threshold is None
        if cut and self._wider():
            return
        page.exact = self._exhaustive and not cut and (self._execution == "linear" or self._is_proved(page))
        if not page.exact and self._deeper():
            return
        if self._execution == "client" and self._lacks_payload and page:
            self._page = page
            return
        self._finish(page, points)

    def _bounded(self, found: Sequence[Sequence[models.ScoredPoint]]) -> list[float] | None:
        """What a point that no search found may score, by each bound; empty when all points were found."""
        if any(len(points) < self._depth for points in found):
            return []
        bounds = [
            points[-1].score * self._schema.scale(search.rows) + search.offset
            for search, points in zip(self._searches, found, strict=True)
            if search.offset is not None
        ]
        return bounds or None

    def _is_proved(self, page: Ranking) -> bool:
        """Whether no point that was not found can belong on the page."""
        if not self._unseen:
            return self._unseen is not None
        threshold = self._options.score_threshold
        least = page[-1].score if len(page) == self._options.limit else threshold
        return least is not None and least > max(self._unseen) + ROUNDING

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
        self._start, before = 0, self._want
        self._want = self._allowed(max(self._options.end, self._want) * GROWTH)
        return self._want > before

    def _deeper(self) -> bool:
        """Whether to search again, deeper, because the result is not proved."""
        if not self._exact or not self._exhaustive or self._execution == "linear":
            return False
        before, self._ids = self._depth, None
        self._growth *= GROWTH
        return self._depth > before

    def _finish(self, page: Ranking, points: dict[Any, models.ScoredPoint]) -> None:
        """Pack the page, with what came of each point; one that has gone meanwhile is left out."""
        kept = Ranking([r for r in page if r.id in points], parse=page.parse, mode=page.mode, exact=page.exact)
        for place, ranked in enumerate(kept):
            point = points[ranked.id]
            point.score, point.vector = ranked.score, self._asked_for(point.vector)
            if ranked.candidate.payload is not point.payload:
                kept[place] = replace(ranked, candidate=replace(ranked.candidate, payload=point.payload))
        self.hits = Hits([points[ranked.id] for ranked in kept], kept, self._execution, tuple(self._notes))

    def _asked_for(self, vector: Any) -> Any:
        asked = self._options.with_vectors
        if not asked:
            return None
        if isinstance(asked, list) and isinstance(vector, dict):
            return {name: vector[name] for name in asked if name in vector}
        return vector


class _Request(models.QueryRequest):
    """A request made for one call, which the client need not copy number by number."""

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> _Request:
        return self


def _nearest(rows: FloatArray) -> models.NearestQuery | models.RecommendQuery:
    """Points by their similarity to a vector, or by the least of those to several.

    Qdrant knows the latter as recommendation by the best score: of a point with negative examples alone, that of the
    one most like it counts, against it. Seven decimals are as much as float32 holds, and make requests shorter.
    """
    if rows.size == rows.shape[-1]:
        return models.NearestQuery.model_construct(nearest=np.round(rows.ravel(), 7).tolist())
    opposite = models.RecommendInput.model_construct(
        negative=np.round(-rows, 7).tolist(), strategy=models.RecommendStrategy.BEST_SCORE
    )
    return models.RecommendQuery.model_construct(recommend=opposite)


def _has_id(ids: Sequence[Any]) -> models.Filter:
    return models.Filter.model_construct(must=[models.HasIdCondition.model_construct(has_id=ids)])


def _rescored(params: models.SearchParams | None) -> models.SearchParams | None:
    """The same search, answered by the original vectors where the collection is quantised."""
    if params is None:
        return None
    quantization = params.quantization or models.QuantizationSearchParams()
    return params.model_copy(update={"quantization": quantization.model_copy(update={"rescore": True})})
