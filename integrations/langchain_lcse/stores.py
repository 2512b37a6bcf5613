"""What is known of particular vector stores, and `add_images`, which fills them with pictures.

`KNOWN_STORES` says of each how vectors are read back and how it filters. A store that is not in the table still works:
its vectors come from a function of the user's, or from encoding the pictures its documents name.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from numpy.typing import ArrayLike

from langchain_lcse.documents import no_picture, without_evidence
from langchain_lcse.embeddings import LcseEmbeddings
from lcse_plugins.encoders.batches import batched
from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import InvalidCandidate, InvalidOption, LcseError, SearchUnavailable
from lcse_plugins.hosts.logic_queries import is_refusal
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.keys import find_picture
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.arguments import check_count, pictures_of

__all__ = ["KNOWN_STORES", "AddedImages", "StoreFacts", "add_images", "facts_of", "read_vectors", "scorer_for"]

MISTAKES = (ArithmeticError, AttributeError, ImportError, LookupError, NameError, NotImplementedError, TypeError)
"""Errors that say a program is wrong: they are never translated."""


@dataclass(frozen=True, kw_only=True)
class StoreFacts:
    """What is known of one class of stores.

    Attributes:
        embeddings: its attribute that holds the embeddings.
        read: (store, ids) → id → stored vector; ids without one are left out.
        filter: (store, {key: value}) → the store's own filter for metadata that equal these.
        filtering: more arguments of a search with a filter.
        document_id: the id under which the store keeps a document it returned.
        exhaustive: whether a search compares with every vector, so that a result can be proved complete.
        in_process: whether it only computes and never waits, so that its async search would hold the event loop.
    """

    embeddings: str
    read: Callable[[Any, list[Any]], Mapping[Any, ArrayLike]]
    filter: Callable[[Any, Mapping[str, Any]], Any]
    filtering: Callable[[Any], dict[str, Any]] = lambda store: {}
    document_id: Callable[[Document], Any] = lambda document: document.id
    exhaustive: Callable[[Any], bool] = lambda store: False
    in_process: bool = False


def equals(wanted: Mapping[str, Any]) -> Callable[[Document], bool]:
    """A filter function: whether a document's metadata hold these values."""
    return lambda document: all(document.metadata.get(key) == value for key, value in wanted.items())


def _read_faiss(store: Any, ids: list[str]) -> dict[str, ArrayLike]:
    rows = {key: row for row, key in store.index_to_docstore_id.items()}
    try:
        return {key: store.index.reconstruct(rows[key]) for key in ids if key in rows}
    except RuntimeError:  # an index that keeps no vectors, or needs a map it was built without
        return {}


def _read_chroma(store: Any, ids: list[str]) -> dict[str, ArrayLike]:
    kept = store.get(ids=ids, include=["embeddings"])
    return dict(zip(kept["ids"], kept["embeddings"], strict=True))


def _filter_chroma(store: Any, wanted: Mapping[str, Any]) -> Any:
    plain = len(wanted) < 2 or any(key.startswith("$") for key in wanted)
    return dict(wanted) if plain else {"$and": [{key: value} for key, value in wanted.items()]}


def _read_qdrant(store: Any, ids: list[str | int]) -> dict[str | int, ArrayLike]:
    name = store.vector_name
    points = store.client.retrieve(
        store.collection_name, ids, with_payload=False, with_vectors=[name] if name else True
    )
    vectors = {point.id: point.vector.get(name) if isinstance(point.vector, dict) else point.vector for point in points}
    return {key: vector for key, vector in vectors.items() if vector is not None}


def _filter_qdrant(store: Any, wanted: Mapping[str, Any]) -> Any:
    from qdrant_client import models

    pairs = {f"{store.metadata_payload_key}.{key}": models.MatchValue(value=value) for key, value in wanted.items()}
    return models.Filter(must=[models.FieldCondition(key=key, match=match) for key, match in pairs.items()])


