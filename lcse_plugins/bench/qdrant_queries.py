"""What the Qdrant benchmark asks: queries of every operator over common things, with their answers; a plain query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.query import Concept, Query, describe
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.encoded import EncodedQuery

if TYPE_CHECKING:
    from qdrant_client import models
    from qdrant_lcse.embedded import EmbeddedClient

__all__ = ["COLLECTION", "LIMIT", "OPERATORS", "Asked", "draw_concepts", "found_ids", "plain_query", "worded"]

LIMIT = 10
COLLECTION = "bench"
WORDS = (
    "umbrella", "person", "dog", "car", "bench", "cat", "truck", "bus", "chair", "dining table", "bottle", "bird",
    "horse", "bicycle", "traffic light", "boat", "train", "tv", "laptop", "pizza",
)  # fmt: skip

_REQUESTS = ("a photo of", "a picture of", "show me", "find", "images with", "I want to see")

OPERATORS: dict[str, Callable[[Concept, Concept, Concept, Concept], Query]] = {
    "NOT": lambda a, b, c, d: ~a,
    "AND": lambda a, b, c, d: a & b,
    "OR": lambda a, b, c, d: a | b,
    "BUT NOT": lambda a, b, c, d: a & ~b,
    "NEITHER": lambda a, b, c, d: ~a & ~b,
    "NESTED": lambda a, b, c, d: (a & ~b) | (c & ~d),
}


def draw_concepts(rng: np.random.Generator) -> list[Concept]:
    """Four different concepts."""
    return [Concept(str(word)) for word in rng.choice(WORDS, 4, replace=False)]


@dataclass(frozen=True, eq=False)
class Asked:
    """A query, its true top 10, and the 10 vectors nearest to its text, which a plain query looks for."""

    query: Query
    encoded: EncodedQuery
    true: frozenset[int]
    nearest: frozenset[int]

    @classmethod
    def of(cls, query: Query, scorer: LogicScorer, pool: VectorPool) -> Asked:
        """The query with its answers, by scoring every vector."""
        encoded = scorer.encode(query)
        nearest = np.argpartition(-(pool.vectors @ encoded.holistic_vector), LIMIT - 1)[:LIMIT]
        return cls(query, encoded, frozenset(pool.top(encoded, limit=LIMIT)[0].tolist()), frozenset(nearest.tolist()))


def worded(query: Query, turn: int) -> str:
    """The query in English, each turn in other words."""
    rounds, place = divmod(turn, len(_REQUESTS))
    return f"{'please ' * rounds}{_REQUESTS[place]} {describe(query)}"


def plain_query(client: EmbeddedClient, vector: FloatArray) -> Sequence[models.ScoredPoint]:
    """A plain query for a text's vector, as it is commonly asked."""
    from qdrant_client import models

    nearest = models.NearestQuery(nearest=vector.tolist())
    request = models.QueryRequest(query=nearest, limit=LIMIT, with_payload=True)
    return client.query_batch_points(COLLECTION, [request])[0].points


def found_ids(points: Iterable[models.ScoredPoint]) -> set[int]:
    """The ids of points."""
    return {int(point.id) for point in points}
