"""Three nodes, six shards, two copies of each: right answers, also while a node is killed and comes back."""

from __future__ import annotations

import threading
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from qdrant_client import models
from qdrant_lcse import Hits, LogicSearch, NewCollection, index_images

from lcse_plugins import LogicScorer, Query, VectorPool
from lcse_plugins.errors import CollectionError, LcseError, SearchUnavailable
from lcse_plugins.testing import ToyEncoder
from tests.qdrant.data import BUT_NOT, INT8, OPERATORS, SCORER, assert_top, fill, image_vectors, random_trees
from tests.qdrant.server import Node

pytestmark = [pytest.mark.qdrant_cluster, pytest.mark.xdist_group("qdrant")]

VECTORS = image_vectors(3_000)
NAME = "lcse-sharded"


@pytest.fixture(scope="module", autouse=True)
def filled(cluster: list[Node]) -> None:
    client = cluster[0].client()
    fill(client, NAME, VECTORS, indexed=True, shard_number=6, replication_factor=2, write_consistency_factor=2)
    info = client.get_collection(NAME)
    assert (info.config.params.shard_number, info.config.params.replication_factor) == (6, 2)
    client.close()


@pytest.mark.parametrize("grpc", [False, True])
@pytest.mark.parametrize("place", range(3))
def test_every_node_proves_the_exhaustive_ranking(cluster: list[Node], place: int, grpc: bool) -> None:
    client = cluster[place].client(grpc=grpc)
    search = LogicSearch(client, NAME, SCORER)
    for query in [*OPERATORS.values(), *random_trees(8)]:
        hits = search.query(query, exact=True)
        assert hits.exact
        assert_top(hits, query, VECTORS)
    client.close()


def test_recall_at_large_limits_over_shards(cluster: list[Node]) -> None:
    client = cluster[1].client()
    for query in OPERATORS.values():
        hits = LogicSearch(client, NAME, SCORER).query(query, limit=300, consistency="majority")
        best, _ = VectorPool(VECTORS).top(SCORER.encode(query), limit=300)
        assert len({point.id for point in hits} & set(best.tolist())) >= 291
    client.close()


def test_shard_keys(cluster: list[Node], tmp_path: Path) -> None:
    client, encoder = cluster[0].client(), ToyEncoder(dimension=16)
    rng = np.random.default_rng(0)
    for place in range(6):
        pixels = rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)
        (tmp_path / "ab"[place % 2]).mkdir(exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "ab"[place % 2] / f"{place}.png")
    indexes = {"path": models.PayloadSchemaType.KEYWORD}
    create = NewCollection(shards=1, replicas=2, on_disk=True, quantization=INT8, payload_indexes=indexes)
    index_images(client, "lcse-keyed", tmp_path / "a", encoder, shard_key="a", create=create, progress=False)
    index_images(client, "lcse-keyed", tmp_path / "b", encoder, shard_key="b", progress=False)
    search = LogicSearch(client, "lcse-keyed", LogicScorer(encoder))
    for key in "ab":
        hits = search.query("dog and no cat", shard_key_selector=key)
        assert {Path((point.payload or {})["path"]).parent.name for point in hits} == {key}
    assert len(search.query("dog and no cat", shard_key_selector=["a", "b"])) == 6
    info = client.get_collection("lcse-keyed")
    made: Any = info.config.params
    assert (made.shard_number, made.replication_factor, made.vectors.on_disk) == (1, 2, True)
    assert (info.config.quantization_config, list(info.payload_schema)) == (INT8, ["path"])
    client.close()


def test_a_node_killed_and_restarted_under_queries(cluster: list[Node], capsys: pytest.CaptureFixture[str]) -> None:
    client, stop = cluster[0].client(timeout=10), threading.Event()
    search = LogicSearch(client, NAME, SCORER)
    phase, found = "before", list[tuple[str, Query, Hits | LcseError]]()

    def ask() -> None:
        for query in cycle(OPERATORS[name] for name in OPERATORS if name != "PLAIN"):
            if stop.is_set():
                return
            try:
                answer: Hits | LcseError = search.query(query, exact=True, timeout=10)
            except (SearchUnavailable, CollectionError) as error:
                answer = error
            found.append((phase, query, answer))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    phase = "killed"
    cluster[2].kill()
    time.sleep(6)
    phase = "back"
    cluster[2].start()
    time.sleep(6)
    stop.set()
    for thread in threads:
        thread.join()
    answers = [(query, answer) for _, query, answer in found if isinstance(answer, Hits)]
    for query, hits in answers:
        assert_top(hits, query, VECTORS)
    assert len(answers) > 10
    assert_top(search.query(BUT_NOT, exact=True), BUT_NOT, VECTORS)
    client.close()
    with capsys.disabled():
        for name in ("before", "killed", "back"):
            told = [answer for when, _, answer in found if when == name]
            failed = [str(answer) for answer in told if not isinstance(answer, Hits)]
            print(f"\n{name}: {len(told)} queries, {len(failed)} typed errors {failed[:1]}", end="")
