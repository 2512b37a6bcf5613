"""A folder of pictures into a collection: in batches, resumable, broken pictures listed and left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

from qdrant_client import AsyncQdrantClient, QdrantClient, models
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lcse_plugins.encoders.batches import batched
from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.encoders.registry import load_encoder
from lcse_plugins.errors import CollectionError, ImageError, InvalidOption
from lcse_plugins.images.encoding import encode_files
from lcse_plugins.images.reading import content_hash
from lcse_plugins.images.scan import scan_folder
from lcse_plugins.scoring.arguments import check_count
from qdrant_lcse.calls import Call, Steps, arun, run
from qdrant_lcse.schema import read_schema

__all__ = ["ENCODER_KEY", "PATH_KEY", "IngestReport", "NewCollection", "PayloadOf", "aindex_images", "index_images"]

PATH_KEY = "path"
ENCODER_KEY = "encoder_id"
SCROLLED = 1_000
"""Points read at a time when looking for those of pictures that are gone."""

Pictures: TypeAlias = "str | Path | Iterable[str | Path]"
PayloadOf: TypeAlias = Callable[[Path], Mapping[str, Any]]
"""More payload for a picture, from its path."""


@dataclass(frozen=True, kw_only=True)
class NewCollection:
    """How a collection is made when it is missing; what is left out is as Qdrant's server is set up.

    Attributes:
        shards: Into how many shards it is divided; with shard keys, each key.
        replicas: How many copies of each shard there are.
        on_disk: Whether vectors stay on disk, not in memory.
        quantization: A smaller form of the vectors for the first look.
        payload_indexes: Payload keys to index, each with its type, for filters.
    """

    shards: int | None = None
    replicas: int | None = None
    on_disk: bool | None = None
    quantization: models.QuantizationConfig | None = None
    payload_indexes: Mapping[str, models.PayloadSchemaType] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class IngestReport:
    """What became of the pictures.

    Attributes:
        indexed: pictures encoded and stored.
        present: pictures that were in the collection already, or came twice.
        removed: points of pictures that are gone or have changed, deleted by `prune`.
        broken: pictures that cannot be read, with the reason.
        seconds: time taken.
    """

    indexed: int = 0
    present: int = 0
    removed: int = 0
    broken: tuple[ImageError, ...] = ()
    seconds: float = 0.0

    @property
    def images_per_second(self) -> float:
        """Pictures encoded and stored in a second."""
        return self.indexed / self.seconds if self.seconds else 0.0


def index_images(
    client: QdrantClient,
    collection: str,
    paths: Pictures,
    encoder: Encoder | str,
    *,
    payload: PayloadOf | None = None,
    batch_size: int = 64,
    vector_name: str | None = None,
    shard_key: str | int | None = None,
    create: NewCollection | None = None,
    prune: bool = False,
    progress: bool = True,
) -> IngestReport:
    """Store the vectors of pictures; the collection is made when it is missing.

    The id of a point is the hash of its file, so that pictures already there are not encoded again: a run that was
    interrupted goes on where it stopped. Payload: the path, the encoder's id, and what `payload` adds. A picture that
    has moved gets its new path and what `payload` adds for that; other points that are there stay as they are.

    Args:
        client: Where to store.
        collection: Its name; made with Cosine distance when missing.
        paths: A folder to walk, or the pictures themselves.
        encoder: What makes the vectors, or its name.
        payload: More payload for a picture, from its path.
        batch_size: Pictures encoded and stored at a time.
        vector_name: The vectors to fill when the collection names them.
        shard_key: The shard to store in, in a collection with shard keys; made when missing.
        create: How to make a missing collection.
        prune: Delete the points of pictures of this folder that are gone or have changed since.
        progress: Whether to draw a progress bar on standard error, where that is a terminal.

    Raises:
        InvalidOption: a number is out of range, the client must be awaited, there is no encoder of that name,
            `payload` gives no mapping, or `prune` is given without a folder.
        CollectionError: the collection has other vectors, or holds those of another encoder, or some of these pictures
            without the vectors of this name.
        ImageError: there is no such folder.
        SearchUnavailable: Qdrant did not answer.
    """
    if iscoroutinefunction(client.get_collection):
        raise InvalidOption(f"index_images takes a QdrantClient, not {type(client).__name__}; use aindex_images")
    ingest = _Ingest(collection, paths, encoder, payload, batch_size, vector_name, shard_key, create, prune, progress)
    return run(client, collection, ingest.steps())


async def aindex_images(
    client: AsyncQdrantClient,
    collection: str,
    paths: Pictures,
    encoder: Encoder | str,
    *,
    payload: PayloadOf | None = None,
    batch_size: int = 64,
    vector_name: str | None = None,
    shard_key: str | int | None = None,
    create: NewCollection | None = None,
    prune: bool = False,
    progress: bool = True,
) -> IngestReport:
    """As `index_images`, over an `AsyncQdrantClient`; pictures are read and encoded off the event loop."""
    if not iscoroutinefunction(client.get_collection):
        raise InvalidOption(f"aindex_images takes an AsyncQdrantClient, not {type(client).__name__}; use index_images")
    ingest = _Ingest(collection, paths, encoder, payload, batch_size, vector_name, shard_key, create, prune, progress)
    return await arun(client, collection, ingest.steps())


class _Ingest:
    """One run over the pictures."""

    def __init__(
        self,
        collection: str,
        paths: Pictures,
        encoder: Encoder | str,
        payload: PayloadOf | None,
        batch_size: int,
        using: str | None,
        shard_key: str | int | None,
        create: NewCollection | None,
        prune: bool,
        progress: bool,
    ) -> None:
        check_count("batch_size", batch_size)
        self._folder = Path(paths).absolute() if isinstance(paths, str | Path) else None
        if prune and self._folder is None:
            raise InvalidOption("prune=True needs a folder, to tell which points belong to it")
        self._paths = paths
        self._collection, self._encoder = collection, load_encoder(encoder)
        self._payload, self._batch_size, self._using, self._progress = payload, batch_size, using, progress
        self._create, self._prune = create or NewCollection(), prune
        self._shard_key = shard_key
        self._shard = {} if shard_key is None else {"shard_key_selector": shard_key}
        self._seen: set[str] = set()
        self._present = 0
        self._broken: list[ImageError] = []

    def steps(self) -> Steps[IngestReport]:
        """The calls of the whole run."""
        started, indexed, paths = time.perf_counter(), 0, self._paths
        files = scan_folder(paths) if isinstance(paths, str | Path) else map(Path, paths)
        batches = batched(files, self._batch_size)
        batch = next(batches, [])  # before anything is made: the folder may be missing
        yield from self._ensure_collection()
        with _bar(self._progress, self._paths) as advance:
            while batch:
                fresh = self._hashed(batch)
                stored = yield from self._find_stored(fresh)
                points = self._encode({point_id: path for point_id, path in fresh.items() if point_id not in stored})
                if points:
                    yield Call("upsert", {"points": points, "wait": True, **self._shard})
                indexed += len(points)
                advance(len(batch))
                batch = next(batches, [])
        removed = (yield from self._remove_stale()) if self._prune else 0
        return IngestReport(
            indexed=indexed,
            present=self._present,
            removed=removed,
            broken=tuple(self._broken),
            seconds=time.perf_counter() - started,
        )

    def _ensure_collection(self) -> Steps[None]:
        missing = not (yield Call("collection_exists", {}))
        if missing:
            yield self._make_collection()
        if self._shard_key is not None:
            with suppress(CollectionError):  # it is there already
                yield Call("create_shard_key", {"shard_key": self._shard_key})
        for key, kind in self._create.payload_indexes.items() if missing else ():
            yield Call("create_payload_index", {"field_name": key, "field_schema": kind})
        info = yield Call("get_collection", {})
        read_schema(info, collection=self._collection, using=self._using, dimension=self._encoder.dimension)
        records, _ = yield Call("scroll", {"limit": 1, "with_payload": [ENCODER_KEY], "with_vectors": False})
        for record in records:
            maker = (record.payload or {}).get(ENCODER_KEY)
            if maker not in (None, self._encoder.encoder_id):
                raise CollectionError(
                    self._collection,
                    f"it holds vectors of encoder {maker!r}, not of {self._encoder.encoder_id!r}; use another one",
                )

    def _make_collection(self) -> Call:
        made, size = self._create, self._encoder.dimension
        params = models.VectorParams(size=size, distance=models.Distance.COSINE, on_disk=made.on_disk)
        arguments = {
            "vectors_config": {self._using: params} if self._using else params,
            "shard_number": made.shards,
            "replication_factor": made.replicas,
            "quantization_config": made.quantization,
            "sharding_method": None if self._shard_key is None else models.ShardingMethod.CUSTOM,
        }
        return Call("create_collection", arguments)

    def _hashed(self, batch: list[Path | ImageError]) -> dict[str, Path]:
        """Point id → path of the distinct pictures of a batch that can be read."""
        fresh: dict[str, Path] = {}
        for path in batch:
            try:
                if isinstance(path, ImageError):
                    raise path
                point_id = str(UUID(hex=content_hash(path)[:32]))
                if point_id in fresh:
                    self._present += 1
                fresh.setdefault(point_id, path)
            except ImageError as error:
                self._broken.append(error)
        self._seen.update(fresh)
        return fresh

    def _find_stored(self, fresh: Mapping[str, Path]) -> Steps[frozenset[str]]:
        """Ids that are stored already; pictures that have moved are given their new path, and the payload for it."""
        if not fresh:
            return frozenset()
        parts = {"with_payload": [PATH_KEY], "with_vectors": [self._using] if self._using else False}
        records = yield Call("retrieve", {"ids": list(fresh), **parts})
        for record in records:
            path = fresh[str(record.id)]
            if self._using and self._using not in (record.vector or {}):
                raise CollectionError(
                    self._collection, f"it holds {path} without vectors named {self._using!r}; use another one"
                )
            stored = (record.payload or {}).get(PATH_KEY)
            if isinstance(stored, str) and not Path(stored).exists():
                moved = {PATH_KEY: str(path), **self._added(path)}
                yield Call("set_payload", {"payload": moved, "points": [record.id], **self._shard})
        self._present += len(records)
        return frozenset(str(record.id) for record in records)

    def _encode(self, todo: Mapping[str, Path]) -> list[models.PointStruct]:
        points = []
        for point_id, (path, vector) in zip(todo, encode_files(self._encoder, todo.values()), strict=True):
            if isinstance(vector, ImageError):
                self._broken.append(vector)
                continue
            row = vector.tolist()
            told = {PATH_KEY: str(path), ENCODER_KEY: self._encoder.encoder_id, **self._added(path)}
            points.append(
                models.PointStruct(id=point_id, vector={self._using: row} if self._using else row, payload=told)
            )
        return points

    def _added(self, path: Path) -> Mapping[str, Any]:
        added = self._payload(path) if self._payload else {}
        if not isinstance(added, Mapping):
            raise InvalidOption(f"payload gives a mapping for each picture, not {added!r:.80} as for {path}")
        return added

    def _remove_stale(self) -> Steps[int]:
        """Delete points of this folder whose picture was not met, unless it lies where something cannot be read."""
        unread = {Path(error.source).absolute() for error in self._broken}
        stale: list[Any] = []
        place = None
        while True:
            read = {"limit": SCROLLED, "offset": place, "with_payload": [PATH_KEY], "with_vectors": False}
            records, place = yield Call("scroll", read)
            for record in records:
                stored = (record.payload or {}).get(PATH_KEY)
                if not isinstance(stored, str) or str(record.id) in self._seen:
                    continue
                around = {Path(stored).absolute(), *Path(stored).absolute().parents}
                if self._folder in around and not around & unread:
                    stale.append(record.id)
            if place is None:
                break
        for ids in batched(stale, SCROLLED):
            yield Call("delete", {"points_selector": models.PointIdsList(points=ids), "wait": True, **self._shard})
        return len(stale)


@contextmanager
def _bar(visible: bool, paths: Pictures) -> Iterator[Callable[[int], None]]:
    console, total = Console(stderr=True), None
    drawn = visible and console.is_terminal
    if drawn:  # an iterator tells its length only at the end
        counted = list(scan_folder(paths)) if isinstance(paths, str | Path) else paths
        total = len(counted) if isinstance(counted, Sized) else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not drawn) as progress:
        task = progress.add_task("pictures", total=total)
        yield lambda count: progress.advance(task, count)
