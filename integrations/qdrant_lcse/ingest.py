"""A folder of pictures into a collection: in batches, resumable, broken pictures listed and left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from qdrant_client import QdrantClient, models
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lcse_plugins.encoders.batches import batched
from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.encoders.registry import load_encoder
from lcse_plugins.errors import CollectionError, ImageError, InvalidOption
from lcse_plugins.images.reading import content_hash, iter_images, walk_images
from lcse_plugins.scoring.arguments import check_count
from qdrant_lcse.faults import translate_fault
from qdrant_lcse.schema import read_schema

if TYPE_CHECKING:
    from qdrant_lcse.embedded import EmbeddedClient

__all__ = ["ENCODER_KEY", "PATH_KEY", "IngestReport", "PayloadOf", "index_images"]

PATH_KEY = "path"
ENCODER_KEY = "encoder_id"

PayloadOf: TypeAlias = Callable[[Path], Mapping[str, Any]]
"""More payload for a picture, from its path."""


@dataclass(frozen=True, kw_only=True)
class IngestReport:
    """What became of the pictures.

    Attributes:
        indexed: pictures encoded and stored.
        present: pictures that were in the collection already, or came twice.
        broken: pictures that cannot be read, with the reason.
        seconds: time taken.
    """

    indexed: int = 0
    present: int = 0
    broken: tuple[ImageError, ...] = field(default=())
    seconds: float = 0.0

    @property
    def images_per_second(self) -> float:
        """Pictures encoded and stored in a second."""
        return self.indexed / self.seconds if self.seconds else 0.0


def index_images(
    client: QdrantClient | EmbeddedClient,
    collection: str,
    paths: str | Path | Iterable[str | Path],
    encoder: Encoder | str,
    *,
    payload: PayloadOf | None = None,
    batch_size: int = 64,
    vector_name: str | None = None,
    progress: bool = True,
) -> IngestReport:
    """Store the vectors of pictures; the collection is made when it is missing.

    The id of a point is the hash of its file, so that pictures already there are not encoded again: a run that was
    interrupted goes on where it stopped. Payload: the path, the encoder's id, and what `payload` adds. A picture that
    has moved gets its new path and what `payload` adds for that; other points that are there stay as they are, also
    those of pictures that are gone.

    Args:
        client: Where to store.
        collection: Its name; made with Cosine distance when missing.
        paths: A folder to walk, or the pictures themselves.
        encoder: What makes the vectors, or its name.
        payload: More payload for a picture, from its path.
        batch_size: Pictures encoded and stored at a time.
        vector_name: The vectors to fill when the collection names them.
        progress: Whether to draw a progress bar on standard error, where that is a terminal.

    Raises:
        InvalidOption: a number is out of range, the client must be awaited, there is no encoder of that name, or
            `payload` gives no mapping.
        CollectionError: the collection has other vectors, or holds those of another encoder, or some of these pictures
            without the vectors of this name.
        ImageError: there is no such folder.
        SearchUnavailable: Qdrant did not answer.
    """
    check_count("batch_size", batch_size)
    if iscoroutinefunction(client.get_collection):
        raise InvalidOption(f"pictures are stored with a QdrantClient, not {type(client).__name__}")
    encoder = load_encoder(encoder)
    started = time.perf_counter()
    files = walk_images(paths) if isinstance(paths, str | Path) else (Path(path) for path in paths)
    indexed, present, broken = 0, 0, list[ImageError]()
    batches = batched(files, batch_size)
    batch = next(batches, [])  # before anything is made: the folder may be missing
    with _faults(collection):
        _ensure_collection(client, collection, encoder, vector_name)
    with _bar(progress, paths) as advance:
        while batch:
            fresh, unread = _hashed(batch)
            with _faults(collection):
                found = _present(client, collection, fresh, payload, vector_name)
            todo = {point_id: path for point_id, path in fresh.items() if point_id not in found}
            points, undecoded = _encoded(todo, encoder, payload, vector_name)
            if points:
                with _faults(collection):
                    client.upsert(collection, points, wait=True)
            indexed += len(points)
            present += len(batch) - len(points) - len(unread) - len(undecoded)
            broken += [*unread, *undecoded]
            advance(len(batch))
            batch = next(batches, [])
    seconds = time.perf_counter() - started
    return IngestReport(indexed=indexed, present=present, broken=tuple(broken), seconds=seconds)


def _ensure_collection(
    client: QdrantClient | EmbeddedClient, collection: str, encoder: Encoder, vector_name: str | None
) -> None:
    if not client.collection_exists(collection):
        params = models.VectorParams(size=encoder.dimension, distance=models.Distance.COSINE)
        client.create_collection(collection, vectors_config={vector_name: params} if vector_name else params)
    schema = read_schema(client.get_collection(collection), collection=collection, vector_name=vector_name)
    schema.check_dimension(encoder.dimension)
    records, _ = client.scroll(collection, limit=1, with_payload=[ENCODER_KEY], with_vectors=False)
    for record in records:
        maker = (record.payload or {}).get(ENCODER_KEY)
        if maker not in (None, encoder.encoder_id):
            raise CollectionError(
                collection,
                f"it holds vectors of encoder {maker!r}, not of {encoder.encoder_id!r}; use another collection",
            )


def _hashed(batch: list[Path]) -> tuple[dict[str, Path], list[ImageError]]:
    """Point id → path of distinct pictures, and those that cannot be read."""
    fresh: dict[str, Path] = {}
    broken = []
    for path in batch:
        try:
            fresh.setdefault(str(UUID(hex=content_hash(path)[:32])), path)
        except ImageError as error:
            broken.append(error)
    return fresh, broken


def _present(
    client: QdrantClient | EmbeddedClient,
    collection: str,
    fresh: Mapping[str, Path],
    payload: PayloadOf | None,
    vector_name: str | None,
) -> frozenset[str]:
    """Ids that are stored already; pictures that have moved are given their new path, and the payload for it.

    Raises:
        CollectionError: one is stored without the vectors of this name.
    """
    if not fresh:
        return frozenset()
    records = client.retrieve(
        collection, ids=list(fresh), with_payload=[PATH_KEY], with_vectors=[vector_name] if vector_name else False
    )
    for record in records:
        if vector_name and vector_name not in (record.vector or {}):
            raise CollectionError(
                collection,
                f"it holds {fresh[str(record.id)]} without vectors named {vector_name!r}; use another collection",
            )
        stored = (record.payload or {}).get(PATH_KEY)
        if isinstance(stored, str) and not Path(stored).exists():
            path = fresh[str(record.id)]
            client.set_payload(collection, {PATH_KEY: str(path), **_added(payload, path)}, points=[record.id])
    return frozenset(str(record.id) for record in records)


def _encoded(
    todo: dict[str, Path], encoder: Encoder, payload: PayloadOf | None, vector_name: str | None
) -> tuple[list[models.PointStruct], list[ImageError]]:
    loaded = list(zip(todo, iter_images(list(todo.values())), strict=True))
    broken = [image for _, (_, image) in loaded if isinstance(image, ImageError)]
    sound = [(point_id, path, image) for point_id, (path, image) in loaded if not isinstance(image, ImageError)]
    if not sound:
        return [], broken
    vectors = encoder.encode_images([image for _, _, image in sound]).tolist()
    points = [
        models.PointStruct(
            id=point_id,
            vector={vector_name: vector} if vector_name else vector,
            payload={PATH_KEY: str(path), ENCODER_KEY: encoder.encoder_id, **_added(payload, path)},
        )
        for (point_id, path, _), vector in zip(sound, vectors, strict=True)
    ]
    return points, broken


def _added(payload: PayloadOf | None, path: Path) -> Mapping[str, Any]:
    added = payload(path) if payload else {}
    if not isinstance(added, Mapping):
        raise InvalidOption(f"payload gives a mapping for each picture, not {added!r:.80} as for {path}")
    return added


@contextmanager
def _faults(collection: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        fault = translate_fault(error, collection=collection)
        if fault is error:
            raise
        raise fault from error


@contextmanager
def _bar(visible: bool, paths: str | Path | Iterable[str | Path]) -> Iterator[Callable[[int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    drawn = visible and console.is_terminal
    with Progress(*columns, console=console, disable=not drawn) as progress:
        task = progress.add_task("pictures", total=_count(paths) if drawn else None)
        yield lambda count: progress.advance(task, count)


def _count(paths: str | Path | Iterable[str | Path]) -> int | None:
    """How many pictures there are; None when that is known only once all have come."""
    if isinstance(paths, str | Path):
        return sum(1 for _ in walk_images(paths, left_out=lambda fault: None))
    return len(paths) if isinstance(paths, Sized) else None
