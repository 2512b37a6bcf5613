"""One setting of the Qdrant benchmark: what it finds, and its time beside that of a plain query asked in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.bench.qdrant_queries import LIMIT, Asked, found_ids, plain_query, worded
from lcse_plugins.encoders.protocol import FloatArray

if TYPE_CHECKING:
    from qdrant_lcse import Hits, LogicSearch
    from qdrant_lcse.embedded import EmbeddedClient

    from lcse_plugins.query import Query

__all__ = ["Measured", "measure"]

_Way = Callable[[int], object]
"""A way of asking, for the number of its turn."""

_Ask = Callable[["str | Query"], "Hits"]
_Encode = Callable[[Sequence[str]], FloatArray]


@dataclass(frozen=True)
class Measured:
    """One operator under one setting, over several queries.

    Attributes:
        operator: the kind of query.
        execution: what ran.
        candidates: how many points were asked to be scored; a linear score needs no more than it returns.
        beam: HNSW's beam where it was asked for; None where it was left to `LogicSearch`.
        recall: mean share of the true top 10 that was found.
        worst: the smallest share.
        milliseconds: median of the whole query, on the wall clock.
        ratio: median over the queries of its time to that of a plain query by the text vector, measured in turn.
        processor_ratio: the same of processor time, which other work on the machine disturbs less.
        worded_ratio: the same on the wall clock when both are asked in words that were not met before, whose concepts
            were: both encode the text, and one of them parses it.
    """

    operator: str
    execution: str
    candidates: int
    beam: int | None
    recall: float
    worst: float
    milliseconds: float
    ratio: float
    processor_ratio: float
    worded_ratio: float


def measure(
    client: EmbeddedClient,
    search: LogicSearch,
    operator: str,
    asked: Sequence[Asked],
    depth: int,
    repeats: int,
    *,
    beam: int | None = None,
) -> Measured:
    """Ask the queries of one operator for their answers, then several times for the time they take.

    The scorer of `search` is a new one, which knows no text yet.
    """
    from qdrant_client import models

    params = None if beam is None else models.SearchParams(hnsw_ef=beam)
    ask = partial(search.query, limit=LIMIT, candidates=depth, search_params=params)
    shares, execution = [], ""
    for one in asked:
        hits = ask(one.query)
        execution = hits.execution
        shares.append(len(one.true & found_ids(hits.points)) / LIMIT)
    encode = search.scorer.encoder.encode_texts
    plain, logical = _interleaved([_by_vector(client, ask, one) for one in asked], repeats)
    distinct = {one.query: one for one in asked}.values()  # a text met before would not be encoded again
    worded_plain, worded_logical = _interleaved([_in_words(client, ask, encode, one) for one in distinct], repeats)
    ratios = np.median(logical / plain, axis=0)
    worded_ratio = np.median(worded_logical[:, 0] / worded_plain[:, 0])
    return Measured(
        operator,
        execution,
        depth,
        beam,
        recall=round(float(np.mean(shares)), 4),
        worst=min(shares),
        milliseconds=round(1e3 * float(np.median(logical[:, 0])), 3),
        ratio=round(float(ratios[0]), 2),
        processor_ratio=round(float(ratios[1]), 2),
        worded_ratio=round(float(worded_ratio), 2),
    )


def _by_vector(client: EmbeddedClient, ask: _Ask, one: Asked) -> tuple[_Way, _Way]:
    """A plain query and ours, by vectors that are known."""
    return lambda turn: plain_query(client, one.encoded.holistic_vector), lambda turn: ask(one.query)


def _in_words(client: EmbeddedClient, ask: _Ask, encode: _Encode, one: Asked) -> tuple[_Way, _Way]:
    """A plain query and ours, in words that are new each time.

    They are timed apart from the others: the encoder's threads spin for a while after their work.
    """
    return (
        lambda turn: plain_query(client, encode([worded(one.query, turn)])[0]),
        lambda turn: ask(worded(one.query, turn)),
    )


def _interleaved(calls: Sequence[Sequence[_Way]], repeats: int) -> NDArray[np.float64]:
    """(ways, queries, 2) median seconds on the wall clock and of the processor.

    Each way of asking in turn, query after query, so that no query finds its own data still in the processor's cache;
    the first round is not counted.
    """
    seconds = np.zeros((repeats + 1, len(calls), len(calls[0]), 2))
    for turn in range(repeats + 1):
        for query, ways in enumerate(calls):
            for place, call in enumerate(ways):
                wall, processor = time.perf_counter(), time.process_time()
                call(turn)
                seconds[turn, query, place] = time.perf_counter() - wall, time.process_time() - processor
    return np.moveaxis(np.median(seconds[1:], axis=0), 1, 0)
