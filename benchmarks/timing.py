"""What logic costs: the exact logical top ten against plain similarity, timed side by side in one process.

    python -m benchmarks.timing --out benchmarks/results/timing.json

Every contender answers over the same vectors, in turn, many times; medians and their ratios are reported. The yardstick
is what people run today: one float32 matrix-vector product in numpy, then the ten largest.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.query import Concept, Query
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import Mode
from lcse_plugins.testing import ToyEncoder

__all__ = ["QUERIES", "measure", "random_vectors"]

LIMIT = 10
REST = 0.1
"""Seconds of rest before each call: threads of a linear algebra library spin for a while after their work."""

_A, _B, _C, _D = (Concept(word) for word in ("dog", "cat", "umbrella", "person"))
QUERIES: Mapping[str, Query] = {
    "NOT a": ~_A,
    "a AND b": _A & _B,
    "a AND NOT b": _A & ~_B,
    "NOT a AND NOT b": ~_A & ~_B,
    "a AND b AND c AND NOT d": _A & _B & _C & ~_D,
    "a OR b": _A | _B,
    "(a AND NOT b) OR (c AND NOT d)": (_A & ~_B) | (_C & ~_D),
}
MODES: Sequence[Mode] = ("anchored", "lcse")


def random_vectors(rows: int, dimension: int, seed: int = 0) -> FloatArray:
    """(rows, dimension) unit rows in all directions."""
    vectors = np.random.default_rng(seed).standard_normal((rows, dimension), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def measure(rows: int, *, dimension: int, repeats: int) -> list[dict[str, Any]]:
    """One row for numpy, our plain similarity, and each mode and query."""
    vectors = random_vectors(rows, dimension)
    pool = VectorPool(vectors, assume_unit=True)
    encoder, calibration = ToyEncoder(dimension=dimension), Calibration(mu=0.05, beta=30.0)
    text = encoder.encode_texts(["dog"])[0]

    def numpy_top() -> object:
        scores = vectors @ text
        best = np.argpartition(scores, -LIMIT)[-LIMIT:]
        return best[np.argsort(-scores[best])]

    calls: dict[tuple[str, str], Callable[[], object]] = {("numpy", "plain"): numpy_top}
    for mode in MODES:
        scorer = LogicScorer(encoder, calibration=calibration, mode=mode)
        for name, query in {"plain": _A, **QUERIES}.items():
            encoded = scorer.encode(query)
            calls[mode, name] = lambda encoded=encoded: pool.best(encoded, limit=LIMIT)  # type: ignore[misc]
    seconds = np.zeros((repeats + 1, len(calls)))
    for turn in range(repeats + 1):  # the first round does not count
        for place, call in enumerate(calls.values()):
            time.sleep(REST)
            start = time.perf_counter()
            call()
            seconds[turn, place] = time.perf_counter() - start
    medians = np.median(seconds[1:], axis=0)
    return [
        {"rows": rows, "mode": mode, "query": name, "milliseconds": 1e3 * float(own), "ratio": float(own / medians[0])}
        for (mode, name), own in zip(calls, medians, strict=True)
    ]


def main() -> None:
    """Measure all sizes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 5_000, 50_000, 500_000])
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    asked = parser.parse_args()
    results = [row for rows in asked.rows for row in measure(rows, dimension=asked.dimension, repeats=asked.repeats)]
    for row in results:
        print("{rows:>9,} {mode:<9} {query:<31} {milliseconds:>9.2f} ms {ratio:>6.2f} ×".format(**row))
    if asked.out is not None:
        machine = {"processor": platform.processor() or platform.machine(), "numpy": np.__version__}
        report = {"machine": machine, "dimension": asked.dimension, "repeats": asked.repeats, "results": results}
        asked.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
