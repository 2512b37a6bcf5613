"""The encoder that ships, on real photographs: over each store as precise as the core."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import ImageNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.vector_stores.qdrant import QdrantVectorStore
from llama_index_lcse import LcseEmbedding, LogicRetriever
from qdrant_client import QdrantClient
from qdrant_lcse import LogicSearch

from lcse_plugins import LogicScorer, VectorPool
from lcse_plugins.calibrating.labelled import LabelledImages, read_labels

KINDS: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "plain": ("a {a}", lambda a, b: a),
    "not": ("no {a}", lambda a, b: ~a),
    "and": ("a {a} and a {b}", lambda a, b: a & b),
    "or": ("a {a} or a {b}", lambda a, b: a | b),
    "but not": ("a {a} but no {b}", lambda a, b: a & ~b),
    "neither": ("neither a {a} nor a {b}", lambda a, b: ~a & ~b),
    "nested": ("({a} AND NOT {b}) OR (NOT {a} AND {b})", lambda a, b: a ^ b),
}
PHOTOGRAPHS, PAIRS = 60, 3  # enough to notice a store that answers otherwise


@pytest.fixture(scope="module")
def scorer() -> LogicScorer:
    return LogicScorer("starter")


@pytest.fixture(scope="module")
def labelled(shared_data: Path) -> LabelledImages:
    return read_labels(shared_data / "photos" / "photos.jsonl")


@pytest.fixture(scope="module")
def vectors(scorer: LogicScorer, labelled: LabelledImages) -> np.ndarray:
    return scorer.encoder.encode_images(list(labelled.paths[:PHOTOGRAPHS]))


def _stores() -> dict[str, BasePydanticVectorStore]:
    qdrant = QdrantVectorStore(collection_name="photos", client=QdrantClient(":memory:"))
    return {"simple": SimpleVectorStore(), "qdrant": qdrant, "qdrant scores": qdrant}


@pytest.fixture(scope="module")
def retrievers(scorer: LogicScorer, labelled: LabelledImages, vectors: np.ndarray) -> dict[str, LogicRetriever]:
    nodes = [
        ImageNode(text="a photo", image_path=str(path), metadata={"place": place}, embedding=vector.tolist())
        for place, (path, vector) in enumerate(zip(labelled.paths, vectors, strict=False))
    ]
    made: dict[str, LogicRetriever] = {}
    for name, store in _stores().items():
        if isinstance(store, QdrantVectorStore) and name == "qdrant scores":
            store.add(list(nodes))
            made[name] = LogicRetriever(LogicSearch(store.client, "photos", scorer), top_n=10)
            continue
        storage = StorageContext.from_defaults(vector_store=store)
        index = VectorStoreIndex(nodes, embed_model=LcseEmbedding(scorer=scorer), storage_context=storage)
        made[name] = LogicRetriever.from_index(index, top_n=10)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_every_store_is_as_precise_as_the_core(
    kind: str,
    scorer: LogicScorer,
    labelled: LabelledImages,
    vectors: np.ndarray,
    retrievers: dict[str, LogicRetriever],
) -> None:
    template, holds = KINDS[kind]
    labels = labelled.labels[: len(vectors)].astype(bool)
    often = np.argsort(-labels.sum(axis=0), kind="stable")[: 2 * PAIRS]
    hits: dict[str, list[float]] = {}
    for a, b in zip(often[::2], often[1::2], strict=True):
        query = template.format(a=labelled.classes[a], b=labelled.classes[b])
        true = holds(labels[:, a], labels[:, b])
        core = [int(str(result.id)) for result in scorer.rank(query, VectorPool(vectors), limit=10)]
        hits.setdefault("core", []).append(true[core].mean())
        for name, retriever in retrievers.items():
            found = [int(node.metadata["place"]) for node in retriever.retrieve(query)]
            hits.setdefault(name, []).append(true[found].mean())
    means = {name: float(np.mean(values)) for name, values in hits.items()}
    assert all(mean == pytest.approx(means["core"]) for mean in means.values()), means