KNOWN_STORES = {
    ("langchain_core.vectorstores", "InMemoryVectorStore"): StoreFacts(
        embeddings="embedding",
        read=lambda store, ids: {key: store.store[key]["vector"] for key in ids if key in store.store},
        filter=lambda store, wanted: equals(wanted),
        exhaustive=lambda store: True,
        in_process=True,
    ),
    ("langchain_community.vectorstores.faiss", "FAISS"): StoreFacts(
        embeddings="embedding_function",
        read=_read_faiss,
        filter=lambda store, wanted: dict(wanted),
        filtering=lambda store: {"fetch_k": store.index.ntotal},  # it filters what it has found
        exhaustive=lambda store: type(store.index).__name__.startswith("IndexFlat"),
        in_process=True,
    ),
    ("langchain_chroma", "Chroma"): StoreFacts(
        embeddings="_embedding_function", read=_read_chroma, filter=_filter_chroma
    ),
    ("langchain_qdrant", "QdrantVectorStore"): StoreFacts(
        embeddings="_embeddings",
        read=_read_qdrant,
        filter=_filter_qdrant,
        document_id=lambda document: document.metadata.get("_id"),
    ),
}
"""By module and name of the class; never imported from here, for whoever holds a store has imported it."""


def facts_of(store: object) -> StoreFacts | None:
    """The facts that hold for a store, or None when its class is not known."""
    for (module, name), facts in KNOWN_STORES.items():
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(store, kind):
            return facts
    return None


def own_filter(store: object, wanted: Any) -> dict[str, Any]:
    """Arguments of a store's search that filter: by a mapping of values, or by what the store takes itself."""
    facts = facts_of(store)
    if wanted is None or facts is None:
        return {} if wanted is None else {"filter": wanted}
    own = facts.filter(store, wanted) if isinstance(wanted, Mapping) else wanted
    return {"filter": own, **facts.filtering(store)}


@contextmanager
def translated_errors(store: object, refusal: str) -> Iterator[None]:
    """What a store raises becomes an error of this package; a mistake in a program stays what it is.

    Args:
        store: The store that is asked.
        refusal: What to say when it refuses what it is given, with a place for its own words.

    Raises:
        InvalidCandidate: it refused.
        SearchUnavailable: it did not answer.
    """
    try:
        yield
    except (LcseError, *MISTAKES):
        raise
    except Exception as error:
        status = getattr(error, "status_code", None)
        refused = isinstance(error, ValueError | AssertionError) or (isinstance(status, int) and is_refusal(status))
        if refused or type(error).__name__ in ("QdrantVectorStoreError", "InvalidArgumentError"):
            raise InvalidCandidate(refusal.format(error)) from error
        raise SearchUnavailable(
            f"{type(store).__name__} did not answer ({type(error).__name__}: {error}); "
            "see whether it is running and can be reached, and ask again"
        ) from error


def read_vectors(store: object, documents: Iterable[Document]) -> list[ArrayLike | None]:
    """The vector a known store keeps for each document; None where it keeps none, or the store is not known."""
    facts = facts_of(store)
    keys = [facts.document_id(document) if facts else None for document in documents]
    wanted = [key for key in dict.fromkeys(keys) if key is not None]
    if facts is None or not wanted:
        return [None] * len(keys)
    with translated_errors(store, "the store did not give back its vectors ({})"):
        kept = facts.read(store, wanted)
    return [kept.get(key) for key in keys]


def scorer_for(source: object, scorer: LogicScorer | Encoder | str | None, *, mode: Any = None) -> LogicScorer:
    """The scorer for a source: the one given, else the one of the embeddings that filled the store.

    Raises:
        InvalidOption: there is neither, or their encoders differ.
    """
    embeddings = source.embeddings if isinstance(source, VectorStore) else None
    filled_by = embeddings.scorer if isinstance(embeddings, LcseEmbeddings) else None
    given = filled_by if scorer is None else scorer
    if given is None:
        raise InvalidOption("pass scorer=, a LogicScorer or the name of the encoder that made the image vectors")
    chosen = LogicScorer.of(given, mode=mode)
    made_by = filled_by.encoder.encoder_id if filled_by else getattr(source, "encoder_id", None)
    if made_by is not None and made_by != chosen.encoder.encoder_id:
        raise InvalidOption(
            f"the source's vectors are made by encoder {made_by!r}, the scorer uses {chosen.encoder.encoder_id!r}; "
            "use one encoder for both"
        )
    return chosen


