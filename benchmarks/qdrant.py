"""Logic in a real Qdrant server: what it finds of the true best, and what it costs beside a plain query.

    python -m benchmarks.qdrant --images FOLDER            # 100,000 × 512: recall, cost, threads, large limits
    python -m benchmarks.qdrant --images FOLDER --operator "BUT NOT"  # that one alone, again
    python -m benchmarks.qdrant --images FOLDER --million  # 1,000,000 × 256 instead: recall and cost, beside the former

Starts a server of its own, or uses the one in QDRANT_URL. The vectors are photographs', resampled to size (see
`resampled`). Every query is asked in turn with a plain one, and ratios are reported: times depend on the machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from qdrant_client import QdrantClient, models
from qdrant_lcse import LogicSearch

from benchmarks.resampled import WidenedEncoder, resample
from lcse_plugins import Concept, LogicScorer, Query, VectorPool, load_encoder
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.images.scan import walk_images
from lcse_plugins.query import describe
from lcse_plugins.scoring.encoded import EncodedQuery
from tests.qdrant.server import Node, named_or_own

COLLECTION = "lcse-bench"
LIMIT, LARGE = 10, 500
THREADS, SECONDS = 32, 6.0
WORDS = (
    "umbrella", "person", "dog", "car", "bench", "cat", "truck", "bus", "chair", "dining table", "bottle", "bird",
    "horse", "bicycle", "traffic light", "boat", "train", "tv", "laptop", "pizza",
)  # fmt: skip
OPENINGS = ("a photo of", "a picture of", "show me", "find", "images with", "I want to see")
OPERATORS: dict[str, Callable[..., Query]] = {
    "AND": lambda a, b, c, d: a & b,
    "OR": lambda a, b, c, d: a | b,
    "BUT NOT": lambda a, b, c, d: a & ~b,
    "NEITHER": lambda a, b, c, d: ~a & ~b,
    "NOT": lambda a, b, c, d: ~a,
    "NESTED": lambda a, b, c, d: (a & ~b) | (c & ~d),
    "DEEP": lambda a, b, c, d: a & (b | c) & ~d,
}


_Way: TypeAlias = Callable[[int], object]
"""A way to ask one query, in the turn that is given."""


class Asked(NamedTuple):
    """A query, with its vectors and its true best points."""

    query: Query
    encoded: EncodedQuery
    best: frozenset[int]
    many: frozenset[int]


def main() -> None:
    """Measure, and write the results as JSON and as a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, help="a folder of photographs")
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--queries", type=int, default=20, help="of each operator")
    parser.add_argument("--million", action="store_true", help="load and search 1,000,000 × 256 instead")
    parser.add_argument("--operator", choices=OPERATORS, help="measure this one alone, and replace its rows")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/qdrant"))
    options = parser.parse_args()
    written = options.out.with_suffix(".json")
    before = json.loads(written.read_text(encoding="utf-8")) if written.exists() else {}
    with named_or_own() as node:
        if options.million:
            result = {**before, "million": run(node, options.images, 1_000_000, 256, 10, once=True)}
        elif options.operator:
            again = run(node, options.images, options.points, options.dimension, options.queries, only=options.operator)
            new = {(row["wire"], row["operator"]): row for row in again["rows"]}
            result = {**before, "rows": [new.get((row["wire"], row["operator"]), row) for row in before["rows"]]}
        else:
            result = run(node, options.images, options.points, options.dimension, options.queries)
            result |= {"million": before["million"]} if "million" in before else {}
    written.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    options.out.with_suffix(".md").write_text(table(result), encoding="utf-8")
    print(table(result))


