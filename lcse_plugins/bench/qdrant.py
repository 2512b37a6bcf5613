"""Logic inside Qdrant: what it finds of the true top 10, and what it costs beside a plain query.

The engine is Qdrant's own, embedded in this process; the vectors are photographs', resampled to size (see `resampled`).
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lcse_plugins.bench.photographs import Progress
from lcse_plugins.bench.qdrant_measures import Measured, measure
from lcse_plugins.bench.qdrant_queries import (
    COLLECTION,
    LIMIT,
    OPERATORS,
    Asked,
    draw_concepts,
    found_ids,
    plain_query,
)
from lcse_plugins.bench.resampled import JITTER, WidenedEncoder, resample
from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.encoders.starter import StarterEncoder
from lcse_plugins.errors import InvalidOption, MissingExtra
from lcse_plugins.images.reading import walk_images
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.scorer import LogicScorer

if TYPE_CHECKING:
    from qdrant_lcse.embedded import EmbeddedClient
    from qdrant_lcse.search_base import ExecutionChoice

__all__ = ["BEAMS", "CANDIDATES", "Measured", "run", "table"]

CANDIDATES: Mapping[ExecutionChoice, Sequence[int]] = {
    "nested": (100, 200, 1_000),
    "two-trip": (100, 200, 1_000, 10_000),
}
"""How many points each way of scoring is asked to score; nesting repeats its searches and is not meant for many."""

BEAMS = (100, 2_048, 4_096)
"""HNSW beams for one negation, which is one search: that of a plain query, our own, and one that finds nearly all."""


POINTS = 100_000
QUERIES = 50
QUICK_QUERIES = 5
SMALL = 10_000
"""Below this many points a run is a quick look, with fewer queries."""


def run(
    encoder: Encoder | None = None,
    images: str | Path | None = None,
    *,
    points: int = POINTS,
    dimension: int = 512,
    candidates: Mapping[ExecutionChoice, Sequence[int]] = CANDIDATES,
    queries: int | None = None,
    repeats: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure recall and latency; returns the results and all that is needed to make them again.

    Args:
        encoder: What encodes the photographs and the queries; by default the starter encoder.
        images: A folder of photographs; by default `photos` in the folder that LCSE_DATA names.
        points: Points in the collection; no more photographs than that are encoded.
        dimension: Length of their vectors; at least the encoder's.
        candidates: Execution → how many points to score; no more than there are.
        queries: Queries of each operator, over concepts drawn from `WORDS`; by default 50, and 5 for few points.
        repeats: Times each is timed; the median counts.
        seed: For the choice of rows and concepts.
        progress: Called with (done, total) steps: encoding, indexing, then one for each setting.

    Raises:
        InvalidOption: the folder has too few pictures, there are fewer points than are looked for, or `dimension` is
            below the encoder's.
        MissingExtra: the embedded engine is not installed.
    """
    try:
        from qdrant_lcse import LogicSearch
        from qdrant_lcse.embedded import EmbeddedClient
    except ImportError as error:
        raise MissingExtra("the Qdrant benchmark", "qdrant-edge") from error

    if points < LIMIT:
        raise InvalidOption(f"the top {LIMIT} needs at least {LIMIT} points, not {points}")
    folder = _photographs() if images is None else Path(images)
    paths = list(itertools.islice(walk_images(folder), points))
    if len(paths) < 3:
        raise InvalidOption(f"{folder} holds {len(paths)} pictures; at least 3 are needed")
    queries = queries or (QUERIES if points >= SMALL else QUICK_QUERIES)
    rng = np.random.default_rng(seed)
    encoder = encoder or StarterEncoder()
    wide = WidenedEncoder(encoder, dimension, rng)
    vectors = resample(wide.encode_images(paths), points, rng)
    scorer, pool = LogicScorer(wide), VectorPool(vectors, assume_unit=True)
    asked = {
        operator: [Asked.of(make(*draw_concepts(rng)), scorer, pool) for _ in range(queries)]
        for operator, make in OPERATORS.items()
    }
    settings = [
        setting for operator, ones in asked.items() for setting in _settings(operator, ones, candidates, points)
    ]
    steps = itertools.count(1)

    def step() -> None:
        if progress is not None:
            progress(next(steps), 2 + len(settings))

    step()
    results: list[Measured] = []
    with tempfile.TemporaryDirectory() as store, EmbeddedClient(store) as client:
        indexing = _fill(client, vectors)
        step()
        plain = [
            len(one.nearest & found_ids(plain_query(client, one.encoded.holistic_vector))) / LIMIT
            for ones in asked.values()
            for one in ones
        ]
        for operator, execution, depth, beam in settings:
            search = LogicSearch(client, COLLECTION, LogicScorer(wide), execution=execution)
            results.append(measure(client, search, operator, asked[operator], depth, repeats, beam=beam))
            step()
    return {
        "points": points,
        "dimension": dimension,
        "photographs": len(paths),
        "encoder": encoder.encoder_id,
        "queries_per_operator": queries,
        "repeats": repeats,
        "seed": seed,
        "jitter": JITTER,
        "limit": LIMIT,
        "indexing_seconds": round(indexing, 1),
        "plain_recall": round(float(np.mean(plain)), 4),
        "engine": f"qdrant-edge-py {version('qdrant-edge-py')}",
        "results": [asdict(row) for row in results],
    }


