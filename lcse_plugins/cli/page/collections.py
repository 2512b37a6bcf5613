"""What the page searches: the index of a folder, or a Qdrant collection. Both answer the same questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import ImageError
from lcse_plugins.hosts.payloads import read_payload
from lcse_plugins.images.keys import picture_in
from lcse_plugins.images.locations import ImageAccess, ImageLocation
from lcse_plugins.index import ImageIndex
from lcse_plugins.query import Query
from lcse_plugins.retrieval.sources import rank_pool
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.results import Candidate, Ranking

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

__all__ = ["Collection", "FolderCollection", "QdrantCollection", "location_of"]

DEEP = 200
"""Results of a database that examples re-rank."""


class Collection(Protocol):
    """Pictures that can be searched by a query, by examples, or both.

    `wish` is a direction among image vectors: the mean of the pictures to be like, less those not to be like.
    """

    title: str
    access: ImageAccess

    def __len__(self) -> int:
        """How many pictures there are."""
        ...

    def search(
        self, scorer: LogicScorer, query: str | Query, *, limit: int, min_truth: float | None, wish: FloatArray | None
    ) -> Ranking:
        """The best pictures for a query."""
        ...

    def alike(self, wish: FloatArray | None, limit: int) -> list[tuple[Candidate, float | None]]:
        """The pictures nearest to a wish; without one, the first in their own order."""
        ...

    def find(self, key: str) -> Candidate:
        """The picture of an id, with its vector; ImageError if there is none."""
        ...


def location_of(candidate: Candidate) -> ImageLocation | None:
    """Where a picture is: its payload is a path, or a record that names one."""
    if isinstance(candidate.payload, Mapping):
        stored = read_payload(candidate.payload)
        return picture_in({**stored.metadata, **stored.image})
    path: Path | None = candidate.payload
    return path


class FolderCollection:
    """The pictures of an index on disk."""

    def __init__(self, index: ImageIndex, *, title: str) -> None:
        self.title = title
        self.access = ImageAccess()
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    def search(
        self, scorer: LogicScorer, query: str | Query, *, limit: int, min_truth: float | None, wish: FloatArray | None
    ) -> Ranking:
        """As `Collection.search`."""
        if wish is None:
            return scorer.rank(query, self._index, limit=limit, min_truth=min_truth)
        encoded = scorer.encode(query)
        positions, scores = self._index.top(encoded, min_truth=min_truth)
        alike = np.asarray(self._index.vectors[positions], dtype=np.float32) @ wish
        best = [int(position) for position in positions[_both(scores, alike)[:limit]]]
        ranking = Ranking([], parse=encoded.parse, mode=encoded.config.mode, exact=True)
        if best:
            ranked = {result.id: result for result in rank_pool(encoded, self._index.part(best), min_truth=min_truth)}
            ranking.extend(ranked[self._index.ids[position]] for position in best)
        return ranking

    def alike(self, wish: FloatArray | None, limit: int) -> list[tuple[Candidate, float | None]]:
        """As `Collection.alike`."""
        if wish is None:
            return [(self._index.candidate(place), None) for place in range(min(limit, len(self)))]
        products = np.asarray(self._index.vectors, dtype=np.float32) @ wish
        best = np.argsort(-products, kind="stable")[:limit]
        return [(self._index.candidate(int(place)), float(products[place])) for place in best]

    def find(self, key: str) -> Candidate:
        """As `Collection.find`."""
        return self._index.candidate(self._index.position(key))


class QdrantCollection:
    """The points of a Qdrant collection; where a picture is, its payload says.

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
        self.title = collection_name
        self.access = ImageAccess(root=None if pictures is None else str(pictures))
        self._client, self._vector_name = client, vector_name
        self._searches: dict[str, Any] = {}
        self._search(scorer).query("anything", limit=1)  # a collection that cannot be scored is refused now

    def __len__(self) -> int:
        return int(self._client.count(self.title, exact=False).count)

    def search(
        self, scorer: LogicScorer, query: str | Query, *, limit: int, min_truth: float | None, wish: FloatArray | None
    ) -> Ranking:
        """As `Collection.search`; a wish re-ranks the first `DEEP` results."""
        deep = limit if wish is None else max(limit, DEEP)
        ranking: Ranking = self._search(scorer).query(query, limit=deep, min_truth=min_truth).ranking
        if wish is None or not ranking:
            return ranking
        alike = np.stack([result.candidate.vector for result in ranking]) @ wish
        best = _both(np.array([result.score for result in ranking]), alike)[:limit]
        return Ranking([ranking[int(place)] for place in best], parse=ranking.parse, mode=ranking.mode, exact=False)

    def alike(self, wish: FloatArray | None, limit: int) -> list[tuple[Candidate, float | None]]:
        """As `Collection.alike`."""
        if wish is None:
            points, _ = self._client.scroll(self.title, limit=limit, with_payload=True)
            return [(Candidate(point.id, _UNKNOWN, payload=point.payload), None) for point in points]
        query: list[float] = wish.tolist()
        found = self._client.query_points(self.title, query=query, using=self._vector_name, limit=limit)
        return [(Candidate(point.id, _UNKNOWN, payload=point.payload), point.score) for point in found.points]

    def find(self, key: str) -> Candidate:
        """As `Collection.find`."""
        number: int | str = int(key) if key.isdecimal() else key
        points = self._client.retrieve(self.title, [number], with_payload=True, with_vectors=True)
        if not points:
            raise ImageError(key, f"not in the collection {self.title}")
        vector: Any = points[0].vector
        if isinstance(vector, dict):
            vector = vector.get(self._vector_name or "")
        return Candidate(key, np.asarray(vector, dtype=np.float32), payload=points[0].payload)

    def _search(self, scorer: LogicScorer) -> Any:
        from qdrant_lcse import LogicSearch

        mode = scorer.config.mode
        if mode not in self._searches:
            self._searches[mode] = LogicSearch(self._client, self.title, scorer, vector_name=self._vector_name)
        return self._searches[mode]


_UNKNOWN = np.empty(0, dtype=np.float32)
"""The vector of a picture that is only shown."""


def _both(scores: FloatArray, alike: FloatArray) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Places by score and likeness, each of the same weight."""
    weight = float(scores.std()) / (float(alike.std()) or 1.0)
    return np.argsort(-(scores + weight * alike), kind="stable")
