"""Payloads as other libraries write them, read without importing those libraries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lcse_plugins.errors import InvalidCandidate

__all__ = ["StoredText", "read_langchain_payload", "read_llama_index_payload"]

_LLAMA_INDEX_KEYS = frozenset({"_node_content", "_node_type", "document_id", "doc_id", "ref_doc_id"})


@dataclass(frozen=True, kw_only=True)
class StoredText:
    """What a framework stored with a vector.

    Attributes:
        text: the document's text; empty for a picture alone.
        metadata: its metadata, as the framework gave it.
        node: the whole LlamaIndex node as JSON values; None for LangChain documents.
    """

    text: str
    metadata: dict[str, Any]
    node: dict[str, Any] | None = field(default=None)


def read_langchain_payload(
    payload: Mapping[str, Any] | None, *, content_key: str = "page_content", metadata_key: str = "metadata"
) -> StoredText:
    """What langchain-qdrant stored: the text and the metadata under one key each.

    Raises:
        InvalidCandidate: the payload is not of that form.
    """
    payload = payload or {}
    metadata = payload.get(metadata_key) or {}
    if content_key not in payload or not isinstance(metadata, Mapping):
        raise InvalidCandidate(
            f"the payload has the keys {sorted(payload)}, not langchain-qdrant's {content_key!r} and {metadata_key!r}; "
            "name the keys the collection was written with"
        )
    return StoredText(text=payload[content_key] or "", metadata=dict(metadata))


def read_llama_index_payload(payload: Mapping[str, Any] | None) -> StoredText:
    """What llama-index-vector-stores-qdrant stored: flat metadata, and the node as JSON text.

    Raises:
        InvalidCandidate: the payload is not of that form.
    """
    payload = payload or {}
    try:
        node = json.loads(payload["_node_content"])
        metadata = node.get("metadata", {})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidCandidate(
            f"the payload has the keys {sorted(payload)}, not a LlamaIndex node under '_node_content'"
        ) from error
    resource = node.get("text_resource") or {}
    flat = {key: value for key, value in payload.items() if key not in _LLAMA_INDEX_KEYS}
    return StoredText(text=node.get("text") or resource.get("text") or "", metadata={**flat, **metadata}, node=node)
