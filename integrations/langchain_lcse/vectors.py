"""The image vectors of documents: from a function of the user's, from the store that holds them, or by encoding."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from langchain_core.documents import Document
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from langchain_lcse.documents import Evidence, name_of, no_picture
from langchain_lcse.stores import read_vectors
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate, LcseError
from lcse_plugins.hosts.checked_options import CheckedOptions
from lcse_plugins.hosts.reranking import OnMissing, usable_vector
from lcse_plugins.hosts.text_vectors import StoredResult, TextVectorCheck
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.keys import find_picture
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.config import Mode
from lcse_plugins.scoring.results import Ranked, Ranking

__all__ = ["DocumentVectors", "PictureFunction", "PictureOptions", "VectorFunction", "kept_with"]

T = TypeVar("T")

NO_PICTURE = b""
"""Stands for the picture of a document that names none: a vector that is its text's is then a text's in any case."""

VectorFunction: TypeAlias = Callable[[Sequence[Document]], Sequence[ArrayLike | None]]
"""One image vector for each document, None where there is none."""

PictureFunction: TypeAlias = Callable[[Document], ImageLocation | None]
"""Which picture a document stands for, None for none."""


@dataclass(frozen=True)
class DocumentVectors:
    """Finds the image vector of each document: the first of three ways that has one. Safe between threads.

    Attributes:
        scorer: its encoder made the vectors.
        store: where the documents came from; vectors are read from it when its class is known.
        vectors: a function of the user's, asked before the store.
        locate: which picture a document stands for; by default as `find_picture` finds it.
        access: what may be read to get a picture.
        on_missing: what becomes of a document that has none.
        checked: whether to look for vectors of texts.
    """

    scorer: LogicScorer
    store: Any
    vectors: VectorFunction | None
    locate: PictureFunction | None
    access: ImageAccess
    on_missing: OnMissing
    checked: bool

    def picture(self, document: Document) -> ImageLocation | None:
        """Where the picture of a document is; None when it names none, as a text does."""
        if self.locate is not None:
            return self.locate(document)
        return find_picture(document.metadata, document.page_content, access=self.access)

    def of(self, documents: Sequence[Document]) -> list[FloatArray | LcseError]:
        """The (d,) image vector of each document; for one that has none, the reason.

        Where some documents name a picture, those that name none are texts, whatever vectors they have.
        """
        pictures = [self.picture(document) for document in documents]
        mixed = any(place is not None for place in pictures) and self.vectors is None
        found: dict[int, FloatArray | LcseError] = {
            i: no_picture(documents[i]) for i, place in enumerate(pictures) if mixed and place is None
        }
        for read in (self._given, lambda asked: read_vectors(self.store, asked)):
            missing = [i for i in range(len(documents)) if i not in found]
            rows = map(usable_vector, read([documents[i] for i in missing]))
            found.update({i: row for i, row in zip(missing, rows, strict=True) if row is not None})
        named = {i: place for i, place in enumerate(pictures) if place is not None and i not in found}
        encoded = self._cache.vectors_at(list(named.values()), access=self.access) if named else []
        found.update(zip(named, encoded, strict=True))
        return [found[i] if i in found else no_picture(document) for i, document in enumerate(documents)]

    def _given(self, documents: Sequence[Document]) -> Sequence[ArrayLike | None]:
        given = [None] * len(documents) if self.vectors is None else self.vectors(documents)
        if len(given) != len(documents):
            raise InvalidCandidate(f"the vectors function gave {len(given)} vectors for {len(documents)} documents")
        return given

    @property
    def check(self) -> TextVectorCheck | None:
        """Tells vectors of texts from those of pictures; it remembers what it compared in this store."""
        if not self.checked or self.vectors is not None:
            return None
        advice = "fill the store with add_images, which takes captions and pictures"
        return kept_with(
            self.scorer if self.store is None else self.store,
            (self.scorer.encoder.encoder_id, self.access),
            lambda: TextVectorCheck(self._cache, access=self.access, advice=advice),
        )

    def texts_among(self, ranking: Ranking) -> list[Ranked]:
        """The results that are texts: among pictures they name none, or their vectors are those of their texts.

        Raises:
            InvalidCandidate: all of them are, or one is and `on_missing` is "raise".
        """
        check = self.check
        if check is None:
            return []
        stored = [self.stored_result(result.candidate.payload, result.candidate.vector) for result in ranking]
        named = [place for place, one in enumerate(stored) if one.picture != NO_PICTURE] or list(range(len(stored)))
        wrong = {named[i] for i in check.find_text_vectors([stored[place] for place in named])}
        wrong.update(set(range(len(stored))).difference(named))
        if wrong and self.on_missing == "raise":
            raise InvalidCandidate(check.describe_fault(stored[min(wrong)]))
        return [ranking[place] for place in sorted(wrong)]

    def stored_result(self, document: Document, vector: FloatArray | None) -> StoredResult:
        """A document as it is stored with a vector: by which text, and of which picture it should be."""
        place = self.picture(document)
        name = f"document {name_of(document)!r}"
        return StoredResult(name, vector, document.page_content, NO_PICTURE if place is None else place)

    @property
    def _cache(self) -> ImageVectorCache:
        return kept_with(self.scorer, "cache", lambda: ImageVectorCache(self.scorer.encoder))


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
    locate_image: PictureFunction | None = Field(
        default=None, description="Which picture a document stands for; by default found in its metadata and content."
    )
    image_access: ImageAccess = Field(default=DEFAULT_ACCESS, description="What may be read to get a picture.")

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def _vectors(self, scorer: LogicScorer, store: Any, on_missing: OnMissing) -> DocumentVectors:
        return DocumentVectors(
            scorer, store, self.vectors, self.locate_image, self.image_access, on_missing, self.check_vectors
        )


_lock = threading.RLock()
_kept: WeakKeyDictionary[object, dict[Hashable, Any]] = WeakKeyDictionary()


def kept_with(owner: object, key: Hashable, make: Callable[[], T]) -> T:
    """What was made for a scorer or a store: LangChain copies components at will, and the copies share it."""
    with _lock:
        try:
            made = _kept.setdefault(owner, {})
        except TypeError:  # a store that cannot be hashed or referred to
            return make()
        if key not in made:
            made[key] = make()
        result: T = made[key]
        return result
