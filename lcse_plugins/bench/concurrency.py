"""Many LangChain searches at once: are the answers right, and does the event loop stay free?

`calls` different queries are asked of one retriever at the same moment. A heartbeat in the same loop shows the longest
stall, and how much of it was this process's own doing; the same heartbeat with nothing to do, before and after, shows
the machine.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lcse_plugins.bench.heartbeat import Pulse, with_heartbeat
from lcse_plugins.bench.timing import random_vectors
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import MissingExtra
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.testing import ToyEncoder

if TYPE_CHECKING:
    from langchain_lcse import LogicRetriever

__all__ = ["GOAL", "Concurrency", "run", "table"]

GOAL = 0.050
"""Longest wanted stall, in seconds."""

CALLS = 200
K = 10
SOURCES = {"pool": 100_000, "in-memory store": 500, "qdrant, local": 1_000}
"""What is searched, and how many vectors it holds; the stores are LangChain's and Qdrant's own, in Python."""


@dataclass(frozen=True)
class Concurrency:
    """One source under load.

    Attributes:
        source: what was searched.
        rows: vectors in it.
        calls: searches asked at once.
        wrong: answers that were not the ones of the same query asked alone.
        seconds: until the last answer.
        stall_ms: the longest stall of the event loop.
        own_ms: the most processor time this process used between two beats: what the stall would be at most with the
            machine to itself.
        idle_stall_ms: the longest stall with nothing to do, as long before as after.
    """

    source: str
    rows: int
    calls: int
    wrong: int
    seconds: float
    stall_ms: float
    own_ms: float
    idle_stall_ms: float


def run(
    *,
    calls: int = CALLS,
    dimension: int = 512,
    scale: float = 1.0,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure every source.

    Args:
        calls: searches asked at once.
        dimension: of the vectors.
        scale: of the number of vectors; 1 is what `SOURCES` says.
        seed: of the vectors.
        progress: told what is measured.

    Returns:
        `{"calls": …, "dimension": …, "results": [Concurrency as a mapping, …]}`.

    Raises:
        MissingExtra: LangChain is not installed.
    """
    results = []
    for source, size in SOURCES.items():
        rows = max(4 * K, int(size * scale))
        if progress is not None:
            progress(f"{source}, {rows:,} vectors")
        measured = _measure(source, random_vectors(rows, dimension, seed), calls)
        if measured is not None:
            results.append(asdict(measured))
    return {"calls": calls, "dimension": dimension, "seed": seed, "goal_ms": GOAL * 1e3, "results": results}


def table(report: dict[str, Any]) -> str:
    """The report as aligned text."""
    titles = f"{'source':<16} {'vectors':>8} {'calls':>6} {'wrong':>6} {'s':>7}"
    lines = [f"{titles} {'stall ms':>9} {'own ms':>8} {'idle ms':>8}  goal"]
    for row in report["results"]:
        c = Concurrency(**row)
        lines.append(
            f"{c.source:<16} {c.rows:>8,} {c.calls:>6} {c.wrong:>6} {c.seconds:>7.2f} {c.stall_ms:>9.1f} "
            f"{c.own_ms:>8.1f} {c.idle_stall_ms:>8.1f}  {'met' if c.stall_ms <= report['goal_ms'] else 'missed'}"
        )
    return "\n".join(lines)


def _measure(source: str, vectors: FloatArray, calls: int) -> Concurrency | None:
    scorer = LogicScorer(ToyEncoder(dimension=vectors.shape[1]), calibration=Calibration(mu=0.05, beta=30.0))
    retriever = _retriever(source, vectors, scorer)
    if retriever is None:
        return None
    queries = [f"thing{a} and no thing{b}" for a, b in itertools.islice(itertools.permutations(range(50), 2), calls)]
    expected = [[document.page_content for document in retriever.invoke(query)] for query in queries]

    async def ask_all() -> tuple[list[Any], float]:
        start = time.perf_counter()
        answers = await asyncio.gather(*(retriever.ainvoke(query) for query in queries))
        return answers, time.perf_counter() - start

    async def measure() -> tuple[list[Any], float, Pulse, list[Pulse]]:
        idle = [(await with_heartbeat(asyncio.sleep(1.0)))[1]]
        (answers, seconds), pulse = await with_heartbeat(ask_all())
        idle.append((await with_heartbeat(asyncio.sleep(1.0)))[1])
        return answers, seconds, pulse, idle

    gc.collect()
    gc.freeze()  # a collection of all that a program has imported stops every thread, whatever is measured
    try:
        answers, seconds, pulse, idle = asyncio.run(measure())
    finally:
        gc.unfreeze()
    found = [[document.page_content for document in documents] for documents in answers]
    return Concurrency(
        source=source,
        rows=len(vectors),
        calls=calls,
        wrong=sum(given != wanted for given, wanted in zip(found, expected, strict=True)),
        seconds=seconds,
        stall_ms=pulse.longest_stall * 1e3,
        own_ms=pulse.longest_own * 1e3,
        idle_stall_ms=max(beat.longest_stall for beat in idle) * 1e3,
    )


def _retriever(source: str, vectors: FloatArray, scorer: LogicScorer) -> LogicRetriever | None:
    """A retriever over the vectors, or None when what it needs is not installed."""
    try:
        from langchain_core.vectorstores import InMemoryVectorStore
        from langchain_lcse import LcseEmbeddings, LogicRetriever
    except ImportError as error:
        raise MissingExtra("the concurrency benchmark", "langchain") from error
    names = [str(row) for row in range(len(vectors))]
    if source == "pool":
        return LogicRetriever(source=VectorPool(vectors, ids=names), scorer=scorer, k=K)
    if source == "in-memory store":
        store = InMemoryVectorStore(LcseEmbeddings(scorer.encoder))
        store.store = {
            name: {"id": name, "vector": vector.tolist(), "text": name, "metadata": {}}
            for name, vector in zip(names, vectors, strict=True)
        }
        return LogicRetriever(source=store, scorer=scorer, k=K)
    try:
        from qdrant_client import QdrantClient, models
        from qdrant_lcse import LogicSearch
    except ImportError:
        return None
    client = QdrantClient(":memory:")
    client.create_collection("bench", models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE))
    client.upload_collection("bench", vectors=vectors, payload=[{"page_content": name} for name in names])
    return LogicRetriever(source=LogicSearch(client, "bench", scorer), k=K)