def run(
    node: Node, images: Path, points: int, dimension: int, queries: int, *, once: bool = False, only: str | None = None
) -> dict[str, Any]:
    """Fill a collection and ask it; `once` only looks at recall and cost over REST, `only` at one operator."""
    rng = np.random.default_rng(0)
    encoder = WidenedEncoder(load_encoder("starter"), dimension, rng)
    vectors = resample(encoder.encode_images(walk_images(images)), points, rng)
    scorer, pool = LogicScorer(encoder), VectorPool(vectors, assume_unit=True)
    clients = {"REST": node.client(), "gRPC": node.client(grpc=True)}
    loading = _fill(clients["gRPC"], vectors)
    asked = {name: [_asked(make, rng, scorer, pool) for _ in range(queries)] for name, make in OPERATORS.items()}
    result: dict[str, Any] = {"points": points, "dimension": dimension, "queries": queries, **loading, "rows": []}
    for wire, client in itertools.islice(clients.items(), 1 if once else 2):
        for name, ones in asked.items() if only is None else [(only, asked[only])]:
            result["rows"].append({"wire": wire, "operator": name, **_measure(client, encoder, ones, large=not once)})
            print(result["rows"][-1], flush=True)
    if not once and only is None:
        result["threads"] = {wire: _throughput(client, encoder, asked) for wire, client in clients.items()}
    for client in clients.values():
        client.close()
    return result


def _asked(make: Callable[..., Query], rng: np.random.Generator, scorer: LogicScorer, pool: VectorPool) -> Asked:
    query = make(*(Concept(WORDS[place]) for place in rng.permutation(len(WORDS))[:4]))
    encoded = scorer.encode(query)
    best = pool.top(encoded, limit=LARGE)[0].tolist()
    return Asked(query, encoded, frozenset(best[:LIMIT]), frozenset(best))


def _fill(client: QdrantClient, vectors: FloatArray) -> dict[str, float]:
    started = time.perf_counter()
    if client.collection_exists(COLLECTION):
        client.delete_collection(COLLECTION)
    params = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection(COLLECTION, vectors_config=params)
    for start in range(0, len(vectors), 1_000):
        rows = enumerate(vectors[start : start + 1_000].tolist(), start)
        points = [models.PointStruct.model_construct(id=i, vector=row, payload={"path": f"{i}.jpg"}) for i, row in rows]
        client.upsert(COLLECTION, points, wait=False)
    loaded = time.perf_counter() - started
    while True:  # until HNSW covers the collection
        info = client.get_collection(COLLECTION)
        settled = info.status == models.CollectionStatus.GREEN and (info.points_count or 0) >= len(vectors)
        if settled and (info.indexed_vectors_count or 0) > 0.9 * len(vectors):
            return {"load_seconds": round(loaded, 1), "index_seconds": round(time.perf_counter() - started, 1)}
        time.sleep(1)


def _plain(client: QdrantClient, vector: FloatArray) -> list[models.ScoredPoint]:
    return client.query_points(COLLECTION, query=vector.tolist(), limit=LIMIT).points


def _worded(query: Query, turn: int) -> str:
    """The query in words that are new in each turn; its concepts are not."""
    return f"{OPENINGS[turn % len(OPENINGS)]} {describe(query)}"


def _measure(client: QdrantClient, encoder: WidenedEncoder, asked: Sequence[Asked], *, large: bool) -> dict[str, Any]:
    search = LogicSearch(client, COLLECTION, LogicScorer(encoder))
    found = [search.query(one.query, limit=LIMIT) for one in asked]
    recall = [len(one.best & {int(point.id) for point in hits}) / LIMIT for one, hits in zip(asked, found, strict=True)]

    def known_pair(one: Asked) -> tuple[_Way, _Way]:
        return lambda turn: _plain(client, one.encoded.holistic_vector), lambda turn: search.query(one.query)

    def worded_pair(one: Asked) -> tuple[_Way, _Way]:
        return (
            lambda turn: _plain(client, encoder.encode_texts([_worded(one.query, turn)])[0]),
            lambda turn: search.query(_worded(one.query, turn)),
        )

    known = _in_turn([known_pair(one) for one in asked])
    words = _in_turn([worded_pair(one) for one in {describe(one.query): one for one in asked}.values()])
    row = {
        "execution": found[0].execution,
        "recall": round(float(np.mean(recall)), 3),
        "plain_ms": round(1e3 * float(np.median(known[:, 0])), 1),
        "known_ms": round(1e3 * float(np.median(known[:, 1])), 1),
        "known_ratio": round(float(np.median(known[:, 1]) / np.median(known[:, 0])), 1),
        "words_ratio": round(float(np.median(words[:, 1]) / np.median(words[:, 0])), 1),
    }
    if large:
        deep = [len(one.many & {int(p.id) for p in search.query(one.query, limit=LARGE)}) for one in asked[:10]]
        row["recall_500"] = round(float(np.mean(deep)) / LARGE, 3)
    return row


