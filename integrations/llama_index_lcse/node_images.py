"""Unpack: where a node's picture is, and its vector."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from llama_index.core.schema import BaseNode, ImageNode, Node
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.hosts.stored_vectors import usable_vector
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.keys import picture_in
from lcse_plugins.images.locations import ImageAccess, ImageLocation

__all__ = ["VectorLookup", "alook_up", "is_image", "look_up", "node_vectors", "picture_of", "without_vector"]

VectorLookup: TypeAlias = BasePydanticVectorStore | Callable[[Sequence[str]], Mapping[str, Sequence[float]]]
"""Where stored vectors are found: a vector store, or a function from node ids to the vectors it knows."""


def picture_of(node: BaseNode) -> ImageLocation | None:
    """Where the picture of a node is; None for a node that has none.

    Looked for in `image`, `image_path` and `image_url`, in `image_resource`, and in its metadata, as `picture_in` of
    `lcse_plugins.images.keys` does.
    """
    if isinstance(node, ImageNode):
        if node.image:
            return _inline(node.image)
        if node.image_path or node.image_url:
            return node.image_path or str(node.image_url)
    resource = node.image_resource if isinstance(node, Node) else None
    if resource is not None:
        if resource.data:
            return _inline(resource.data.decode("ascii", "replace"))
        if resource.path or resource.url:
            return resource.path or str(resource.url)
    return picture_in(node.metadata)


def is_image(node: BaseNode) -> bool:
    """Whether a node is one to rank: it has a picture, or is an image node, whose vector may be all there is."""
    return isinstance(node, ImageNode) or picture_of(node) is not None


def without_vector(nodes: Sequence[BaseNode], *, dimension: int) -> list[str]:
    """Ids of the image nodes that carry no usable vector of that length themselves: those to look up."""
    return [n.node_id for n in nodes if is_image(n) and _usable(n.embedding, dimension) is None]


def look_up(stored: VectorLookup, node_ids: list[str]) -> Mapping[str, Any]:
    """The vectors that are stored for some of the ids.

    Raises:
        InvalidOption: the store cannot give them back.
    """
    if isinstance(stored, SimpleVectorStore):
        return stored.data.embedding_dict
    if not isinstance(stored, BasePydanticVectorStore):
        return stored(node_ids)
    try:
        nodes = stored.get_nodes(node_ids=node_ids) if node_ids else []
    except NotImplementedError as error:
        raise InvalidOption(
            f"{type(stored).__name__} does not give nodes back; pass a function from node ids to vectors instead"
        ) from error
    return {node.node_id: node.embedding for node in nodes}


async def alook_up(stored: VectorLookup, node_ids: list[str]) -> Mapping[str, Any]:
    """As `look_up`, off the event loop; a store with nothing but an asynchronous client is awaited."""
    if isinstance(stored, SimpleVectorStore) or not isinstance(stored, BasePydanticVectorStore) or stored.client:
        return await asyncio.to_thread(look_up, stored, node_ids)
    nodes = await stored.aget_nodes(node_ids=node_ids) if node_ids else []
    return {node.node_id: node.embedding for node in nodes}


def node_vectors(
    nodes: Sequence[BaseNode], *, cache: ImageVectorCache, access: ImageAccess, stored: Mapping[str, Any]
) -> list[FloatArray | ImageError]:
    """The (d,) image vector of each node, or the reason why it has none.

    Taken from the node's own embedding, else from `stored`, each only if it has the length of the encoder's vectors
    and is a usable vector; else from the picture, which `cache` encodes unless it knows it.
    """
    dimension = cache.encoder.dimension
    found: dict[int, FloatArray | ImageError] = {}
    reading: dict[int, ImageLocation] = {}
    for i, node in enumerate(nodes):
        picture = picture_of(node)
        if picture is None and not isinstance(node, ImageNode):
            found[i] = ImageError(f"node {node.node_id}", "has no picture")
        elif (own := _usable(node.embedding, dimension)) is not None:
            found[i] = own
        elif (known := _usable(stored.get(node.node_id), dimension)) is not None:
            found[i] = known
        elif picture is not None:
            reading[i] = picture
        else:
            reason = f"has neither a picture nor a usable embedding of {dimension} dimensions"
            found[i] = ImageError(f"node {node.node_id}", reason)
    found.update(zip(reading, cache.vectors_at(list(reading.values()), access=access), strict=True))
    return [found[i] for i in range(len(nodes))]


def _inline(base64: str) -> str:
    return base64 if base64.startswith("data:") else f"data:;base64,{base64}"


def _usable(vector: Any, dimension: int) -> FloatArray | None:
    return None if vector is None or len(vector) != dimension else usable_vector(vector)
