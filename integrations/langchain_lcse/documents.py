"""Results as LangChain documents: new objects, with the score and the reasons in their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from langchain_core.documents import Document

from lcse_plugins.images.keys import place_in
from lcse_plugins.results import Candidate, Ranked, Ranking

__all__ = ["EVIDENCE_KEY", "SCORE_KEY", "document_of", "judged", "ranked_documents"]

SCORE_KEY = "relevance_score"
"""Metadata key of the score: the one LangChain's rerankers use."""

EVIDENCE_KEY = "lcse"
"""Metadata key of the reasons: `score`, `holistic`, `correction`, `truth`, `evidence` (per concept `concept`,
`negated`, `similarity`, `probability`), `reason` in words, and of the whole ranking `exact`, `mode` and `parse`."""


def ranked_documents(ranking: Ranking) -> list[Document]:
    """A ranking of candidates as documents; a candidate's payload is its document, if it has one."""
    return [judged(document_of(result.candidate), result, ranking) for result in ranking]


def judged(document: Document, result: Ranked, ranking: Ranking) -> Document:
    """A copy of a document with its score and the reasons for it."""
    found = result.to_json()
    del found["id"]
    reasons = {
        **found,
        "reason": result.reason,
        "exact": ranking.exact,
        "mode": ranking.mode,
        "parse": ranking.parse.to_json(),
    }
    metadata = {**document.metadata, SCORE_KEY: result.score, EVIDENCE_KEY: reasons}
    return document.model_copy(update={"metadata": metadata})


def document_of(candidate: Candidate) -> Document:
    """The document a candidate carries as its payload, or one made from its payload and id.

    A payload with `page_content` is read as langchain-qdrant writes it; any other becomes the metadata, a path, as an
    `ImageIndex` gives it, under `image_path`. Then the content is where the picture is, or the id.
    """
    payload = candidate.payload
    if isinstance(payload, Document):
        return payload
    fields = dict(payload) if isinstance(payload, Mapping) else {}
    if "page_content" in fields:
        metadata = {**(fields.get("metadata") or {}), "_id": candidate.id}
        return Document(id=str(candidate.id), page_content=fields["page_content"] or "", metadata=metadata)
    if isinstance(payload, Path):
        fields["image_path"] = str(payload)
    return Document(id=str(candidate.id), page_content=place_in(fields) or str(candidate.id), metadata=fields)
