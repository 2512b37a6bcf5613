"""Unpack and pack: where a node's picture and vector are, and the new node that says why it stands where it does."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.schema import BaseNode, ImageNode, MetadataMode, Node, NodeWithScore
from llama_index.core.vector_stores.utils import metadata_dict_to_node

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import ImageError
from lcse_plugins.hosts.payloads import read_payload
from lcse_plugins.hosts.reranking import usable_vector
from lcse_plugins.hosts.result_metadata import METADATA_KEY, ResultMetadata
from lcse_plugins.hosts.text_vectors import StoredResult
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.keys import find_picture, holds_picture
from lcse_plugins.images.locations import ImageAccess, ImageLocation, is_web_url, resolve_path
from lcse_plugins.scoring.results import Ranked

__all__ = ["image_vectors", "node_of", "packed", "picture_of", "stored_result"]

logger = logging.getLogger(__name__)


def picture_of(node: BaseNode, access: ImageAccess) -> ImageLocation | None:
    """Where the picture of a node is, in its own fields or its metadata: the first place that can be read, if any."""
    path: str | None = None
    url: str | None = None
    data: str | bytes | None = None
    if isinstance(node, ImageNode):
        path, url, data = node.image_path, node.image_url, node.image
    elif isinstance(node, Node) and (resource := node.image_resource) is not None:
        path, url, data = str(resource.path or ""), str(resource.url or ""), resource.data
    inline = data.decode("ascii", "replace") if isinstance(data, bytes) else data
    own = {key: value for key, value in {"image_path": path, "image_url": url, "b64": inline}.items() if value}
    others = {k: v for k, v in node.metadata.items() if str(v) not in own.values() and k != METADATA_KEY}
    return find_picture({**others, **own}, access=access)


def image_vectors(
    nodes: Sequence[BaseNode],
    pictures: Sequence[ImageLocation | None],
    *,
    cache: ImageVectorCache,
    access: ImageAccess,
    stored: Mapping[str, Any],
) -> tuple[list[FloatArray | ImageError], int]:
    """The (d,) image vector of each node, or why it has none; and how many pictures had to be read.

    It is the node's own embedding, else one that is stored, else made of the picture.
    """
    dimension = cache.encoder.dimension
    found: dict[int, FloatArray | ImageError] = {}
    reading: dict[int, ImageLocation] = {}
    for i, (node, picture) in enumerate(zip(nodes, pictures, strict=True)):
        vectors = (usable_vector(one, dimension) for one in (node.embedding, stored.get(node.node_id)))
        vector = next((one for one in vectors if one is not None), None)
        if picture is None and not isinstance(node, ImageNode):
            found[i] = ImageError(f"node {node.node_id}", "has no picture")
        elif vector is not None:
            found[i] = vector
        elif picture is not None:
            reading[i] = picture
        else:
            reason = f"has neither a picture nor a usable embedding of {dimension} dimensions"
            found[i] = ImageError(f"node {node.node_id}", reason)
    if reading:
        found.update(zip(reading, cache.vectors_at(list(reading.values()), access=access), strict=True))
    return [found[i] for i in range(len(nodes))], len(reading)


def stored_result(node: BaseNode, vector: FloatArray | None, picture: ImageLocation | None) -> StoredResult:
    """A node as it is stored with a vector: by which text, and of which picture it should be."""
    return StoredResult(f"node {node.node_id}", vector, node.get_content(MetadataMode.EMBED), picture)


def packed(node: BaseNode, score: float | None, told: ResultMetadata) -> NodeWithScore:
    """A copy with a new score and the reason for it, which no model gets to see."""
    hidden = {
        name: [*dict.fromkeys([*getattr(node, name), METADATA_KEY])]
        for name in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")
    }
    copied = node.model_copy(update={"metadata": {**node.metadata, METADATA_KEY: told}, **hidden})
    return NodeWithScore(node=copied, score=score)


def node_of(point: Ranked, access: ImageAccess) -> BaseNode:
    """The node that llama-index-vector-stores-qdrant wrote; else an image node with the payload as metadata.

    The picture is the one the payload names, if `access` allows to read it. Models see no metadata that are pictures.
    """
    payload = dict(point.candidate.payload or {})
    if "_node_content" in payload:
        try:
            return metadata_dict_to_node(payload)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            logger.warning("point %s holds a damaged node, so its payload is shown instead: %s", point.id, error)
            payload = {key: value for key, value in payload.items() if not key.startswith("_node_")}
    stored = read_payload(payload)
    hidden = [key for key, value in stored.metadata.items() if holds_picture(value)]
    return ImageNode(
        id_=str(point.id),
        text="" if holds_picture(stored.text) else stored.text,
        metadata=stored.metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
        **_image_field(str(find_picture(stored.metadata, stored.text, access=access) or ""), access),
    )


def _image_field(picture: str, access: ImageAccess) -> dict[str, str]:
    """The field of an image node that a picture goes into; LlamaIndex reads it, so it must be one that may be read."""
    if holds_picture(picture):
        return {"image": picture.partition(",")[2]}
    if is_web_url(picture):
        return {"image_url": picture} if access.allow_urls else {}
    if not picture or access.root is None:
        return {"image_path": picture} if picture else {}
    try:
        return {"image_path": str(resolve_path(picture, access))}
    except ImageError:
        return {}
