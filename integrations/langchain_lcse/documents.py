"""Documents: results written into their metadata, the pictures they name, and the vectors of these.

A vector is given by the user, kept by the store, or made now. `add_images` fills a store with the right ones.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from langchain_lcse.embeddings import LcseEmbeddings
from langchain_lcse.stores import KNOWN_STORES, add_vectors, known_store, read_vectors
from lcse_plugins.encoders.batches import batched
from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.errors import InvalidCandidate, InvalidOption, LcseError
from lcse_plugins.hosts.checked_options import CheckedOptions
from lcse_plugins.hosts.payloads import read_langchain_payload, read_payload
from lcse_plugins.hosts.reranking import Unranked, usable_vector
from lcse_plugins.hosts.result_metadata import METADATA_KEY, Fetched, ResultDescriber, ResultMetadata
from lcse_plugins.hosts.text_vectors import StoredResult, TextVectorCheck
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.keys import find_picture, place_in
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.arguments import pictures_of
from lcse_plugins.scoring.config import Mode
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = ["METADATA_KEY", "AddedImages", "DocumentPictures", "PictureOptions", "add_images", "ranked_documents"]

SCORE_KEY = "relevance_score"
"""Metadata key of the score: the one LangChain's rerankers use."""

Evidence: TypeAlias = Literal["dict", "json", "none"]
"""How `metadata["lcse"]` is written: as values, as JSON text (which every store can keep), or not at all."""


def ranked_documents(
    ranking: Ranking,
    *,
    evidence: Evidence,
    fetched: Fetched = "logic",
    unranked: Iterable[Unranked[Document]] = (),
) -> list[Document]:
    """Documents with their scores and reasons; after them those that could not be ranked, which say why."""

    def told(document: Document, score: float | None, about: ResultMetadata) -> Document:
        metadata = without_evidence(document.metadata)
        if evidence != "none":
            metadata.update({} if score is None else {SCORE_KEY: score})
            metadata[METADATA_KEY] = json.dumps(about) if evidence == "json" else about
        return document.model_copy(update={"metadata": metadata})

    describer = ResultDescriber(ranking, fetched=fetched)
    pairs = [(result, document_of(result.candidate)) for result in ranking]
    ranked = [told(document, result.score, describer.ranked(result, document.id)) for result, document in pairs]
    return ranked + [told(one.found, one.score, describer.missing(one.fault, one.found.id)) for one in unranked]


