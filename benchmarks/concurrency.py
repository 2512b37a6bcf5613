"""Many searches at once in LangChain and LlamaIndex: are the answers right, and does the event loop stay free?

    python -m benchmarks.concurrency [CALLS]

All queries, 200 by default, are asked at the same moment of one retriever. A heartbeat in the same loop shows the
longest stall; the same heartbeat with nothing to do shows the machine.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import numpy as np
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import LcseEmbeddings
from langchain_lcse import LogicRetriever as LangChainRetriever
from langchain_qdrant import QdrantVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import ImageNode
from llama_index_lcse import LcseEmbedding, LogicRetriever
from qdrant_client import QdrantClient, models

from lcse_plugins import LogicScorer, VectorPool
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.testing import ToyEncoder

__all__ = ["SOURCES", "measure", "with_heartbeat"]

BEAT = 0.002
"""Seconds between two beats."""

T = TypeVar("T")


def pool(scorer: LogicScorer, vectors: FloatArray) -> Any:
    """Vectors in memory."""
    names = list(map(str, range(len(vectors))))
    return LangChainRetriever(source=VectorPool(vectors, ids=names), scorer=scorer, k=10)


def in_memory(scorer: LogicScorer, vectors: FloatArray) -> Any:
    """LangChain's own store."""
    store = InMemoryVectorStore(LcseEmbeddings(scorer))
    for row, vector in enumerate(vectors.tolist()):
        store.store[str(row)] = {"id": str(row), "vector": vector, "text": "", "metadata": {"path": f"{row}.jpg"}}
    return LangChainRetriever(source=store, k=10)


def qdrant(scorer: LogicScorer, vectors: FloatArray) -> Any:
    """LangChain over Qdrant in local mode."""
    client = QdrantClient(":memory:")
    client.create_collection("bench", models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE))
    payloads = [{"page_content": "", "metadata": {"path": f"{row}.jpg"}} for row in range(len(vectors))]
    client.upload_collection("bench", vectors=vectors, payload=payloads)
    return LangChainRetriever(source=QdrantVectorStore(client, "bench", LcseEmbeddings(scorer)), k=10)


def simple(scorer: LogicScorer, vectors: FloatArray) -> Any:
    """LlamaIndex over its own store."""
    nodes = [
        ImageNode(id_=str(row), metadata={"file_path": f"{row}.jpg"}, embedding=vector)
        for row, vector in enumerate(vectors.tolist())
    ]
    index = VectorStoreIndex(nodes, embed_model=LcseEmbedding(scorer=scorer))
    return LogicRetriever.from_index(index, top_n=10)


SOURCES: dict[str, tuple[Callable[[LogicScorer, FloatArray], Any], int]] = {
    "LangChain, pool": (pool, 100_000),
    "LangChain, InMemory": (in_memory, 500),
    "LangChain, Qdrant local": (qdrant, 1_000),
    "LlamaIndex, SimpleVectorStore": (simple, 500),
}
"""What is searched, and how many vectors it holds."""


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


def measure(retriever: Any, calls: int = 200) -> dict[str, float]:
    """Ask so many queries at once: how many answers were wrong, how long it took, how long the loop stood still."""
    queries = [f"thing{a} and no thing{b}" for a, b in itertools.islice(itertools.permutations(range(50), 2), calls)]
    blocking, awaited = (
        (retriever.retrieve, retriever.aretrieve)
        if isinstance(retriever, LogicRetriever)
        else (retriever.invoke, retriever.ainvoke)
    )

    def ids(found: Any) -> list[str]:
        return [one.metadata["lcse"]["id"] for one in found]

    expected = [ids(blocking(query)) for query in queries]

    async def ask() -> tuple[list[Any], dict[str, float]]:
        _, idle, _ = await with_heartbeat(asyncio.sleep(1.0))
        start = time.perf_counter()
        answers, stall, own = await with_heartbeat(asyncio.gather(*map(awaited, queries)))
        seconds = time.perf_counter() - start
        return answers, {"s": seconds, "stall ms": stall * 1e3, "loop ms": own * 1e3, "idle ms": idle * 1e3}

    gc.collect()
    gc.freeze()  # a collection of all that a program has imported stops every thread, whatever is measured
    answers, told = asyncio.run(ask())
    gc.unfreeze()
    wrong = sum(ids(found) != wanted for found, wanted in zip(answers, expected, strict=True))
    return {"wrong": wrong, **told}


def main() -> None:
    """Measure every source and print a line for each."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for name, (make, rows) in SOURCES.items():
        vectors = np.random.default_rng(0).standard_normal((rows, 512)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        told = measure(make(LogicScorer(ToyEncoder(dimension=512)), vectors), calls)
        print(f"{name:<30} {rows:>7,}", *(f"{value:>8.1f} {what}" for what, value in told.items()), flush=True)


if __name__ == "__main__":
    main()
