"""What is known of particular vector stores: how to read back the vectors that no public search returns.

One table, `KNOWN_STORES`. A store that is not in it still works: its vectors come from a function of the user's, or
from encoding the pictures its documents name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from numpy.typing import ArrayLike

from lcse_plugins.errors import InvalidCandidate, LcseError, SearchUnavailable
from lcse_plugins.hosts.refusals import is_refusal

__all__ = ["KNOWN_STORES", "StoreFacts", "document_key", "facts_of", "read_vectors", "translated_errors"]


@dataclass(frozen=True, kw_only=True)
class StoreFacts:
    """What is known of one class of stores.

    Attributes:
        module: the module that defines it; never imported from here, for whoever holds a store has imported it.
        name: its name there.
        read: (store, ids) → id → stored vector; ids without one are left out.
        document_id: the id under which the store keeps a document it returned.
        exhaustive: whether a search compares with every vector, so that a result can be proved complete.
        in_process: whether it only computes and never waits, so that its async search would hold the event loop.
        function_filter: whether its filter is a function of the document.
        options: what its search honours besides `k`, `filter` and the arguments it names.
        refusal: the error, as (module, name), by which it refuses a vector that does not fit.
        failures: the errors by which it says that it did not answer.
    """

    module: str
    name: str
    read: Callable[[Any, list[Any]], Mapping[Any, ArrayLike]]
    document_id: Callable[[Document], Any] = lambda document: document.id
    exhaustive: bool = False
    in_process: bool = False
    function_filter: bool = False
    options: tuple[str, ...] = ()
    refusal: tuple[str, str] = ("builtins", "ValueError")
    failures: tuple[tuple[str, str], ...] = ()


def _read_in_memory(store: Any, ids: list[str]) -> dict[str, ArrayLike]:
    kept = {key: store.store.get(key) for key in ids}
    return {key: entry["vector"] for key, entry in kept.items() if entry is not None}


def _read_qdrant(store: Any, ids: list[str | int]) -> dict[str | int, ArrayLike]:
    name = store.vector_name
    points = store.client.retrieve(
        store.collection_name, ids=ids, with_payload=False, with_vectors=[name] if name else True
    )
    vectors = {point.id: point.vector.get(name) if isinstance(point.vector, dict) else point.vector for point in points}
    return {key: vector for key, vector in vectors.items() if vector is not None}


def _read_chroma(store: Any, ids: list[str]) -> dict[str, ArrayLike]:
    kept = store.get(ids=ids, include=["embeddings"])
    return dict(zip(kept["ids"], kept["embeddings"], strict=True))


KNOWN_STORES = (
    StoreFacts(
        module="langchain_core.vectorstores",
        name="InMemoryVectorStore",
        read=_read_in_memory,
        exhaustive=True,
        in_process=True,
        function_filter=True,
    ),
    StoreFacts(
        module="langchain_qdrant",
        name="QdrantVectorStore",
        read=_read_qdrant,
        document_id=lambda document: document.metadata.get("_id"),
        options=("shard_key_selector", "timeout"),
        refusal=("langchain_qdrant.qdrant", "QdrantVectorStoreError"),
        failures=(
            ("qdrant_client.http.exceptions", "ApiException"),
            ("qdrant_client.common.client_exceptions", "QdrantException"),
        ),
    ),
    StoreFacts(
        module="langchain_chroma",
        name="Chroma",
        read=_read_chroma,
        options=("ids",),
        refusal=("chromadb.errors", "InvalidArgumentError"),
        failures=(("chromadb.errors", "ChromaError"),),
    ),
)

TRANSPORT_FAILURES = (
    ("builtins", "OSError"),
    ("asyncio", "TimeoutError"),  # until Python 3.11 these two are no OSErrors
    ("concurrent.futures", "TimeoutError"),
    ("httpx", "TransportError"),
    ("grpc", "RpcError"),
)
"""The errors by which the client of any store may say that it did not answer."""


def facts_of(store: VectorStore | None) -> StoreFacts | None:
    """The facts that hold for a store, or None when its class is not known."""
    for facts in KNOWN_STORES:
        kind = _loaded(facts.module, facts.name)
        if kind is not None and isinstance(store, kind):
            return facts
    return None


@contextmanager
def translated_errors(store: VectorStore, refusal: Callable[[Exception], LcseError]) -> Iterator[None]:
    """What a store raises becomes an error of this package; a mistake in a program stays what it is.

    Args:
        store: The store that is asked.
        refusal: What to raise when it refuses what it is given.

    Raises:
        SearchUnavailable: it did not answer.
    """
    facts = facts_of(store)
    refusals: tuple[type[Exception], ...] = (ValueError, *_loaded_errors(*(facts.refusal,) if facts else ()))
    failures = _loaded_errors(*TRANSPORT_FAILURES, *(facts.failures if facts else ()))
    try:
        yield
    except LcseError:
        raise
    except refusals as error:
        raise refusal(error) from error
    except failures as error:
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and is_refusal(status):
            raise refusal(error) from error
        raise SearchUnavailable(
            f"{type(store).__name__} did not answer ({type(error).__name__}: {error}); "
            "see whether it is running and can be reached, and ask again"
        ) from error


def _loaded_errors(*names: tuple[str, str]) -> tuple[type[Exception], ...]:
    return tuple(kind for module, name in names if (kind := _loaded(module, name)) is not None)


def _loaded(module: str, name: str) -> type[Any] | None:
    """A class of a module that somebody has imported, if so."""
    return getattr(sys.modules.get(module), name, None)


def document_key(document: Document, facts: StoreFacts | None = None) -> Hashable:
    """What tells two results apart: the store's id, else all of the document's content."""
    key: Hashable = facts.document_id(document) if facts else document.id
    if key is not None:
        return key
    return (document.page_content, repr(sorted(document.metadata.items(), key=repr)))


def read_vectors(store: VectorStore, documents: Sequence[Document]) -> list[ArrayLike | None]:
    """The vector a known store keeps for each document; None where it keeps none, or the store is not known.

    Raises:
        SearchUnavailable: the store did not answer.
        InvalidCandidate: it refused.
    """
    facts = facts_of(store)
    if facts is None:
        return [None] * len(documents)
    keys = [facts.document_id(document) for document in documents]
    wanted = [key for key in dict.fromkeys(keys) if key is not None]
    with translated_errors(store, _unreadable):
        kept = facts.read(store, wanted) if wanted else {}
    return [kept.get(key) for key in keys]


def _unreadable(error: Exception) -> LcseError:
    return InvalidCandidate(f"the store did not give back the vectors of its documents ({error})")