def _in_turn(pairs: Sequence[tuple[_Way, _Way]], repeats: int = 3) -> FloatArray:
    """(n, 2) median time of each of two ways to ask, one after the other; a first round is not counted."""
    seconds = np.zeros((repeats + 1, len(pairs), 2))
    for turn, (place, ways) in itertools.product(range(repeats + 1), enumerate(pairs)):
        for way, call in enumerate(ways):
            started = time.perf_counter()
            call(turn)
            seconds[turn, place, way] = time.perf_counter() - started
    return np.asarray(np.median(seconds[1:], axis=0))


def _throughput(client: QdrantClient, encoder: WidenedEncoder, asked: dict[str, list[Asked]]) -> dict[str, float]:
    """Queries a second of many threads, operators mixed: plain and by logic, by known vectors and in words."""
    mixed = [one for ones in zip(*asked.values(), strict=True) for one in ones]
    search, turns = LogicSearch(client, COLLECTION, LogicScorer(encoder)), itertools.count()
    said = itertools.count()
    for one in mixed:
        search.query(one.query)
    ways: dict[str, Callable[[Asked], object]] = {
        "plain_known": lambda one: _plain(client, one.encoded.holistic_vector),
        "logic_known": lambda one: search.query(one.query),
        "plain_words": lambda one: _plain(
            client, encoder.encode_texts([_worded(one.query, next(turns) // len(mixed))])[0]
        ),
        "logic_words": lambda one: search.query(_worded(one.query, next(said) // len(mixed))),
    }
    counted: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(2):  # in turn, so that other work on the machine disturbs all of them
        for name, call in ways.items():
            counted[name].append(_rate(call, mixed))
    rates = {name: round(float(np.mean(found)), 1) for name, found in counted.items()}
    rates["known_share"] = round(rates["logic_known"] / rates["plain_known"], 2)
    rates["words_share"] = round(rates["logic_words"] / rates["plain_words"], 2)
    print(rates, flush=True)
    return rates


def _rate(call: Callable[[Asked], object], mixed: Sequence[Asked]) -> float:
    end, places = time.monotonic() + SECONDS, itertools.count()

    def work(_: int) -> int:
        done = 0
        while time.monotonic() < end:
            call(mixed[next(places) % len(mixed)])
            done += 1
        return done

    with ThreadPoolExecutor(THREADS) as pool:
        started = time.monotonic()
        done = sum(pool.map(work, range(THREADS)))
        return done / (time.monotonic() - started)


def table(result: dict[str, Any]) -> str:
    """The results as Markdown."""
    wires = list(dict.fromkeys(row["wire"] for row in result["rows"]))
    heads = ["recall@10", "recall@500", *(f"{wire} {kind}" for wire in wires for kind in ("known", "words"))]
    lines = [
        f"{result['points']:,} × {result['dimension']}, {result['queries']} queries an operator; loaded in "
        f"{result['load_seconds']} s, indexed after {result['index_seconds']} s. `×` is the time of a plain query.",
        "",
        f"| operator | | {' | '.join(heads)} |",
        f"|---|---|{'--:|' * len(heads)}",
    ]
    for name in OPERATORS:
        rows = [row for row in result["rows"] if row["operator"] == name]
        recalls = [f"{rows[0][key]:.3f}" if key in rows[0] else "" for key in ("recall", "recall_500")]
        ratios = [f"{row[key]} ×" for row in rows for key in ("known_ratio", "words_ratio")]
        lines.append(f"| {name} | {rows[0]['execution']} | {' | '.join([*recalls, *ratios])} |")
    if "threads" in result:
        lines += ["", f"| {THREADS} threads, queries a second | plain | logic | share |", "|---|--:|--:|--:|"]
        for wire, rates in result["threads"].items():
            for kind in ("known", "words"):
                counted, share = [rates[f"{part}_{kind}"] for part in ("plain", "logic")], rates[f"{kind}_share"]
                lines.append(
                    "| " + " | ".join([f"{wire}, {kind}", *(f"{rate:g}" for rate in counted), f"{share}"]) + " |"
                )
    if "million" in result:
        lines += ["", table(result["million"]).rstrip()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
