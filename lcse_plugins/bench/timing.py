"""What logic costs: exact logical top-10 against plain similarity, timed side by side in one process.

Every contender answers the same question over the same vectors, in turn, many times; the medians and their ratios are
reported. The yardstick is what people run today: one float32 matrix–vector product in numpy, then the ten largest.
"""

from __future__ import annotations

import itertools
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lcse_plugins.bench.photographs import Progress
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.query import Concept, Query
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.testing import ToyEncoder

__all__ = ["GOALS", "SIZES", "Timing", "random_vectors", "run", "table"]

SIZES = (5_000, 50_000, 500_000)
LIMIT = 10
REST = 0.25
"""Seconds of rest before each run."""

_DOG, _CAT, _UMBRELLA, _PERSON = (Concept(word) for word in ("dog", "cat", "umbrella", "person"))
QUERIES: Mapping[str, Query] = {
    "1 concept": ~_DOG,
    "2 concepts": _DOG & ~_CAT,
    "4 concepts": _DOG & _CAT & _UMBRELLA & ~_PERSON,
    "4 in OR": (_DOG & ~_CAT) | (_UMBRELLA & ~_PERSON),
}
"""Form → query."""

GOALS = {5_000: 1.3, 50_000: 1.0, 500_000: 1.0}
"""Largest wanted ratio of the exact logical top-10 to numpy's plain top-10."""


@dataclass(frozen=True)
class Timing:
    """Median milliseconds of one contender, and its ratio to the two yardsticks.

    Attributes:
        rows: vectors in the pool.
        form: of the query, one of `QUERIES`.
        contender: what was timed.
        milliseconds: median over the repeats.
        to_numpy: ratio to numpy's plain top-10.
        to_plain: ratio to our own plain similarity at the same storage.
    """

    rows: int
    form: str
    contender: str
    milliseconds: float
    to_numpy: float
    to_plain: float


def run(
    sizes: Iterable[int] = SIZES,
    *,
    dimension: int = 512,
    repeats: int = 9,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Time all contenders at all sizes.

    Returns:
        `{"machine": …, "repeats": …, "results": [Timing as a mapping, …]}`.

    Raises:
        InvalidOption: a size is below ten.
    """
    wanted = list(sizes)
    if min(wanted, default=LIMIT) < LIMIT:
        raise InvalidOption(f"the top {LIMIT} needs at least {LIMIT} vectors, not {min(wanted)}")
    rounds = itertools.count(1)

    def tick() -> None:
        if progress is not None:
            progress(next(rounds), len(wanted) * len(QUERIES) * (repeats + 1))

    results: list[Timing] = []
    for rows in wanted:
        results += _time_pool(random_vectors(rows, dimension, seed), repeats, tick)
    return {
        "machine": {"processor": platform.processor() or platform.machine(), "numpy": np.__version__},
        "dimension": dimension,
        "repeats": repeats,
        "seed": seed,
        "results": [asdict(result) for result in results],
    }


def table(report: dict[str, Any]) -> str:
    """The report as aligned text."""
    lines = [f"{'vectors':>9} {'form':<10}  {'contender':<34} {'ms':>9} {'× numpy':>8} {'× plain':>8}  goal"]
    for row in report["results"]:
        timing = Timing(**row)
        goal = GOALS.get(timing.rows)
        judged = timing.contender.startswith("LCSE") and goal is not None
        verdict = "" if not judged or goal is None else ("met" if timing.to_numpy <= goal else f"missed ({goal})")
        lines.append(
            f"{timing.rows:>9,} {timing.form:<10}  {timing.contender:<34} {timing.milliseconds:>9.2f} "
            f"{timing.to_numpy:>8.2f} {timing.to_plain:>8.2f}  {verdict}"
        )
    return "\n".join(lines)


def random_vectors(rows: int, dimension: int, seed: int) -> FloatArray:
    """(rows, dimension) unit rows in all directions."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((rows, dimension), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _time_pool(vectors: FloatArray, repeats: int, tick: Callable[[], None]) -> list[Timing]:
    scorer = LogicScorer(ToyEncoder(dimension=vectors.shape[1]), calibration=Calibration(mu=0.05, beta=30.0))
    storages = {
        "float32": VectorPool(vectors, assume_unit=True),
        "eight-bit": VectorPool(vectors, assume_unit=True, quantised=True),
    }
    remembering = VectorPool(vectors, assume_unit=True, quantised=True, cached_columns=8)
    plain = scorer.encode(Concept("dog"))
    timings = []
    for form, query in QUERIES.items():
        encoded = scorer.encode(query)
        contenders: dict[str, tuple[str, Callable[[], object]]] = {
            "numpy: plain similarity": ("numpy", _numpy_top(vectors, plain.holistic_vector))
        }
        for storage, pool in storages.items():
            contenders[f"plain similarity, {storage}"] = (storage, _top(pool, plain))
            contenders[f"LCSE, {storage}"] = (storage, _top(pool, encoded))
        contenders["LCSE, eight-bit, known concepts"] = ("eight-bit", _top(remembering, encoded))
        seconds = _interleaved([call for _, call in contenders.values()], repeats, tick)
        median = dict(zip(contenders, (1e3 * value for value in seconds), strict=True))
        yardstick = median["numpy: plain similarity"]
        for name, (storage, _) in contenders.items():
            own = median.get(f"plain similarity, {storage}", yardstick)
            timings.append(Timing(len(vectors), form, name, median[name], median[name] / yardstick, median[name] / own))
    return timings


def _numpy_top(vectors: FloatArray, query: FloatArray) -> Callable[[], object]:
    def search() -> object:
        scores = vectors @ query
        best = np.argpartition(scores, -LIMIT)[-LIMIT:]
        return best[np.argsort(-scores[best])]

    return search


def _top(pool: VectorPool, encoded: EncodedQuery) -> Callable[[], object]:
    return lambda: pool.top(encoded, limit=LIMIT)


def _interleaved(calls: Sequence[Callable[[], object]], repeats: int, tick: Callable[[], None]) -> list[float]:
    """Median seconds of each call; all calls run once in turn, over and over, after one round that does not count.

    Before each call the process rests: the threads of a linear algebra library spin for some time after their work, and
    would take a core from whoever comes next.
    """
    seconds = np.zeros((repeats + 1, len(calls)))
    for turn in range(repeats + 1):
        for place, call in enumerate(calls):
            time.sleep(REST)
            start = time.perf_counter()
            call()
            seconds[turn, place] = time.perf_counter() - start
        tick()
    return [float(value) for value in np.median(seconds[1:], axis=0)]
