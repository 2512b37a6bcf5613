"""Where the Qdrant tests run: local mode, the embedded engine, the engine behind a real HTTP client, a live server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from qdrant_client import QdrantClient, models
from qdrant_lcse.embedded import EmbeddedClient

from lcse_plugins import And, Concept, LogicScorer, Or, Plain, Query
from lcse_plugins.encoders import FloatArray
from lcse_plugins.testing import ToyEncoder

Client: TypeAlias = QdrantClient | EmbeddedClient
MakeClient: TypeAlias = Callable[[], Client]

WORDS = ("umbrella", "person", "dog", "car", "bench", "street", "cat", "sofa")
UMBRELLA, PERSON, DOG, CAR = (Concept(word) for word in WORDS[:4])
OPERATORS: dict[str, Query] = {
    "NOT": ~UMBRELLA,
    "AND": UMBRELLA & PERSON,
    "OR": UMBRELLA | PERSON,
    "BUT NOT": UMBRELLA & ~PERSON,
    "NEITHER": ~UMBRELLA & ~PERSON,
    "NESTED": (UMBRELLA & ~PERSON) | (DOG & ~CAR),
    "PLAIN": Plain((UMBRELLA, DOG)),
}
ENCODER = ToyEncoder(dimension=48)
SCORER = LogicScorer(ENCODER)
INT8 = models.ScalarQuantization(scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True))

SERVER = pytest.param(
    "server",
    marks=[
        pytest.mark.qdrant_server,
        pytest.mark.skipif("QDRANT_URL" not in os.environ, reason="name a live Qdrant server in QDRANT_URL"),
    ],
)


def image_vectors(n: int, *, seed: int = 0) -> FloatArray:
    """(n, d) unit vectors of pictures that show some of the words, blurred."""
    rng = np.random.default_rng(seed)
    shown = rng.random((n, len(WORDS))) < 0.3
    rows = shown @ ENCODER.encode_texts(WORDS).astype(np.float64) + 0.35 * rng.standard_normal((n, ENCODER.dimension))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def random_trees(n: int, *, seed: int = 0) -> list[Query]:
    """Trees of up to three levels and five words, every kind of node among them."""
    rng = np.random.default_rng(seed)

    def grow(levels: int) -> Query:
        if levels == 0 or rng.random() < 0.25:
            leaf = Concept(WORDS[rng.integers(5)])
            return ~leaf if rng.random() < 0.4 else leaf
        kind = (And, And, Or, Or, Plain)[rng.integers(5)]
        group = kind(tuple(grow(levels - 1) for _ in range(rng.integers(2, 4))))
        return ~group if rng.random() < 0.15 else group

    return [grow(int(rng.integers(1, 4))) for _ in range(n)]


@contextmanager
def opened(backend: str, folder: Path) -> Iterator[Client]:
    """A client of the named backend."""
    client: Client
    if backend == "local":
        client = QdrantClient(":memory:")
    elif backend == "engine":
        client = EmbeddedClient(folder)
    else:
        client = QdrantClient(url=os.environ["QDRANT_URL"], api_key=os.environ.get("QDRANT_API_KEY"), timeout=60)
    try:
        yield client
    finally:
        client.close()


def fill(
    client: Client,
    name: str,
    vectors: FloatArray,
    *,
    distance: models.Distance = models.Distance.COSINE,
    ids: Sequence[Any] | None = None,
    vector_name: str | None = None,
    quantised: bool = False,
) -> None:
    """A fresh collection of the vectors, indexed where the backend can."""
    if client.collection_exists(name):
        client.delete_collection(name)
    params = models.VectorParams(size=vectors.shape[1], distance=distance)
    client.create_collection(
        name,
        vectors_config={vector_name: params} if vector_name else params,
        quantization_config=INT8 if quantised else None,
        optimizers_config=models.OptimizersConfigDiff(default_segment_number=1, indexing_threshold=100),
    )
    for start in range(0, len(vectors), 500):
        rows = range(start, min(start + 500, len(vectors)))
        points = [
            models.PointStruct(
                id=ids[i] if ids else i,
                vector={vector_name: vectors[i].tolist()} if vector_name else vectors[i].tolist(),
                payload={"place": i, "tenant": i % 7},
            )
            for i in rows
        ]
        client.upsert(name, points, wait=True)
    if isinstance(client, EmbeddedClient):
        client.optimize(name)
