"""The encoder as LangChain embeddings, so that a store is filled and searched in one space."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal, get_args

from langchain_core.embeddings import Embeddings

from lcse_plugins.encoders.batches import batched
from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.encoders.registry import load_encoder
from lcse_plugins.errors import InvalidOption
from lcse_plugins.hosts.pictures import open_image
from lcse_plugins.images.keys import named_picture
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation
from lcse_plugins.scoring.arguments import check_count, pictures_of, texts_of

__all__ = ["LcseEmbeddings"]

DocumentKind = Literal["texts", "images"]


class LcseEmbeddings(Embeddings):
    """Texts and pictures as unit vectors of one encoder.

        >>> store = InMemoryVectorStore(LcseEmbeddings("starter", documents="images"))
        >>> store.add_texts(["beach.jpg", "street.jpg"])

    Args:
        encoder: An encoder or its name.
        documents: What the page contents of a store are to `embed_documents`: `texts`, or `images`. Then one that
            names a picture (a path or URL with a picture's suffix, a data URI) stands for it, and any vector store
            can be filled with pictures; one that does not is still a text.
        batch_size: How many are encoded at a time, which bounds memory.
        image_access: What may be read to get a picture.
    """

    def __init__(
        self,
        encoder: Encoder | str = "starter",
        *,
        documents: DocumentKind = "texts",
        batch_size: int = 32,
        image_access: ImageAccess = DEFAULT_ACCESS,
    ) -> None:
        if documents not in get_args(DocumentKind):
            raise InvalidOption(f"documents are {' or '.join(get_args(DocumentKind))}, not {documents!r}")
        check_count("batch_size", batch_size)
        self.encoder = load_encoder(encoder)
        self.documents = documents
        self.batch_size = batch_size
        self.image_access = image_access

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text."""
        return self._embed_texts([text])[0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of page contents: of the texts, or of the pictures they name."""
        if self.documents == "texts":
            return self._embed_texts(texts)
        places = [named_picture(text) for text in texts]
        pictures = iter(self.embed_images([place for place in places if place is not None]))
        rest = iter(self._embed_texts([text for text, place in zip(texts, places, strict=True) if place is None]))
        return [next(rest if place is None else pictures) for place in places]

    def embed_images(self, images: Sequence[ImageLocation]) -> list[list[float]]:
        """The vectors of pictures.

        Raises:
            ImageError: a picture cannot be read.
        """
        rows: list[list[float]] = []
        for batch in batched(pictures_of(images), self.batch_size):
            pictures = (open_image(image, access=self.image_access) for image in batch)
            rows.extend(self.encoder.encode_images(pictures, batch_size=self.batch_size).tolist())
        return rows

    async def aembed_images(self, images: Sequence[ImageLocation]) -> list[list[float]]:
        """As `embed_images`, in a thread."""
        return await asyncio.to_thread(self.embed_images, images)

    def embed_image(self, uris: list[str]) -> list[list[float]]:
        """As `embed_images`, by the name `Chroma.add_images` calls."""
        return self.embed_images(uris)

    def _embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        rows: list[list[float]] = []
        for batch in batched(texts_of(texts), self.batch_size):
            rows.extend(self.encoder.encode_texts(batch).tolist())
        return rows
