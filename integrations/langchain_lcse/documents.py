"""Results as LangChain documents: new objects, with the score and the reasons in their metadata."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from langchain_core.documents import Document

from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.hosts.payloads import read_payload
from lcse_plugins.hosts.reranking import Unranked
from lcse_plugins.hosts.result_metadata import METADATA_KEY, Fetched, ResultDescriber, ResultMetadata
from lcse_plugins.images.keys import place_in
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = ["METADATA_KEY", "Evidence", "document_key", "document_of", "name_of", "no_picture", "ranked_documents"]

SCORE_KEY = "relevance_score"
"""Metadata key of the score: the one LangChain's rerankers use."""

Evidence: TypeAlias = Literal["dict", "json", "none"]
"""How `metadata["lcse"]` is written: as values, as JSON text (which every store can keep), or not at all."""


def ranked_documents(
    ranking: Ranking,
    *,
    evidence: Evidence = "dict",
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


def document_of(candidate: Candidate) -> Document:
    """The document a candidate carries as its payload, or one made from its payload and id.

    Payloads as LlamaIndex and langchain-qdrant write them give their text and metadata; any other becomes the metadata,
    a path, as an `ImageIndex` gives it, under `image_path`. Without a text, the content is where the picture is.
    """
    payload = candidate.payload
    if isinstance(payload, Document):
        return payload
    if isinstance(payload, Path):
        payload = {"image_path": str(payload)}
    fields = payload if isinstance(payload, Mapping) else {}
    stored = read_payload(fields)
    metadata = {**stored.metadata, **stored.image}
    if "page_content" in fields:
        metadata["_id"] = candidate.id  # as langchain-qdrant's own searches give it
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
    """Why a document is not ranked that names no picture."""
    return InvalidCandidate(
        f"document {name_of(document)!r} names no picture, so it is not ranked; put a path or URL into "
        "metadata['image_path'], or pass vectors=, a function that gives the image vectors of documents"
    )
