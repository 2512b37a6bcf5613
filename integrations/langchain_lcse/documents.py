"""Results as LangChain documents: new objects, with the score and the reasons in their metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from langchain_core.documents import Document

from lcse_plugins.errors import LcseError
from lcse_plugins.hosts.payloads import read_payload
from lcse_plugins.hosts.result_metadata import METADATA_KEY, Accounts, Fetched
from lcse_plugins.images.keys import place_in
from lcse_plugins.scoring.results import Candidate, Ranking

__all__ = ["SCORE_KEY", "document_of", "ranked_documents", "without_evidence"]

SCORE_KEY = "relevance_score"
"""Metadata key of the score: the one LangChain's rerankers use."""


def ranked_documents(
    ranking: Ranking, *, fetched: Fetched = "logic", unranked: Iterable[tuple[Document, LcseError]] = ()
) -> list[Document]:
    """A ranking of candidates as documents with their scores and accounts; see `document_of`.

    After them come those that could not be ranked, without a score; their accounts say why.
    """
    accounts, documents = Accounts(ranking, fetched=fetched), []
    for result in ranking:
        document = document_of(result.candidate)
        added = {SCORE_KEY: result.score, METADATA_KEY: accounts.of(result, document.id)}
        documents.append(document.model_copy(update={"metadata": {**document.metadata, **added}}))
    for document, fault in unranked:
        metadata = {**document.metadata, METADATA_KEY: accounts.of_missing(fault, document.id)}
        metadata.pop(SCORE_KEY, None)
        documents.append(document.model_copy(update={"metadata": metadata}))
    return documents


def without_evidence(documents: Iterable[Document]) -> list[Document]:
    """The documents without their scores and accounts, which differ from query to query."""
    added = (SCORE_KEY, METADATA_KEY)
    return [
        document.model_copy(update={"metadata": {k: v for k, v in document.metadata.items() if k not in added}})
        for document in documents
    ]


def document_of(candidate: Candidate) -> Document:
    """The document a candidate carries as its payload, or one made from its payload and id.

    Payloads as LlamaIndex and langchain-qdrant write them give their text and metadata; any other becomes the metadata,
    a path, as an `ImageIndex` gives it, under `image_path`. Without a text, the content is where the picture is, or the
    id.
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
