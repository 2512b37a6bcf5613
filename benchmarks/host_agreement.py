"""Is every host, over every store, as precise as the core? P@10 of 40 queries of each of seven kinds.

    python -m benchmarks.host_agreement [FOLDER]

FOLDER holds `photos.jsonl` and its photographs; by default `../shared/data/photos`, or `photos` in the folder that
LCSE_DATA names. Stores are filled and searched the way each framework's users do it, with the encoder that ships.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from langchain_chroma import Chroma
from langchain_community.docstore.in_memory import InMemoryDocstore
from langchain_community.vectorstores import FAISS
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_lcse import LcseEmbeddings, add_images
from langchain_lcse import LogicRetriever as LangChainRetriever
from langchain_qdrant import QdrantVectorStore as LangChainQdrant
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import ImageDocument
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.vector_stores.qdrant import QdrantVectorStore
from llama_index_lcse import LcseEmbedding, LogicRetriever
from numpy.typing import NDArray
from PIL.Image import Image
from qdrant_client import QdrantClient, models
from qdrant_lcse import LogicSearch

from lcse_plugins import Candidate, LogicScorer, VectorPool, load_encoder
from lcse_plugins.bench.photographs import RememberingEncoder
from lcse_plugins.calibrating.labelled import LabelledImages, read_labels
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.images.reading import load_image

__all__ = ["HOSTS", "KINDS", "main"]

QUERIES = 40

Labels = NDArray[np.bool_]
KINDS: dict[str, tuple[str, Callable[[Labels, Labels], Labels]]] = {
    "plain": ("a {a}", lambda a, b: a),
    "NOT": ("no {a}", lambda a, b: ~a),
    "AND": ("a {a} and a {b}", lambda a, b: a & b),
    "OR": ("a {a} or a {b}", lambda a, b: a | b),
    "BUT-NOT": ("a {a} but no {b}", lambda a, b: a & ~b),
    "NEITHER": ("neither a {a} nor a {b}", lambda a, b: ~a & ~b),
    "nested": ("({a} AND NOT {b}) OR (NOT {a} AND {b})", lambda a, b: a ^ b),
}

Search = Callable[[str], list[str]]
"""Paths of the ten best pictures for a query."""


class OnceEncoder(RememberingEncoder):
    """The encoder that ships, each picture and each text encoded once for all stores."""

    def __init__(self) -> None:
        super().__init__(load_encoder("starter"))
        self._pictures: dict[bytes, FloatArray] = {}

    def encode_images(self, images: Iterable[Any], *, batch_size: int | None = None) -> FloatArray:
        rows = []
        for image in (image if isinstance(image, Image) else load_image(image) for image in images):
            key = image.tobytes()
            if key not in self._pictures:
                self._pictures[key] = super().encode_images([image])[0]
            rows.append(self._pictures[key])
        return np.stack(rows)


def core(scorer: LogicScorer, paths: Sequence[str]) -> Search:
    """Every picture scored, without any host."""
    vectors = scorer.encoder.encode_images(paths)
    pool = VectorPool.of([Candidate(path, vector) for path, vector in zip(paths, vectors, strict=True)])
    return lambda query: [str(result.id) for result in scorer.rank(query, pool, limit=10)]


def llama_index(store: Callable[[], Any], *, database_scores: bool = False) -> Callable[..., Search]:
    """LlamaIndex over an index that keeps its vectors in a store; or over the database itself."""

    def make(scorer: LogicScorer, paths: Sequence[str]) -> Search:
        kept = store()
        documents = [ImageDocument(image_path=path, metadata={"file_path": path}) for path in paths]
        storage = StorageContext.from_defaults(vector_store=kept)
        index = VectorStoreIndex.from_documents(
            documents, embed_model=LcseEmbedding(scorer=scorer), storage_context=storage
        )
        retriever = LogicRetriever.from_index(index, top_n=10)
        if database_scores:
            retriever = LogicRetriever(LogicSearch(kept.client, kept.collection_name, scorer), top_n=10)
        return lambda query: [node.metadata["file_path"] for node in retriever.retrieve(query)]

    return make


def langchain(store: Callable[[LcseEmbeddings], VectorStore]) -> Callable[..., Search]:
    """LangChain over a vector store."""

    def make(scorer: LogicScorer, paths: Sequence[str]) -> Search:
        kept = store(LcseEmbeddings(scorer))
        add_images(kept, [Document("", metadata={"image_path": path}) for path in paths])
        retriever = LangChainRetriever(source=kept, k=10)
        return lambda query: [document.metadata["image_path"] for document in retriever.invoke(query)]

    return make


def _langchain_qdrant(embeddings: LcseEmbeddings) -> LangChainQdrant:
    client = QdrantClient(":memory:")
    size = models.VectorParams(size=embeddings.encoder.dimension, distance=models.Distance.COSINE)
    client.create_collection("photos", size)
    return LangChainQdrant(client, "photos", embeddings)


def _qdrant() -> QdrantVectorStore:
    return QdrantVectorStore(collection_name="photos", client=QdrantClient(":memory:"))


def _faiss(embeddings: LcseEmbeddings) -> FAISS:
    return FAISS(embeddings, faiss.IndexFlatIP(embeddings.encoder.dimension), InMemoryDocstore(), {})


HOSTS: dict[str, Callable[[LogicScorer, Sequence[str]], Search]] = {
    "core": core,
    "LlamaIndex, SimpleVectorStore": llama_index(SimpleVectorStore),
    "LlamaIndex, Qdrant local": llama_index(_qdrant),
    "LlamaIndex, Qdrant scores": llama_index(_qdrant, database_scores=True),
    "LangChain, InMemory": langchain(InMemoryVectorStore),
    "LangChain, FAISS": langchain(_faiss),
    "LangChain, Chroma": langchain(lambda embeddings: Chroma("photos", embeddings)),
    "LangChain, Qdrant local": langchain(_langchain_qdrant),
}


def queries(labelled: LabelledImages, kind: str) -> Iterator[tuple[str, Labels]]:
    """The queries of a kind, with what satisfies each: of the classes and pairs that are shown most often."""
    template, holds = KINDS[kind]
    labels = labelled.labels.astype(bool)
    pairs: Iterable[tuple[int, int]] = [(int(a), int(a)) for a in np.argsort(-labels.sum(axis=0), kind="stable")]
    if "{b}" in template:
        together = labels.T.astype(int) @ labels.astype(int)
        pairs = sorted(combinations(range(labels.shape[1]), 2), key=lambda pair: -together[pair])
    for a, b in list(pairs)[:QUERIES]:
        text = template.format(a=labelled.classes[a], b=labelled.classes[b])
        yield text, holds(labels[:, a], labels[:, b])


def main() -> None:
    """Print a Markdown table: for each host and store P@10 of each kind, and how often the ten are the core's."""
    data = Path(os.environ.get("LCSE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else data / "photos"
    if not (folder / "photos.jsonl").is_file():
        sys.exit(f"there are no labelled photographs in {folder}; name their folder, or set LCSE_DATA")
    logging.basicConfig(level=logging.WARNING)  # a host that fetches by words says so
    labelled, scorer = read_labels(folder / "photos.jsonl"), LogicScorer(OnceEncoder())
    paths = [str(path) for path in labelled.paths]
    place = {path: i for i, path in enumerate(paths)}
    best: dict[str, list[str]] = {}
    print(f"| {len(paths)} photographs, P@10 | {' | '.join(KINDS)} | same ten |")
    print("|---|" + "--:|" * (len(KINDS) + 1))
    for host, make in HOSTS.items():
        search, precise, same = make(scorer, paths), [], []
        for kind in KINDS:
            hits = []
            for text, true in queries(labelled, kind):
                found = search(text)
                hits.append(float(true[[place[path] for path in found]].sum()) / 10)
                same.append(sorted(found) == sorted(best.setdefault(text, found)))
            precise.append(100 * float(np.mean(hits)))
        figures = " | ".join(f"{one:.1f}" for one in precise)
        print(f"| {host} | {figures} | {sum(same)} of {len(same)} |", flush=True)


if __name__ == "__main__":
    main()