def without_evidence(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A document's metadata without what belongs to one query."""
    return {key: value for key, value in metadata.items() if key not in (SCORE_KEY, METADATA_KEY)}


def document_of(candidate: Candidate, store: Any = None) -> Document:
    """The document that a candidate carries, or one made of its payload and id.

    With a `QdrantVectorStore` it is what that store would return. Else payloads of LlamaIndex and langchain-qdrant give
    their text and metadata, any other is the metadata, and a document without a text says where its picture is.
    """
    payload = candidate.payload
    if isinstance(payload, Document):
        return payload
    if store is not None:
        stored = read_langchain_payload(
            payload, content_key=store.content_payload_key, metadata_key=store.metadata_payload_key
        )
        metadata = {**stored.metadata, "_id": candidate.id, "_collection_name": store.collection_name}
        return Document(id=str(candidate.id), page_content=stored.text, metadata=metadata)
    fields = {"image_path": str(payload)} if isinstance(payload, Path) else payload  # a path, from an ImageIndex
    fields = fields if isinstance(fields, Mapping) else {}
    stored = read_payload(fields)
    metadata = {**stored.metadata, **stored.image, **({"_id": candidate.id} if "page_content" in fields else {})}
    content = stored.text or place_in(metadata) or str(candidate.id)
    return Document(id=str(candidate.id), page_content=content, metadata=metadata)


def document_key(document: Document) -> Hashable:
    """What tells two results apart: their ids, else all of their content."""
    key = document.id or document.metadata.get("_id")
    return (document.page_content, repr(sorted(document.metadata.items(), key=repr))) if key is None else key


def name_of(document: Document) -> str:
    """What to call a document in a message."""
    return document.id or document.page_content[:60] or "with no content"


def no_picture(document: Document) -> InvalidCandidate:
    """Why a document that names no picture is not ranked."""
    return InvalidCandidate(
        f"document {name_of(document)!r} names no picture, so it is not ranked; put a path or URL into "
        "metadata['image_path'], or pass vectors=, a function that gives the image vectors of documents"
    )


T = TypeVar("T")

BATCH = 64
"""Pictures that `add_images` encodes and stores at a time."""

VectorFunction: TypeAlias = Callable[[Sequence[Document]], Sequence[ArrayLike | None]]
"""One image vector for each document, None where there is none."""


class PictureOptions(CheckedOptions, BaseModel):
    """What the retriever and the compressor have in common."""

    scorer: SkipValidation[LogicScorer | str | None] = Field(
        default=None,
        description="A LogicScorer, or the name of the encoder that made the vectors. A store with LcseEmbeddings "
        "needs none, and a LogicSearch has its own.",
    )
    mode: Mode | None = Field(default=None, description="How queries are scored; the scorer's own way by default.")
    min_truth: float | None = Field(
        default=None,
        description="Leave out documents for which the query holds less than this; and, in a compressor, pictures "
        "that cannot be read.",
    )
    evidence: Evidence = Field(
        default="dict",
        description='How metadata["lcse"] is written: "dict"; "json", a text that every store can keep; or "none", '
        "which leaves the score out too, so that a document is the same for every query (for MultiQueryRetriever).",
    )
    vectors: VectorFunction | None = Field(
        default=None,
        description="A function that gives the image vectors of documents, for stores that do not give them back.",
    )
    check_vectors: bool = Field(
        default=True, description="Compare the vectors of a few of the best documents with those of their texts."
    )
    image_access: ImageAccess = Field(default=DEFAULT_ACCESS, description="What may be read to get a picture.")

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")


@dataclass(frozen=True)
class DocumentPictures:
    """The pictures and image vectors of documents from a store, None for those from elsewhere."""

    options: PictureOptions
    scorer: LogicScorer
    store: Any

    def picture(self, document: Document) -> ImageLocation | None:
        """Where the picture of a document is; None when it names none, as a text does."""
        return find_picture(document.metadata, document.page_content, access=self.options.image_access)

    def vectors_of(self, documents: Sequence[Document]) -> list[FloatArray | LcseError]:
        """The (d,) image vector of each document: the user's or the store's, else made now; or why it has none.

        Where some documents name a picture, those that name none are texts, whatever vectors they have.
        """
        given = self.options.vectors
        stored = given(documents) if given else read_vectors(self.store, documents)
        if len(stored) != len(documents):
            raise InvalidCandidate(f"the vectors function gave {len(stored)} vectors for {len(documents)} documents")
        places = [self.picture(document) for document in documents]
        mixed = given is None and any(place is not None for place in places)
        found: list[FloatArray | LcseError | None] = [
            no_picture(document) if place is None and (row is None or mixed) else row
            for document, place, row in zip(documents, places, map(usable_vector, stored), strict=True)
        ]
        lacking = [place for place, row in zip(places, found, strict=True) if row is None and place is not None]
        encoded = iter(self._cache.vectors_at(lacking, access=self.options.image_access))
        return [next(encoded) if row is None else row for row in found]

    @property
    def check(self) -> TextVectorCheck | None:
        """Tells vectors of texts from those of pictures; it remembers what it compared in this store."""
        if not self.options.check_vectors or self.options.vectors is not None:
            return None
        access, advice = self.options.image_access, "fill the store with add_images, which takes captions and pictures"
        return kept_with(
            self.scorer if self.store is None else self.store,
            (self.scorer.encoder.encoder_id, access),
            lambda: TextVectorCheck(self._cache, access=access, advice=advice),
        )

    def without_texts(self, ranking: Ranking, limit: int, *, strict: bool) -> Ranking:
        """The best pictures: texts among them name none, or have the vectors of their texts.

        Raises:
            InvalidCandidate: all that were compared are texts; or one is, and `strict` says that this is an error.
        """
        named = [result for result in ranking if self.picture(result.candidate.payload) is not None]
        if named and self.options.vectors is None:
            unnamed = [result.candidate.payload for result in ranking if result not in named]
            if unnamed and strict:
                raise no_picture(unnamed[0])
            ranking[:] = named
        while check := self.check:
            best = [self.stored_result(result.candidate.payload, result.candidate.vector) for result in ranking[:limit]]
            texts = check.find_text_vectors(best)
            if texts and strict:
                raise InvalidCandidate(check.describe_fault(best[texts[0]]))
            if not texts:
                break
            ranking[:] = [result for place, result in enumerate(ranking) if place not in texts]
        return ranking[:limit]

    def stored_result(self, document: Document, vector: FloatArray | None) -> StoredResult:
        """A document as it is stored with a vector: by which text, and of which picture it should be."""
        place = self.picture(document)
        picture = b"" if place is None else place  # no picture: if the vector is its text's, that is what it is
        return StoredResult(f"document {name_of(document)!r}", vector, document.page_content, picture)

    @property
    def _cache(self) -> ImageVectorCache:
        return kept_with(self.scorer, "cache", lambda: ImageVectorCache(self.scorer.encoder))


_lock = threading.RLock()
_kept: WeakKeyDictionary[object, dict[Hashable, Any]] = WeakKeyDictionary()


def kept_with(owner: object, key: Hashable, make: Callable[[], T]) -> T:
    """What was made for a scorer or a store: LangChain copies components at will, and the copies share it."""
    with _lock:
        try:
            made = _kept.setdefault(owner, {})
        except TypeError:  # a store that cannot be hashed
            return make()
        if key not in made:
            made[key] = make()
        result: T = made[key]
        return result


def scorer_for(source: object, scorer: LogicScorer | Encoder | str | None, *, mode: Mode | None = None) -> LogicScorer:
    """The scorer for a source: the one given, else the one of the embeddings that filled the store."""
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
    """What `add_images` did: the ids of the documents added, and those left out, each with the reason."""

    ids: list[str]
    broken: list[tuple[Document, LcseError]]


def add_images(
    store: VectorStore,
    documents: Iterable[Document | str | Path],
    *,
    scorer: LogicScorer | Encoder | str | None = None,
    image_access: ImageAccess = DEFAULT_ACCESS,
) -> AddedImages:
    """Store documents with the vectors of their pictures; a picture that cannot be read is listed, the rest go in.

        >>> add_images(store, [Document("a dog on a beach", metadata={"image_path": "dog.jpg"}), "street.jpg"])

    Args:
        store: An InMemoryVectorStore, FAISS, Chroma or QdrantVectorStore.
        documents: Captions as page content, with their pictures in metadata; or just paths and URLs.
        scorer: Its encoder makes the vectors; by default that of the store's `LcseEmbeddings`.
        image_access: What may be read to get a picture.

    Raises:
        InvalidOption: the store is of another kind, or there is no scorer.
        SearchUnavailable: the store did not answer; InvalidCandidate if it refused.
    """
    if known_store(store) is None:
        raise InvalidOption(
            f"add_images knows {', '.join(KNOWN_STORES)}, not {type(store).__name__}; give such a store "
            "LcseEmbeddings(…, documents='images') and add the paths of pictures as texts"
        )
    pictures = DocumentPictures(PictureOptions(image_access=image_access), scorer_for(store, scorer), None)
    added = AddedImages([], [])
    given = (
        one if isinstance(one, Document) else Document(Path(one).stem, metadata={"image_path": str(one)})
        for one in pictures_of(documents, name="documents")
    )
    for batch in batched(given, BATCH):
        sound = []
        for document, row in zip(batch, pictures.vectors_of(batch), strict=True):
            if isinstance(row, LcseError):
                added.broken.append((document, row))
                continue
            update = {"id": document.id or str(uuid4()), "metadata": without_evidence(document.metadata)}
            sound.append((document.model_copy(update=update), row.tolist()))
        add_vectors(store, sound)
        added.ids.extend(str(document.id) for document, _ in sound)
    return added
