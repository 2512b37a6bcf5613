"""The image vectors of documents: from a function of the user's, from the store that holds them, or by encoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from numpy.typing import ArrayLike

from langchain_lcse.images import image_location
from langchain_lcse.sources.known_stores import facts_of, read_vectors
from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.errors import InvalidCandidate, InvalidOption, LcseError
from lcse_plugins.hosts.stored_vectors import usable_vector
from lcse_plugins.hosts.text_vectors import StoredResult, TextVectorCheck
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation
from lcse_plugins.scoring.results import Ranking

__all__ = ["DocumentVectors", "VectorFunction", "cache_for"]

VECTORS_OF_PICTURES = (
    "fill the store with LcseEmbeddings(…, documents='images') and the paths of pictures as page contents, "
    "or with the vectors that embed_images gives"
)

VectorFunction: TypeAlias = Callable[[Sequence[Document]], Sequence[ArrayLike | None]]
"""One image vector for each document, None where there is none."""


def cache_for(encoder: Encoder, cache: ImageVectorCache | None) -> ImageVectorCache:
    """The cache that was given, or a new one.

    Raises:
        InvalidOption: it keeps vectors of another encoder.
    """
    if cache is None:
        return ImageVectorCache(encoder)
    if cache.encoder.encoder_id != encoder.encoder_id:
        raise InvalidOption(
            f"image_cache keeps vectors of encoder {cache.encoder.encoder_id!r}, not of {encoder.encoder_id!r}; "
            "pass ImageVectorCache(encoder) with the scorer's encoder, or none"
        )
    return cache


class DocumentVectors:
    """Finds the image vector of each document: the first of three ways that has one. Safe between threads.

    Args:
        cache: Encodes pictures, each distinct one once.
        vectors: A function of the user's.
        store: The store the documents came from; read when its class is known.
        locate: Which picture a document stands for.
        access: What may be read to get a picture.
    """

    def __init__(
        self,
        cache: ImageVectorCache,
        *,
        vectors: VectorFunction | None = None,
        store: VectorStore | None = None,
        locate: Callable[[Document], ImageLocation | None] = image_location,
        access: ImageAccess = DEFAULT_ACCESS,
    ) -> None:
        self._cache = cache
        self._vectors = vectors
        self._store = store
        self._locate = locate
        self._access = access
        self.check = TextVectorCheck(cache, access=access, advice=VECTORS_OF_PICTURES)

    @property
    def in_process(self) -> bool:
        """Whether vectors are looked up in a store of this process, so that there is nothing to wait for."""
        facts = facts_of(self._store)
        return self._vectors is None and facts is not None and facts.in_process

    def of(self, documents: Sequence[Document]) -> list[FloatArray | LcseError]:
        """The (d,) image vector of each document; for one that has none, the reason."""
        found: list[FloatArray | LcseError | None] = [None] * len(documents)
        for read in (self._given, self._stored, self._encoded):
            missing = [i for i, vector in enumerate(found) if vector is None]
            if missing:
                for i, vector in zip(missing, read([documents[i] for i in missing]), strict=True):
                    found[i] = vector if isinstance(vector, LcseError) else usable_vector(vector)
        return [_no_vector(document) if v is None else v for document, v in zip(documents, found, strict=True)]

    def stored_result(self, document: Document, vector: FloatArray | None) -> StoredResult:
        """A document as it is stored with a vector: by which text, and of which picture it should be."""
        return StoredResult(f"document {document.id!r}", vector, document.page_content, self._locate(document))

    def without_text_vectors(self, ranking: Ranking, *, on_missing: Literal["drop", "raise"]) -> Ranking:
        """A ranking of documents without those whose vectors are those of their texts.

        Raises:
            InvalidCandidate: all of them are, or one is and `on_missing` is "raise".
        """
        stored = [self.stored_result(result.candidate.payload, result.candidate.vector) for result in ranking]
        wrong = self.check.find_text_vectors(stored)
        if wrong and on_missing == "raise":
            raise InvalidCandidate(self.check.describe_fault(stored[wrong[0]]))
        sound = [result for place, result in enumerate(ranking) if place not in wrong]
        return Ranking(sound, parse=ranking.parse, mode=ranking.mode, exact=ranking.exact)

    def _given(self, documents: Sequence[Document]) -> Sequence[ArrayLike | None]:
        if self._vectors is None:
            return [None] * len(documents)
        given = self._vectors(documents)
        if len(given) != len(documents):
            raise InvalidCandidate(f"the vectors function gave {len(given)} vectors for {len(documents)} documents")
        return given

    def _stored(self, documents: Sequence[Document]) -> Sequence[ArrayLike | None]:
        return [None] * len(documents) if self._store is None else read_vectors(self._store, documents)

    def _encoded(self, documents: Sequence[Document]) -> Sequence[FloatArray | LcseError]:
        places = [self._locate(document) for document in documents]
        vectors = iter(self._cache.vectors_at([place for place in places if place is not None], access=self._access))
        return [
            _no_picture(document) if place is None else next(vectors)
            for document, place in zip(documents, places, strict=True)
        ]


def _no_picture(document: Document) -> InvalidCandidate:
    return InvalidCandidate(
        f"document {_name(document)!r} has no stored vector that can be scored and names no picture; put a path or URL "
        "into metadata['image_path'], or pass vectors=, a function that gives the image vectors of documents"
    )


def _no_vector(document: Document) -> InvalidCandidate:
    return InvalidCandidate(f"the encoder gives the picture of document {_name(document)!r} a vector of zeros")


def _name(document: Document) -> str:
    return document.id or document.page_content[:60] or "with no content"
