"""What a collection stores, learnt once: whether its vectors can be scored, and how its similarities are scaled."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from qdrant_client import models

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import CollectionError
from lcse_plugins.hosts.stored_vectors import usable_vector
from lcse_plugins.retrieval.tables import UNIT_TOLERANCE
from qdrant_lcse.messages import Call

__all__ = ["VectorSchema", "learn_schema", "read_schema"]

SAMPLE = 16
"""Stored vectors looked at to see whether a dot collection holds unit vectors."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorSchema:
    """The vectors that are searched.

    Attributes:
        collection: name of the collection.
        vector_name: name of the vectors; None for the unnamed ones.
        size: their length.
        cosine: whether similarities are cosines; otherwise they are dot products.
        points: how many points there were when the collection was looked at; None where it does not say.
        settled: whether the vectors are known to be fit; those of a dot collection are not while it is empty.
    """

    collection: str
    vector_name: str | None
    size: int
    cosine: bool
    points: int | None = field(default=None, compare=False)
    settled: bool = True

    @property
    def with_vectors(self) -> bool | list[str]:
        """What to ask for to get these vectors and no others."""
        return True if self.vector_name is None else [self.vector_name]

    def vector_of(self, point: models.ScoredPoint | models.Record) -> FloatArray | None:
        """(d,) vector of a point; None when it has none that can be scored, such as a zero one."""
        stored: Any = point.vector
        return usable_vector(stored.get(self.vector_name or "") if isinstance(stored, dict) else stored)

    def unit_vector_of(self, point: models.ScoredPoint | models.Record) -> FloatArray | None:
        """(d,) vector of a point, at length one; None when it has none that can be scored."""
        vector = self.vector_of(point)
        return None if vector is None else vector / np.linalg.norm(vector)

    def scale(self, vector: FloatArray) -> float:
        """What turns a similarity that Qdrant returns for `vector` into a dot product: its length, or 1."""
        return float(np.linalg.norm(vector.astype(np.float64))) if self.cosine else 1.0

    def check_dimension(self, dimension: int) -> None:
        """Refuse an encoder whose vectors have another length.

        Raises:
            CollectionError: they do.
        """
        if dimension != self.size:
            raise CollectionError(
                self.collection,
                f"its vectors have {self.size} dimensions, the encoder's {dimension}; use the one it was filled with",
            )


def learn_schema(collection: str, vector_name: str | None) -> Generator[Call, Any, VectorSchema]:
    """Ask what the collection stores.

    Raises:
        CollectionError: it cannot be scored.
    """
    info = yield Call("get_collection", {"collection_name": collection})
    schema = read_schema(info, collection=collection, vector_name=vector_name)
    if schema.cosine:
        return schema
    sample = {"limit": SAMPLE, "with_payload": False, "with_vectors": schema.with_vectors}
    records, _ = yield Call("scroll", {"collection_name": collection, **sample})
    return _check_unit_sample(schema, records)


def read_schema(info: models.CollectionInfo, *, collection: str, vector_name: str | None) -> VectorSchema:
    """The schema of the named (or unnamed) vectors.

    Raises:
        CollectionError: there are no such vectors, there are several per point, or their distance ranks otherwise.
    """
    vectors = info.config.params.vectors
    named = vectors if isinstance(vectors, dict) else {} if vectors is None else {"": vectors}
    params = named.get(vector_name or "")
    if params is None:
        known = sorted(name for name in named if name)
        asked = "no unnamed vectors" if not vector_name else f"no vectors named {vector_name!r}"
        hint = f"pass vector_name= one of {known}" if known else "leave vector_name out" if named else "it has none"
        raise CollectionError(collection, f"it has {asked}; {hint}")
    if params.multivector_config is not None:
        raise CollectionError(collection, "it holds several vectors per point; store one image vector per point")
    if params.distance not in (models.Distance.COSINE, models.Distance.DOT):
        raise CollectionError(
            collection, f"it ranks by {params.distance.value} distance; only Cosine and Dot can be scored"
        )
    return VectorSchema(
        collection=collection,
        vector_name=vector_name or None,
        size=params.size,
        cosine=params.distance == models.Distance.COSINE,
        points=info.points_count,
    )


def _check_unit_sample(schema: VectorSchema, points: Sequence[models.Record]) -> VectorSchema:
    """Refuse a dot collection whose vectors are not of length one: their products are not cosines.

    Returns:
        The schema, settled if there was a vector to look at.

    Raises:
        CollectionError: a sampled vector is not of length one.
    """
    rows = [vector for point in points if (vector := schema.vector_of(point)) is not None]
    lengths = [float(np.linalg.norm(row)) for row in rows]
    wrong = [length for length in lengths if abs(length - 1.0) > UNIT_TOLERANCE]
    if wrong:
        raise CollectionError(
            schema.collection,
            f"it ranks by dot product, but holds a vector of length {wrong[0]:.3f}; "
            "store unit vectors, or use Cosine distance",
        )
    return replace(schema, settled=bool(rows))
