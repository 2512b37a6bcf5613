"""One gallery, one query, every host: the same images in the same order with the same scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import LcseEmbeddings
from langchain_lcse import LogicRetriever as LangChainRetriever
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle
from llama_index_lcse import LogicPostprocessor
from qdrant_client import QdrantClient, models
from qdrant_lcse import LogicSearch
from qdrant_lcse.task import ExecutionChoice

from lcse_plugins import Candidate, LogicScorer, score_arrays
from lcse_plugins.encoders import FloatArray
from lcse_plugins.testing import ToyEncoder

WORDS = ("dog", "cat", "umbrella", "person", "car", "street")
QUERIES = {
    "plain": "a dog on the street",
    "NOT": "no person",
    "AND": "a dog and a cat",
    "OR": "a dog or a cat",
    "BUT-NOT": "an umbrella but no person",
    "NEITHER": "neither cars nor people",
    "nested": "(dog AND NOT cat) OR (umbrella AND NOT person)",
    "exclusive": "(dog AND NOT cat) OR (cat AND NOT dog)",
}
Answer = list[tuple[str, float]]


class Gallery:
    """Sixty images, each showing a few things, in every host."""

    def __init__(self) -> None:
        rng = np.random.default_rng(11)
        self.encoder = ToyEncoder(dimension=32)
        self.scorer = LogicScorer(self.encoder)
        self.names = [" ".join([*rng.choice(WORDS, rng.integers(1, 4), replace=False), f"n{i}"]) for i in range(60)]
        self.vectors: FloatArray = self.encoder.encode_images(self.names)
        self.client = QdrantClient(":memory:")
        cosine = models.VectorParams(size=32, distance=models.Distance.COSINE)
        self.client.create_collection("images", vectors_config=cosine)
        points = [
            models.PointStruct(id=i, vector=vector.tolist(), payload={"name": name})
            for i, (name, vector) in enumerate(zip(self.names, self.vectors, strict=True))
        ]
        self.client.upsert("images", points=points)


@pytest.fixture(scope="module")
def gallery() -> Gallery:
    return Gallery()


def by_arrays(gallery: Gallery, query: str, array: Callable[[Any], Any] = np.asarray) -> Answer:
    encoded = gallery.scorer.encode(query)
    similar = gallery.vectors @ encoded.matrix.T
    columns = {name: array(similar[:, i]) for i, name in enumerate(encoded.concepts, start=1)}
    scored = score_arrays(encoded.tree, array(similar[:, 0]), columns, calibration=gallery.scorer.calibration)
    scores = np.asarray(scored)
    return [(gallery.names[i], float(scores[i])) for i in np.argsort(-scores, kind="stable")]


def by_scorer(gallery: Gallery, query: str) -> Answer:
    candidates = [Candidate(name, vector) for name, vector in zip(gallery.names, gallery.vectors, strict=True)]
    return [(str(r.id), r.score) for r in gallery.scorer.rank(query, candidates)]


def by_llama_index(gallery: Gallery, query: str) -> Answer:
    nodes = [
        NodeWithScore(node=ImageNode(id_=name, embedding=vector.tolist()), score=0.0)
        for name, vector in zip(gallery.names, gallery.vectors, strict=True)
    ]
    ranked = LogicPostprocessor(scorer=gallery.encoder).postprocess_nodes(nodes, QueryBundle(query))
    return [(node.node_id, float(node.score or 0.0)) for node in ranked]


def by_langchain(gallery: Gallery, query: str) -> Answer:
    store = InMemoryVectorStore(LcseEmbeddings(gallery.encoder))
    store.store = {
        name: {"id": name, "vector": vector.tolist(), "text": "", "metadata": {}}
        for name, vector in zip(gallery.names, gallery.vectors, strict=True)
    }
    documents: list[Document] = LangChainRetriever(source=store, scorer=gallery.scorer, k=60).invoke(query)
    return [(str(document.id), document.metadata["relevance_score"]) for document in documents]


def by_qdrant(execution: ExecutionChoice) -> Callable[[Gallery, str], Answer]:
    def search(gallery: Gallery, query: str) -> Answer:
        images = LogicSearch(gallery.client, "images", gallery.scorer, execution=execution)
        hits = images.query(query, limit=60, exact=True)
        assert hits.exact
        return [(point.payload["name"], point.score) for point in hits.points if point.payload]

    return search


HOSTS: dict[str, Callable[[Gallery, str], Answer]] = {
    "torch": partial(by_arrays, array=torch.from_numpy),
    "scorer": by_scorer,
    "LlamaIndex": by_llama_index,
    "LangChain": by_langchain,
    "Qdrant, client": by_qdrant("client"),
    "Qdrant, formula": by_qdrant("formula"),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("host", HOSTS)
def test_every_host_gives_the_same_answer(host: str, query: str, gallery: Gallery) -> None:
    expected, answer = by_arrays(gallery, query), HOSTS[host](gallery, query)
    expected = expected[: len(answer)]
    assert len(answer) >= 20
    assert [name for name, _ in answer] == [name for name, _ in expected]
    np.testing.assert_allclose([s for _, s in answer], [s for _, s in expected], rtol=0, atol=1e-5)
