"""What the page searches: the index of a folder, or a Qdrant collection. Both answer the same questions.

A wish is a direction among image vectors: the mean of the pictures to be like, less those not to be like.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lcse_plugins.cli.answers import count_satisfying
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import ImageError
from lcse_plugins.images.locations import ImageAccess
from lcse_plugins.index import ImageIndex
from lcse_plugins.retrieval.sources import rank_pool
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, Ranking

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

DEEP = 500
"""Results that a wish re-ranks."""


class FolderCollection:
    """The pictures of an index on disk."""

    def __init__(self, index: ImageIndex) -> None:
        self.access = ImageAccess()
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    def search(
        self, encoded: EncodedQuery, scorer: LogicScorer, *, limit: int, min_truth: float | None
    ) -> tuple[Ranking, int | None]:
        """The best pictures, and how many of the collection satisfy the query, where that is known."""
        ranking = rank_pool(encoded, self._index, limit=limit, min_truth=min_truth)
        return ranking, count_satisfying(encoded, self._index, min_truth)

    def alike(self, wish: FloatArray | None, limit: int) -> list[tuple[Candidate, float | None]]:
        """The pictures nearest to a wish; without one, the first in their own order."""
        if wish is None:
            return [(self._index.candidate(place), None) for place in range(min(limit, len(self)))]
        products = np.asarray(self._index.vectors, dtype=np.float32) @ wish
        best = np.argsort(-products, kind="stable")[:limit]
        return [(self._index.candidate(int(place)), float(products[place])) for place in best]

    def find(self, key: str) -> Candidate:
        """The picture of an id, with its vector; ImageError if there is none."""
        return self._index.candidate(self._index.position(key))


class QdrantCollection:
    """The points of a Qdrant collection, asked as a `FolderCollection`; where a picture is, its payload says.

    Args:
        client: A client of the server.
        collection_name: The collection.
        scorer: Its encoder made the collection's vectors.
        vector_name: The vectors to search when the collection names them.
        pictures: The folder that pictures are read from; paths in payloads must lie in it.
    """

    def __init__(
        self,
        client: QdrantClient,
        collection_name: str,
        scorer: LogicScorer,
        *,
        vector_name: str | None = None,
        pictures: Path | None = None,
    ) -> None:
        self.access = ImageAccess(root=None if pictures is None else str(pictures))
        self._client, self._name, self._vector_name = client, collection_name, vector_name
        self._searches: dict[str, Any] = {}
        self.search(scorer.encode("anything"), scorer, limit=1, min_truth=None)  # one that cannot be is refused now

    def __len__(self) -> int:
        return int(self._client.count(self._name, exact=False).count)

    def search(
        self, encoded: EncodedQuery, scorer: LogicScorer, *, limit: int, min_truth: float | None
    ) -> tuple[Ranking, int | None]:
        """As `FolderCollection.search`."""
        from qdrant_lcse import LogicSearch

        mode, parse = scorer.config.mode, encoded.parse
        if mode not in self._searches:
            self._searches[mode] = LogicSearch(self._client, self._name, scorer, vector_name=self._vector_name)
        query = parse.query if parse.parser == "tree" else parse.text
        return self._searches[mode].query(query, limit=limit, min_truth=min_truth).ranking, None

    def alike(self, wish: FloatArray | None, limit: int) -> list[tuple[Candidate, float | None]]:
        """As `FolderCollection.alike`."""
        if wish is None:
            points, _ = self._client.scroll(self._name, limit=limit, with_payload=True)
            return [(Candidate(point.id, _UNKNOWN, payload=point.payload), None) for point in points]
        query: list[float] = wish.tolist()
        found = self._client.query_points(self._name, query=query, using=self._vector_name, limit=limit)
        return [(Candidate(point.id, _UNKNOWN, payload=point.payload), point.score) for point in found.points]

    def find(self, key: str) -> Candidate:
        """As `FolderCollection.find`."""
        number: int | str = int(key) if key.isdecimal() else key
        points = self._client.retrieve(self._name, [number], with_payload=True, with_vectors=True)
        if not points:
            raise ImageError(key, f"not in the collection {self._name}")
        vector: Any = points[0].vector
        if isinstance(vector, dict):
            vector = vector.get(self._vector_name or "")
        return Candidate(key, np.asarray(vector, dtype=np.float32), payload=points[0].payload)


Collection: TypeAlias = FolderCollection | QdrantCollection

_UNKNOWN = np.empty(0, dtype=np.float32)
"""The vector of a picture that is only shown."""


def nearer(ranking: Ranking, wish: FloatArray) -> Ranking:
    """The results by score and likeness to a wish, each of the same weight."""
    if not ranking:
        return ranking
    scores = np.array([result.score for result in ranking])
    alike = np.stack([result.candidate.vector for result in ranking]) @ wish
    weight = float(scores.std()) / (float(alike.std()) or 1.0)
    order = np.argsort(-(scores + weight * alike), kind="stable")
    return Ranking((ranking[int(place)] for place in order), parse=ranking.parse, mode=ranking.mode, exact=False)
