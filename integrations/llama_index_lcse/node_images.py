"""Unpack: where a node's picture is, and its vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from llama_index.core.schema import BaseNode, ImageNode, Node
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from lcse_plugins.encoders.images import names_picture
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.image_cache import ImageVectorCache
from lcse_plugins.image_sources import ImageAccess, ImageLocation, read_images

__all__ = ["VectorLookup", "node_vectors", "picture_of"]

VectorLookup: TypeAlias = BasePydanticVectorStore | Callable[[Sequence[str]], Mapping[str, Sequence[float]]]
"""Where stored vectors are found: a vector store, or a function from node ids to the vectors it knows."""


def picture_of(node: BaseNode) -> ImageLocation | None:
    """Where the picture of a node is; None for a node that has none.

    Looked for in `image`, `image_path` and `image_url`, in `image_resource`, and in `metadata["file_path"]` where that
    names a picture.
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
    path = node.metadata.get("file_path")
    return path if isinstance(path, str | Path) and names_picture(path) else None


def node_vectors(
    nodes: Sequence[BaseNode], *, cache: ImageVectorCache, access: ImageAccess, stored: VectorLookup | None = None
) -> list[FloatArray | ImageError]:
    """The (d,) image vector of each node, or the reason why it has none.

    Taken from the node's own embedding, else from `stored`, each only if it has the length of the encoder's vectors
    and is a usable vector; else from the picture, which `cache` encodes unless it knows it.
    """
    dimension = cache.encoder.dimension
    pictures = [picture_of(node) for node in nodes]
    found: dict[int, FloatArray | ImageError] = {}
    for i, node in enumerate(nodes):
        if pictures[i] is None and not isinstance(node, ImageNode):
            found[i] = ImageError(f"node {node.node_id}", "has no picture")
        elif (own := _usable(node.embedding, dimension)) is not None:
            found[i] = own
    if stored is not None:
        known = _looked_up(stored, [nodes[i].node_id for i in _absent(found, nodes)])
        for i in _absent(found, nodes):
            if (vector := _usable(known.get(nodes[i].node_id), dimension)) is not None:
                found[i] = vector
    reading = {i: picture for i in _absent(found, nodes) if (picture := pictures[i]) is not None}
    found.update(zip(reading, cache.vectors(read_images(reading.values(), access=access)), strict=True))
    found.update({i: ImageError(f"node {nodes[i].node_id}", _no_vector(dimension)) for i in _absent(found, nodes)})
    return [found[i] for i in range(len(nodes))]


def _absent(found: Mapping[int, Any], nodes: Sequence[BaseNode]) -> list[int]:
    return [i for i in range(len(nodes)) if i not in found]


def _no_vector(dimension: int) -> str:
    return f"has neither a picture nor a usable embedding of {dimension} dimensions"


def _inline(base64: str) -> str:
    return base64 if base64.startswith("data:") else f"data:;base64,{base64}"


def _usable(vector: Any, dimension: int) -> FloatArray | None:
    if vector is None or len(vector) != dimension:
        return None
    with np.errstate(over="ignore"):
        row = np.asarray(vector, dtype=np.float32)
    return row if np.isfinite(row).all() and row.any() else None


def _looked_up(stored: VectorLookup, node_ids: list[str]) -> Mapping[str, Any]:
    if not node_ids:
        return {}
    if isinstance(stored, SimpleVectorStore):
        return stored.data.embedding_dict
    if not isinstance(stored, BasePydanticVectorStore):
        return stored(node_ids)
    try:
        nodes: Iterable[BaseNode] = stored.get_nodes(node_ids=node_ids)
    except NotImplementedError as error:
        raise InvalidOption(
            f"{type(stored).__name__} does not give nodes back; pass a function from node ids to vectors instead"
        ) from error
    return {node.node_id: node.embedding for node in nodes}
