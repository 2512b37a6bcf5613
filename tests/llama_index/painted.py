"""Pictures that say what they show, and an encoder that sees it: each word of a small vocabulary is a colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from llama_index.core.embeddings import MultiModalEmbedding
from llama_index.core.schema import ImageType, NodeWithScore
from llama_index.vector_stores.qdrant import QdrantVectorStore
from PIL import Image

from lcse_plugins import Candidate, LogicScorer
from lcse_plugins.encoders.protocol import FloatArray, ImageSource
from lcse_plugins.images.reading import load_image
from lcse_plugins.testing import ToyEncoder

COLOURS = {
    "umbrella": (255, 0, 0), "person": (0, 255, 0), "bench": (0, 0, 255), "car": (255, 255, 0),
    "street": (0, 255, 255), "dog": (255, 0, 255), "cat": (255, 255, 255), "sofa": (0, 0, 0),
}  # fmt: skip
WORDS = {colour: word for word, colour in COLOURS.items()}

GALLERY = (
    "umbrella person", "umbrella", "person", "umbrella bench", "person bench", "car street", "street",
    "car person street", "dog person", "cat sofa", "dog cat sofa", "dog",
)  # fmt: skip
"""What the pictures of the test collection show."""


def shown(nodes: Sequence[NodeWithScore]) -> list[str]:
    """What the pictures of nodes show, as their texts tell."""
    return [node.text for node in nodes]


def core_scores(query: str) -> dict[str, float]:
    """What the core alone makes of the whole gallery, best first."""
    encoder = PaintedEncoder()
    vectors = encoder.encode_images(painted(words) for words in GALLERY)
    candidates = [Candidate(words, vector) for words, vector in zip(GALLERY, vectors, strict=True)]
    return {str(item.id): item.score for item in LogicScorer(encoder).rank(query, candidates)}


def painted(shown: str) -> bytes:
    """A PNG of one stripe for each word."""
    colours = [COLOURS[word] for word in shown.split()]
    stream = BytesIO()
    Image.fromarray(np.repeat(np.array([colours], dtype=np.uint8), 8, axis=0).repeat(8, axis=1)).save(stream, "PNG")
    return stream.getvalue()


class PaintedEncoder(ToyEncoder):
    """Sees the words of painted pictures, from paths, bytes or opened images alike."""

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        rows = []
        for image in images:
            colours = np.asarray(load_image(image))[0].tolist()
            rows.append(self._sum(" ".join(dict.fromkeys(WORDS[r, g, b] for r, g, b in colours))))
        self.images_encoded += len(rows)
        return self._rows(rows)


class LongEmbedding(MultiModalEmbedding):
    """An embedding class as others write them: it sees as the painted encoder does, with vectors of any length."""

    model_name: str = "long"

    def _get_text_embedding(self, text: str) -> list[float]:
        return [7.0 * value for value in PaintedEncoder().encode_texts([text])[0].tolist()]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    def _get_image_embedding(self, img_file_path: ImageType) -> list[float]:
        with Image.open(img_file_path) as picture:
            return [3.0 * value for value in PaintedEncoder().encode_images([picture])[0].tolist()]

    async def _aget_image_embedding(self, img_file_path: ImageType) -> list[float]:
        return self._get_image_embedding(img_file_path)


class SilentStore(QdrantVectorStore):
    """A store that gives no vectors back."""

    if TYPE_CHECKING:  # its fields hide its constructor

        def __init__(self, *_: Any, **__: Any) -> None: ...

    def get_nodes(self, *_: Any, **__: Any) -> list[Any]:
        raise NotImplementedError
