"""Many LangChain searches at once: are the answers right, and does the event loop stay free?

    python -m benchmarks.concurrency [--calls 200]

All queries are asked at the same moment of one retriever. A heartbeat in the same loop shows the longest stall; the
same heartbeat with nothing to do shows the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import time
from collections.abc import Awaitable
from typing import Any, TypeVar

import numpy as np
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import LcseEmbeddings, LogicRetriever
from langchain_qdrant import QdrantVectorStore
from qdrant_client import QdrantClient, models

from lcse_plugins import LogicScorer, VectorPool
from lcse_plugins.testing import ToyEncoder

__all__ = ["SOURCES", "measure", "with_heartbeat"]

SOURCES = {"pool": 100_000, "in-memory store": 500, "Qdrant store, local": 1_000}
"""What is searched, and how many vectors it holds."""

BEAT = 0.002
"""Seconds between two beats."""

T = TypeVar("T")


async def with_heartbeat(work: Awaitable[T]) -> tuple[T, float, float]:
    """The result of `work`, the longest stall of the event loop meanwhile, and the most it worked between two beats.

    The last is processor time of the loop's own thread, which other processes do not change.
    """
    late, own = [0.0], [0.0]

    async def beat() -> None:
        while True:
            start, processor = time.perf_counter(), time.thread_time()
            await asyncio.sleep(BEAT)
            late.append(time.perf_counter() - start - BEAT)
            own.append(time.thread_time() - processor)

    heart = asyncio.ensure_future(beat())
    await asyncio.sleep(0)
    try:
        result = await work
        await asyncio.sleep(2 * BEAT)  # a last beat, so that no stall goes unseen
    finally:
        heart.cancel()
    return result, max(late), max(own)


def measure(source: str, rows: int, *, calls: int = 200, dimension: int = 512) -> dict[str, Any]:
    """Ask `calls` queries at once: how many answers were wrong, how long it took, and how long the loop stood still."""
    retriever = _retriever(source, rows, dimension)
    queries = [f"thing{a} and no thing{b}" for a, b in itertools.islice(itertools.permutations(range(50), 2), calls)]
    expected = [[document.id for document in retriever.invoke(query)] for query in queries]

    async def ask() -> tuple[list[Any], dict[str, Any]]:
        _, idle, _ = await with_heartbeat(asyncio.sleep(1.0))
        start = time.perf_counter()
        answers, stall, own = await with_heartbeat(asyncio.gather(*map(retriever.ainvoke, queries)))
        told = {"seconds": time.perf_counter() - start, "stall_ms": stall * 1e3, "loop_ms": own * 1e3}
        return answers, {**told, "idle_stall_ms": idle * 1e3}

    gc.collect()
    gc.freeze()  # a collection of all that a program has imported stops every thread, whatever is measured
    answers, told = asyncio.run(ask())
    gc.unfreeze()
    wrong = sum([d.id for d in found] != wanted for found, wanted in zip(answers, expected, strict=True))
    return {"wrong": wrong, **told}


def _retriever(source: str, rows: int, dimension: int) -> LogicRetriever:
    scorer = LogicScorer(ToyEncoder(dimension=dimension))
    vectors = np.random.default_rng(0).standard_normal((rows, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    names = [str(row) for row in range(rows)]
    if source == "pool":
        return LogicRetriever(source=VectorPool(vectors, ids=names), scorer=scorer, k=10)
    if source == "in-memory store":
        store = InMemoryVectorStore(LcseEmbeddings(scorer))
        for name, vector in zip(names, vectors.tolist(), strict=True):
            store.store[name] = {"id": name, "vector": vector, "text": "", "metadata": {"path": f"{name}.jpg"}}
        return LogicRetriever(source=store, k=10)
    client = QdrantClient(":memory:")
    client.create_collection("bench", models.VectorParams(size=dimension, distance=models.Distance.COSINE))
    payloads = [{"page_content": "", "metadata": {"path": f"{name}.jpg"}} for name in names]
    client.upload_collection("bench", vectors=vectors, payload=payloads)
    return LogicRetriever(source=QdrantVectorStore(client, "bench", LcseEmbeddings(scorer)), k=10)


def main() -> None:
    """Measure every source and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200, help="searches asked at once")
    calls = parser.parse_args().calls
    print(f"{'source':<20} {'vectors':>8} {'wrong':>6} {'s':>7} {'stall ms':>9} {'loop ms':>8} {'idle ms':>8}")
    for source, rows in SOURCES.items():
        told = measure(source, rows, calls=calls)
        print(
            f"{source:<20} {rows:>8,} {told['wrong']:>6} {told['seconds']:>7.2f} {told['stall_ms']:>9.1f} "
            f"{told['loop_ms']:>8.1f} {told['idle_stall_ms']:>8.1f}"
        )


if __name__ == "__main__":
    main()
