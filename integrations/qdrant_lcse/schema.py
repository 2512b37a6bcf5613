"""What a collection stores and allows: whether its vectors can be scored, and the limits of its strict mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from qdrant_client import models

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import CollectionError
from lcse_plugins.hosts.reranking import usable_vector
from lcse_plugins.retrieval.pool import UNIT_TOLERANCE

__all__ = ["SAMPLE", "Strictness", "VectorSchema", "read_schema"]

SAMPLE = 16
"""Stored vectors looked at to see whether a dot collection holds unit vectors."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Strictness:
    """What strict mode allows; the defaults allow everything.

    Attributes:
        exact: whether a search may scan.
        limit: most points one search may return; None for any number.
        ids: most of them that can be named in a filter.
        beam: largest `hnsw_ef`; None for any.
    """

    exact: bool = True
    limit: int | None = None
    ids: int | None = None
    beam: int | None = None

    @classmethod
    def of(cls, info: models.CollectionInfo) -> Strictness:
        """What a collection's configuration says."""
        config = getattr(info.config, "strict_mode_config", None)
        if config is None or not config.enabled:
            return cls()
        sizes = [size for size in (config.max_query_limit, config.condition_max_size) if size is not None]
        return cls(
            exact=config.search_allow_exact is not False,
            limit=config.max_query_limit,
            ids=min(sizes, default=None),
            beam=config.search_max_hnsw_ef,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorSchema:
    """The vectors that are searched.

    Attributes:
        collection: name of the collection.
        using: name of the vectors; None for the unnamed ones.
        size: their length.
        cosine: whether similarities are cosines; otherwise they are dot products.
        points: how many points there were when the collection was looked at; None where it does not say.
        strict: what strict mode allows.
    """

    collection: str
    using: str | None
    size: int
    cosine: bool
    points: int | None = field(default=None, compare=False)
    strict: Strictness = Strictness()

    @property
    def with_vectors(self) -> bool | list[str]:
        """What to ask for to get these vectors and no others."""
        return True if self.using is None else [self.using]

    def vector_of(self, point: models.ScoredPoint | models.Record) -> FloatArray | None:
        """(d,) vector of a point; None when it has none that can be scored, such as a zero one."""
        stored: Any = point.vector
        return usable_vector(stored.get(self.using or "") if isinstance(stored, dict) else stored)

    def scale(self, vector: FloatArray) -> float:
        """What turns a similarity that Qdrant returns for `vector` into a dot product: its length, or 1."""
        return float(np.linalg.norm(vector)) if self.cosine else 1.0

    def check_lengths(self, points: Sequence[models.Record]) -> None:
        """Refuse a dot collection whose vectors are not of length one: their products are not cosines.

        Raises:
            CollectionError: one of these points has such a vector.
        """
        rows = [vector for point in points if (vector := self.vector_of(point)) is not None]
        lengths = [float(np.linalg.norm(row)) for row in rows]
        if wrong := [length for length in lengths if abs(length - 1.0) > UNIT_TOLERANCE]:
            raise CollectionError(
                self.collection,
                f"it ranks by dot product, but holds a vector of length {wrong[0]:.3f}; "
                "store unit vectors, or use Cosine distance",
            )


def read_schema(info: models.CollectionInfo, *, collection: str, using: str | None, dimension: int) -> VectorSchema:
    """The schema of the named (or unnamed) vectors, for an encoder's of a dimension.

    Raises:
        CollectionError: there are no such vectors, there are several per point, their distance ranks otherwise, or
            the encoder's have another length.
    """
    vectors = info.config.params.vectors
    named = vectors if isinstance(vectors, dict) else {} if vectors is None else {"": vectors}
    params = named.get(using or "")
    if params is None:
        known = sorted(name for name in named if name)
        asked = "no unnamed vectors" if not using else f"no vectors named {using!r}"
        hint = f"pass vector_name= one of {known}" if known else "leave vector_name= out" if named else "it has none"
        raise CollectionError(collection, f"it has {asked}; {hint}")
    if params.multivector_config is not None:
        raise CollectionError(collection, "it holds several vectors per point; store one image vector per point")
    if params.distance not in (models.Distance.COSINE, models.Distance.DOT):
        raise CollectionError(
            collection, f"it ranks by {params.distance.value} distance; only Cosine and Dot can be scored"
        )
    if params.size != dimension:
        raise CollectionError(
            collection,
            f"its vectors have {params.size} dimensions, the encoder's {dimension}; use the one it was filled with",
        )
    return VectorSchema(
        collection=collection,
        using=using or None,
        size=params.size,
        cosine=params.distance == models.Distance.COSINE,
        points=info.points_count,
        strict=Strictness.of(info),
    )