@dataclass(frozen=True)
class AddedImages:
    """What `add_images` did.

    Attributes:
        ids: of the documents added, in their order.
        broken: the documents left out, each with the reason.
    """

    ids: list[str]
    broken: list[tuple[Document, LcseError]]


def add_images(
    store: VectorStore,
    documents: Iterable[Document | str | Path],
    *,
    scorer: LogicScorer | Encoder | str | None = None,
    image_access: ImageAccess = DEFAULT_ACCESS,
    batch_size: int = 64,
) -> AddedImages:
    """Store documents with the vectors of their pictures; a picture that cannot be read is listed, the rest go in.

        >>> add_images(store, [Document("a dog on a beach", metadata={"image_path": "dog.jpg"}), "street.jpg"])

    Args:
        store: An InMemoryVectorStore, FAISS, Chroma or QdrantVectorStore.
        documents: Captions as page content, with their pictures in metadata; or just paths and URLs.
        scorer: Its encoder makes the vectors; by default that of the store's `LcseEmbeddings`.
        image_access: What may be read to get a picture.
        batch_size: How many pictures are encoded and stored at a time.

    Raises:
        InvalidOption: the store is of another kind, or there is no scorer.
        SearchUnavailable: the store did not answer.
        InvalidCandidate: it refused.
    """
    check_count("batch_size", batch_size)
    if facts_of(store) is None:
        raise InvalidOption(
            f"add_images knows {', '.join(name for _, name in KNOWN_STORES)}, not {type(store).__name__}; give such a "
            "store LcseEmbeddings(…, documents='images') and add the paths of pictures as texts"
        )
    cache = ImageVectorCache(scorer_for(store, scorer).encoder, capacity=1, batch_size=batch_size)
    added = AddedImages([], [])
    for batch in batched(map(_as_document, pictures_of(documents, name="documents")), batch_size):
        places = [find_picture(document.metadata, document.page_content, access=image_access) for document in batch]
        vectors = iter(cache.vectors_at([place for place in places if place is not None], access=image_access))
        sound: list[tuple[Document, list[float]]] = []
        for document, place in zip(batch, places, strict=True):
            vector = no_picture(document) if place is None else next(vectors)
            if isinstance(vector, LcseError):
                added.broken.append((document, vector))
            else:
                named = {"id": document.id or str(uuid4()), "metadata": without_evidence(document.metadata)}
                sound.append((document.model_copy(update=named), vector.tolist()))
        if sound:
            add_vectors(store, *zip(*sound, strict=True))
            added.ids.extend(str(document.id) for document, _ in sound)
    return added


def add_vectors(store: VectorStore, documents: Iterable[Document], vectors: Iterable[list[float]]) -> None:
    """Store documents with vectors that are known: a copy of the store adds them, whose embeddings say just these."""
    facts = facts_of(store)
    assert facts is not None
    filling = copy.copy(store)
    setattr(filling, facts.embeddings, _Known(vectors))
    with translated_errors(store, "the store refused the pictures ({})"):
        filling.add_documents(list(documents))


class _Known(Embeddings):
    """Gives out vectors in their order, whatever the texts."""

    def __init__(self, vectors: Iterable[list[float]]) -> None:
        self._vectors = iter(vectors)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [next(self._vectors) for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError


def _as_document(given: Document | str | Path) -> Document:
    if isinstance(given, Document):
        return given
    return Document(page_content=Path(given).stem, metadata={"image_path": str(given)})
