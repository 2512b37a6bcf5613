"""What is known of particular vector stores: how vectors are read back and written, and how they filter.

A store that is not in `KNOWN_STORES` still works: its vectors come from a function of the user's, or from encoding the
pictures its documents name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from numpy.typing import ArrayLike

from lcse_plugins.errors import InvalidCandidate, LcseError, SearchUnavailable

__all__ = ["KNOWN_STORES", "KnownStore", "add_vectors", "known_store", "own_filter", "read_vectors"]

MISTAKES = (ArithmeticError, AttributeError, ImportError, LookupError, NameError, NotImplementedError, TypeError)
"""Errors that say a program is wrong: they are never translated."""


@dataclass(frozen=True)
class KnownStore:
    """What is known of one class of stores.

    Attributes:
        embeddings: its attribute that holds the embeddings.
        read: (store, documents it returned) → the stored vector of each, or None.
        filter: (store, {key: value} or a filter of its own) → the arguments of a search that filter.
        exhaustive: whether a search compares with every vector, so that a result can be proved complete.
    """

    embeddings: str
    read: Callable[[Any, Sequence[Document]], Sequence[ArrayLike | None]]
    filter: Callable[[Any, Any], dict[str, Any]]
    exhaustive: Callable[[Any], bool] = lambda store: False


def equals(wanted: Any) -> Any:
    """A function that says whether a document's metadata hold these values; what is not a mapping stays as it is."""
    if not isinstance(wanted, Mapping):
        return wanted
    return lambda document: all(document.metadata.get(key) == value for key, value in wanted.items())


def _read_in_memory(store: Any, documents: Sequence[Document]) -> Sequence[ArrayLike | None]:
    return [store.store.get(document.id, {}).get("vector") for document in documents]


def _read_faiss(store: Any, documents: Sequence[Document]) -> Sequence[ArrayLike | None]:
    rows = {key: row for row, key in store.index_to_docstore_id.items()}
    try:
        return [store.index.reconstruct(rows[one.id]) if one.id in rows else None for one in documents]
    except RuntimeError:  # an index that keeps no vectors, or needs a map it was built without
        return [None] * len(documents)


def _read_chroma(store: Any, documents: Sequence[Document]) -> Sequence[ArrayLike | None]:
    ids = {document.id for document in documents if document.id} or {""}
    kept = store.get(ids=list(ids), include=["embeddings"])
    vectors = dict(zip(kept["ids"], kept["embeddings"], strict=True))
    return [vectors.get(document.id) for document in documents]


def _filter_chroma(store: Any, wanted: Any) -> dict[str, Any]:
    several = isinstance(wanted, Mapping) and len(wanted) > 1 and not any(key.startswith("$") for key in wanted)
    return {"filter": {"$and": [{key: value} for key, value in wanted.items()]} if several else wanted}


def _read_qdrant(store: Any, documents: Sequence[Document]) -> Sequence[ArrayLike | None]:
    name, ids = store.vector_name, [document.metadata.get("_id") for document in documents]
    points = store.client.retrieve(
        store.collection_name,
        [one for one in ids if one is not None],
        with_payload=False,
        with_vectors=[name] if name else True,
    )
    vectors = {point.id: point.vector.get(name) if isinstance(point.vector, dict) else point.vector for point in points}
    return [vectors.get(one) for one in ids]


def _filter_qdrant(store: Any, wanted: Any) -> dict[str, Any]:
    if not isinstance(wanted, Mapping):
        return {"filter": wanted}
    from qdrant_client import models

    pairs = {f"{store.metadata_payload_key}.{key}": models.MatchValue(value=value) for key, value in wanted.items()}
    return {"filter": models.Filter(must=[models.FieldCondition(key=k, match=match) for k, match in pairs.items()])}


KNOWN_STORES = {
    "InMemoryVectorStore": KnownStore(
        "embedding", _read_in_memory, lambda store, wanted: {"filter": equals(wanted)}, exhaustive=lambda store: True
    ),
    "FAISS": KnownStore(
        "embedding_function",
        _read_faiss,
        lambda store, wanted: {"filter": wanted, "fetch_k": store.index.ntotal},  # it filters what it has found
        exhaustive=lambda store: type(store.index).__name__.startswith("IndexFlat"),
    ),
    "Chroma": KnownStore("_embedding_function", _read_chroma, _filter_chroma),
    "QdrantVectorStore": KnownStore("_embeddings", _read_qdrant, _filter_qdrant),
}
"""By the name of the class, which need not be imported here."""


def known_store(store: object) -> KnownStore | None:
    """What is known of a store; None if its class is not in the table."""
    return next((KNOWN_STORES[kind.__name__] for kind in type(store).__mro__ if kind.__name__ in KNOWN_STORES), None)


def own_filter(store: object, wanted: Any) -> dict[str, Any]:
    """Arguments of a store's search that filter: by a mapping of values, or by what the store takes itself."""
    if wanted is None:
        return {}
    known = known_store(store)
    return known.filter(store, wanted) if known else {"filter": wanted}


def read_vectors(store: object, documents: Sequence[Document]) -> Sequence[ArrayLike | None]:
    """The vector that a store keeps for each document; None where it keeps none, or the store is not known."""
    known = known_store(store)
    if known is None:
        return [None] * len(documents)
    with translated_errors(store):
        return known.read(store, documents)


def add_vectors(store: VectorStore, rows: Sequence[tuple[Document, list[float]]]) -> None:
    """Store documents with vectors that are known: a copy of the store adds them, whose embeddings say just these."""
    known, filling = known_store(store), copy.copy(store)
    if known is not None and rows:
        setattr(filling, known.embeddings, _GivenVectors(vector for _, vector in rows))
        with translated_errors(store):
            filling.add_documents([document for document, _ in rows])


class _GivenVectors(Embeddings):
    """Gives out vectors in their order, whatever the texts."""

    def __init__(self, vectors: Iterable[list[float]]) -> None:
        self._vectors = iter(vectors)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [next(self._vectors) for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError


@contextmanager
def translated_errors(store: object) -> Iterator[None]:
    """What a store raises becomes InvalidCandidate if it refuses, SearchUnavailable if it does not answer."""
    try:
        yield
    except (LcseError, *MISTAKES):
        raise
    except Exception as error:
        name, kind = type(store).__name__, type(error).__name__
        if isinstance(error, ValueError | AssertionError) or kind in ("QdrantVectorStoreError", "InvalidArgumentError"):
            raise InvalidCandidate(
                f"{name} refused what it was given ({error}); are its vectors made by the scorer's encoder, and does "
                "it take such filters and metadata?"
            ) from error
        raise SearchUnavailable(
            f"{name} did not answer ({kind}: {error}); see whether it is running and can be reached, and ask again"
        ) from error
