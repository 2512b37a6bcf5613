"""Payloads as LangChain and LlamaIndex write them to a database, read without importing either."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lcse_plugins.errors import InvalidCandidate

__all__ = ["StoredText", "read_langchain_payload", "read_llama_index_payload", "read_payload"]

_LLAMA_INDEX_KEYS = frozenset({"_node_content", "_node_type", "document_id", "doc_id", "ref_doc_id"})


@dataclass(frozen=True, kw_only=True)
class StoredText:
    """What a framework stored with a vector.

    Attributes:
        text: the document's text; empty for a picture alone.
        metadata: its metadata, as the framework gave it, and what else lies beside the text.
        image: where the picture of a LlamaIndex node is, under `image`, `image_path` or `image_url`; empty for none.
        node: the whole LlamaIndex node as JSON values; None for LangChain documents.
    """

    text: str
    metadata: dict[str, Any]
    image: dict[str, str] = field(default_factory=dict)
    node: dict[str, Any] | None = None


def read_payload(payload: Mapping[str, Any] | None) -> StoredText:
    """What any payload holds: read as LlamaIndex or langchain-qdrant wrote it; else all of it is metadata."""
    payload = payload or {}
    with suppress(InvalidCandidate):
        return (read_llama_index_payload if "_node_content" in payload else read_langchain_payload)(payload)
    text = payload.get("page_content")
    return StoredText(text=text if isinstance(text, str) else "", metadata=dict(payload))


def read_langchain_payload(
    payload: Mapping[str, Any] | None, *, content_key: str = "page_content", metadata_key: str = "metadata"
) -> StoredText:
    """What langchain-qdrant stored, text and metadata under one key each; InvalidCandidate for anything else."""
    payload = payload or {}
    text, metadata = payload.get(content_key) or "", payload.get(metadata_key) or {}
    if content_key not in payload or not isinstance(text, str) or not isinstance(metadata, Mapping):
        raise InvalidCandidate(
            f"the payload has the keys {sorted(payload)}, not langchain-qdrant's {content_key!r} and {metadata_key!r}; "
            "name the keys the collection was written with"
        )
    beside = {key: value for key, value in payload.items() if key not in (content_key, metadata_key)}
    return StoredText(text=text, metadata={**beside, **metadata})


def read_llama_index_payload(payload: Mapping[str, Any] | None) -> StoredText:
    """What llama-index-vector-stores-qdrant stored, flat metadata and the node as JSON; else InvalidCandidate."""
    payload = payload or {}
    try:
        node = json.loads(payload["_node_content"])
        flat = {key: value for key, value in payload.items() if key not in _LLAMA_INDEX_KEYS}
        text = str(node.get("text") or (node.get("text_resource") or {}).get("text") or "")
        return StoredText(text=text, metadata={**flat, **node.get("metadata", {})}, image=_image_of(node), node=node)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidCandidate(
            f"the payload has the keys {sorted(payload)}, not a LlamaIndex node under '_node_content'"
        ) from error


def _image_of(node: Mapping[str, Any]) -> dict[str, str]:
    resource = node.get("image_resource") or {}
    for key, name in (("image", "data"), ("image_path", "path"), ("image_url", "url")):
        if place := str(node.get(key) or resource.get(name) or ""):
            return {key: f"data:;base64,{place}" if key == "image" and not place.startswith("data:") else place}
    return {}
