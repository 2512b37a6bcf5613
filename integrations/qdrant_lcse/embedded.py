"""Qdrant's engine inside this process (Qdrant Edge), with the face of a `QdrantClient`.

    >>> client = EmbeddedClient("photos.qdrant")
    >>> index_images(client, "photos", "holiday/", encoder)
    >>> search = LogicSearch(client, "photos", scorer)

It is the code a server runs for one shard: HNSW, quantisation and formulas included, with no server to start. Only
what searching and indexing need is here.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any
from uuid import UUID

from pydantic_core import to_jsonable_python
from qdrant_client import models
from qdrant_client.http.models import QueryResponse

from lcse_plugins.errors import CollectionError, InvalidOption, MissingExtra
from lcse_plugins.hosts.versions import check_versions

try:
    import qdrant_edge as edge
except ImportError as error:
    raise MissingExtra("EmbeddedClient", "qdrant-edge") from error
else:
    check_versions("EmbeddedClient", "qdrant-edge")

from qdrant_lcse.edge_requests import from_edge_points, from_edge_record, to_edge_payload, to_edge_request

__all__ = ["EmbeddedClient"]

_DISTANCES = {
    models.Distance.COSINE: edge.Distance.Cosine,
    models.Distance.DOT: edge.Distance.Dot,
    models.Distance.EUCLID: edge.Distance.Euclid,
    models.Distance.MANHATTAN: edge.Distance.Manhattan,
}


class EmbeddedClient:
    """Collections in a folder, one shard each. Safe to share between threads.

    Args:
        path: Folder for the collections; created when missing.
    """

    in_process = True
    """The engine computes in this process; a client of a server waits instead."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._shards: dict[str, edge.EdgeShard] = {}
        self._params: dict[str, models.CollectionParams] = {}
        self._lock = RLock()  # a shard is opened by one thread, once

    def create_collection(
        self,
        collection_name: str,
        vectors_config: models.VectorParams | Mapping[str, models.VectorParams],
        *,
        hnsw_config: models.HnswConfigDiff | None = None,
        quantization_config: models.ScalarQuantization | None = None,
        optimizers_config: models.OptimizersConfigDiff | None = None,
    ) -> bool:
        """Make an empty collection.

        Raises:
            CollectionError: there is one of this name, the name is none for a folder, or its folder is in use.
            InvalidOption: another quantisation than to eight bits is asked for.
        """
        if not _is_name(collection_name):
            raise CollectionError(collection_name, "this is no name for a collection; use letters, digits and dashes")
        named = vectors_config if isinstance(vectors_config, Mapping) else {"": vectors_config}
        hnsw, optimizers = hnsw_config or models.HnswConfigDiff(), optimizers_config or models.OptimizersConfigDiff()
        config = edge.EdgeConfig(
            vectors={name: edge.EdgeVectorParams(p.size, _DISTANCES[p.distance]) for name, p in named.items()},
            hnsw_config=edge.HnswIndexConfig(
                hnsw.m or 16, hnsw.ef_construct or 100, hnsw.full_scan_threshold or 10_000
            ),
            quantization_config=_scalar(quantization_config),
            optimizers=edge.EdgeOptimizersConfig(
                default_segment_number=optimizers.default_segment_number,
                indexing_threshold=optimizers.indexing_threshold,
            ),
        )
        vectors = dict(named) if isinstance(vectors_config, Mapping) else vectors_config
        with self._lock:
            self._create(collection_name, config, models.CollectionParams(vectors=vectors))
        return True

    def _create(self, collection_name: str, config: edge.EdgeConfig, params: models.CollectionParams) -> None:
        if self.collection_exists(collection_name):
            raise CollectionError(collection_name, "there is one already; delete it first, or use another name")
        folder, note = self.path / collection_name, self._note(collection_name)
        if folder.is_file() or note.exists() or (folder.is_dir() and any(folder.iterdir())):
            raise CollectionError(collection_name, f"{folder} or {note} is there for something else; use another name")
        folder.mkdir(parents=True, exist_ok=True)
        self._shards[collection_name] = edge.EdgeShard.create(str(folder), config)
        self._params[collection_name] = params
        note.write_text(params.model_dump_json(), encoding="utf-8")

    def collection_exists(self, collection_name: str) -> bool:
        """Whether there is such a collection."""
        return _is_name(collection_name) and self._note(collection_name).is_file()

    def delete_collection(self, collection_name: str) -> bool:
        """Delete a collection and its files; False when there is none, and nothing is touched."""
        with self._lock:
            if not self.collection_exists(collection_name):
                return False
            if shard := self._shards.pop(collection_name, None):
                shard.close()
            shutil.rmtree(self.path / collection_name, ignore_errors=True)
            self._note(collection_name).unlink()
            return True

    def get_collection(self, collection_name: str) -> models.CollectionInfo:
        """What the collection stores."""
        info = self._shard(collection_name).info()
        config = models.CollectionConfig.model_construct(params=self._params[collection_name])
        return models.CollectionInfo.model_construct(
            config=config, points_count=info.points_count, indexed_vectors_count=info.indexed_vectors_count
        )

    def upsert(self, collection_name: str, points: Iterable[models.PointStruct], **_: Any) -> None:
        """Store points."""
        rows: list[Any] = [edge.Point(point.id, point.vector, to_jsonable_python(point.payload)) for point in points]  # type: ignore[arg-type]
        self._shard(collection_name).update(edge.UpdateOperation.upsert_points(rows))

    def set_payload(
        self, collection_name: str, payload: Mapping[str, Any], points: Sequence[int | str | UUID], **_: Any
    ) -> None:
        """Change these keys of the payload of some points."""
        self._shard(collection_name).update(
            edge.UpdateOperation.set_payload(list(points), to_jsonable_python(dict(payload)))
        )

    def optimize(self, collection_name: str) -> bool:
        """Build the indexes that are due; a server does so by itself."""
        return self._shard(collection_name).optimize()

    def query_batch_points(
        self, collection_name: str, requests: Sequence[models.QueryRequest], *, timeout: int | None = None
    ) -> list[QueryResponse]:
        """Run queries together."""
        shard = self._shard(collection_name)
        batch = edge.QueryBatchRequest([to_edge_request(request) for request in requests])
        return [
            QueryResponse.model_construct(
                points=from_edge_points(points, bare=not (request.with_payload or request.with_vector))
            )
            for request, points in zip(requests, shard.query_batch(batch), strict=True)
        ]

    def retrieve(
        self,
        collection_name: str,
        ids: Sequence[int | str | UUID],
        *,
        with_payload: Any = True,
        with_vectors: bool | list[str] = False,
        timeout: int | None = None,
    ) -> list[models.Record]:
        """Read points by id."""
        found = self._shard(collection_name).retrieve(list(ids), to_edge_payload(with_payload), with_vectors)
        return [from_edge_record(point) for point in found]

    def scroll(
        self,
        collection_name: str,
        *,
        limit: int = 10,
        offset: Any = None,
        with_payload: Any = True,
        with_vectors: bool | list[str] = False,
    ) -> tuple[list[models.Record], Any]:
        """Read points in the order of their ids."""
        page = edge.ScrollRequest(offset, limit, None, to_edge_payload(with_payload), with_vectors)
        found, following = self._shard(collection_name).scroll(page)
        return [from_edge_record(point) for point in found], following

    def close(self) -> None:
        """Release the files."""
        with self._lock:
            while self._shards:
                self._shards.popitem()[1].close()

    def __enter__(self) -> EmbeddedClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _note(self, collection_name: str) -> Path:
        """Where the collection's settings are kept, to open it again."""
        return self.path / f"{collection_name}.json"

    def _shard(self, collection_name: str) -> edge.EdgeShard:
        with self._lock:
            if collection_name not in self._shards:
                if not self.collection_exists(collection_name):
                    raise CollectionError(collection_name, "there is no such collection")
                settings = self._note(collection_name).read_text(encoding="utf-8")
                self._params[collection_name] = models.CollectionParams.model_validate_json(settings)
                self._shards[collection_name] = edge.EdgeShard.load(str(self.path / collection_name))
            return self._shards[collection_name]


def _is_name(collection_name: str) -> bool:
    """Whether a collection may have this name: that of a folder, and not of one elsewhere."""
    return bool(collection_name) and collection_name != ".." and Path(collection_name).name == collection_name


def _scalar(config: models.ScalarQuantization | None) -> edge.ScalarQuantizationConfig | None:
    if config is None:
        return None
    if not isinstance(config, models.ScalarQuantization):
        raise InvalidOption(f"EmbeddedClient quantises with models.ScalarQuantization, not {type(config).__name__}")
    return edge.ScalarQuantizationConfig(edge.ScalarType.Int8, config.scalar.quantile, config.scalar.always_ram)