def table(result: dict[str, Any]) -> str:
    """The rows as text."""
    lines = [
        f"{'operator':<9}{'execution':<10}{'candidates':>10}{'beam':>6}{'recall':>8}{'worst':>7}{'ms':>8}"
        f"{'× plain':>9}{'× cpu':>7}{'× in words':>12}"
    ]
    for row in result["results"]:
        lines.append(
            f"{row['operator']:<9}{row['execution']:<10}{row['candidates']:>10,}{row['beam'] or '':>6}"
            f"{row['recall']:>8.3f}{row['worst']:>7.2f}"
            f"{row['milliseconds']:>8.2f}{row['ratio']:>9.1f}{row['processor_ratio']:>7.1f}"
            f"{row['worded_ratio']:>12.1f}"
        )
    lines.append(f"a plain query finds {result['plain_recall']:.3f} of the ten points nearest to its text")
    return "\n".join(lines)


def _fill(client: EmbeddedClient, vectors: FloatArray) -> float:
    from qdrant_client import models

    started = time.perf_counter()
    client.create_collection(
        COLLECTION,
        vectors_config=models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE),
        optimizers_config=models.OptimizersConfigDiff(default_segment_number=1, indexing_threshold=1000),
    )
    for start in range(0, len(vectors), 1000):
        rows = enumerate(vectors[start : start + 1000].tolist(), start)
        client.upsert(
            COLLECTION, [models.PointStruct.model_construct(id=i, vector=row, payload={"place": i}) for i, row in rows]
        )
    client.optimize(COLLECTION)
    return time.perf_counter() - started


class _Setting(NamedTuple):
    operator: str
    execution: ExecutionChoice
    candidates: int
    beam: int | None


def _settings(
    operator: str, asked: Sequence[Asked], candidates: Mapping[ExecutionChoice, Sequence[int]], points: int
) -> list[_Setting]:
    """Every way to ask; none looks at more points than there are."""
    if asked[0].encoded.plan.linear is not None:
        return [_Setting(operator, "auto", LIMIT, beam) for beam in _at_most(BEAMS, points)]
    return [
        _Setting(operator, execution, depth, None)
        for execution, depths in candidates.items()
        for depth in _at_most(depths, points)
    ]


def _at_most(counts: Sequence[int], points: int) -> list[int]:
    return [count for count in counts if count <= points] or [points]


def _photographs() -> Path:
    folder = Path(os.environ.get("LCSE_DATA", "")) / "photos"
    if not folder.is_dir():
        raise InvalidOption("name a folder of photographs with --images, or set LCSE_DATA to a folder that has photos/")
    return folder
