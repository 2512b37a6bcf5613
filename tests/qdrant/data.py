"""What the Qdrant tests search: pictures of a few words, queries over them, and the true answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models
from qdrant_lcse import Hits

from lcse_plugins import And, Concept, LogicScorer, Or, Query, VectorPool
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.query import Plain
from lcse_plugins.testing import ToyEncoder

WORDS = ("umbrella", "person", "dog", "car", "bench", "street", "cat", "sofa")
UMBRELLA, PERSON, DOG, CAR = (Concept(word) for word in WORDS[:4])
OPERATORS: dict[str, Query] = {
    "NOT": ~UMBRELLA,
    "AND": UMBRELLA & PERSON,
    "OR": UMBRELLA | PERSON,
    "BUT NOT": UMBRELLA & ~PERSON,
    "NEITHER": ~UMBRELLA & ~PERSON,
    "OR NOT": UMBRELLA | ~PERSON,
    "NESTED": (UMBRELLA & ~PERSON) | (DOG & ~CAR),
    "DEEP": UMBRELLA & (PERSON | DOG) & ~CAR,
    "SHARED": (UMBRELLA | PERSON) & (UMBRELLA | DOG),
    "PLAIN": Plain((UMBRELLA, DOG)),
}
BUT_NOT = OPERATORS["BUT NOT"]
ENCODER = ToyEncoder(dimension=48)
SCORER = LogicScorer(ENCODER)
PAPER = LogicScorer(ENCODER, mode="lcse")
INT8 = models.ScalarQuantization(scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True))
TENANTS = 7


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


def tenant(number: int) -> models.Filter:
    """Only the points of one tenant."""
    return models.Filter(must=[models.FieldCondition(key="tenant", match=models.MatchValue(value=number))])


def fill(
    client: QdrantClient,
    name: str,
    vectors: FloatArray,
    *,
    distance: models.Distance = models.Distance.COSINE,
    using: str | None = None,
    indexed: bool = False,
    **options: Any,
) -> None:
    """A fresh collection of the vectors; where `indexed`, once HNSW covers it."""
    if client.collection_exists(name):
        client.delete_collection(name)
    params = models.VectorParams(size=vectors.shape[1], distance=distance)
    if indexed:
        options["optimizers_config"] = models.OptimizersConfigDiff(default_segment_number=2, indexing_threshold=100)
    client.create_collection(name, vectors_config={using: params} if using else params, **options)
    for start in range(0, len(vectors), 500):
        rows = range(start, min(start + 500, len(vectors)))
        points = [
            models.PointStruct(
                id=i,
                vector={using: vectors[i].tolist()} if using else vectors[i].tolist(),
                payload={"place": i, "tenant": i % TENANTS},
            )
            for i in rows
        ]
        client.upsert(name, points, wait=True)


def assert_top(
    hits: Hits,
    query: Query,
    vectors: FloatArray,
    *,
    scorer: LogicScorer = SCORER,
    places: NDArray[np.intp] | None = None,
    limit: int = 10,
    **options: Any,
) -> None:
    """The hits are the exhaustive top of the core: the same scores, and the same points where scores differ."""
    encoded = scorer.encode(query)
    best, scores = VectorPool(vectors if places is None else vectors[places]).top(encoded, limit=limit, **options)
    best = best if places is None else places[best]
    found = [point.score for point in hits.points]
    np.testing.assert_allclose(found, scores, atol=1e-5)
    apart = np.abs(np.diff(scores)) > 2e-5
    clear = np.concatenate([[True], apart]) & np.concatenate([apart, [False]]) if len(scores) else np.array([], bool)
    assert np.array_equal(np.array([point.id for point in hits.points])[clear], best[clear])
