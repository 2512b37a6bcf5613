"""`EncoderEmbedding`: index images and texts with the encoder that LCSE scores with."""

from __future__ import annotations

import asyncio
from io import BytesIO
from typing import Any

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr, model_validator
from llama_index.core.embeddings import MultiModalEmbedding
from llama_index.core.schema import ImageType

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.encoders.registry import load_encoder
from lcse_plugins.errors import InvalidOption
from lcse_plugins.hosts.checked_options import CheckedOptions
from lcse_plugins.hosts.made_once import MadeOnce
from lcse_plugins.hosts.pictures import open_image
from lcse_plugins.images.locations import DEFAULT_ACCESS
from lcse_plugins.off_loop import compute
from llama_index_lcse.fields import AccessField, EncoderField, encoder_name, without_class_name

__all__ = ["EncoderEmbedding"]


class EncoderEmbedding(CheckedOptions, MultiModalEmbedding):
    """A LlamaIndex embedding of texts and images by any encoder of `lcse_plugins`.

        >>> MultiModalVectorStoreIndex.from_documents(images, image_embed_model=EncoderEmbedding(), embed_model=…)

    `LogicRetriever` recognises an index made with it. Mind that LlamaIndex, building any vector index, leaves out nodes
    with neither text nor metadata, images too: give image nodes a text; the name of the file will do.

    Args:
        encoder: A name such as "starter" or "open_clip:ViT-B-32-quickgelu/openai", or an encoder object.
        image_access: What may be read to get a picture: no URLs, and 32 MiB of a file, unless it says otherwise.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    encoder: EncoderField = Field(default="starter", description="Name of the encoder, or the encoder itself.")
    image_access: AccessField = Field(
        default=DEFAULT_ACCESS, description="Where pictures may be read from: a root for paths, URLs or not, limits."
    )
    _encoder: MadeOnce[Encoder] = PrivateAttr(default_factory=MadeOnce)

    @model_validator(mode="before")
    @classmethod
    def _fields_of(cls, written: Any) -> Any:
        return without_class_name(written, cls.class_name())

    @model_validator(mode="after")
    def _named_after_encoder(self) -> EncoderEmbedding:
        name = encoder_name(self.encoder)
        if "model_name" in self.model_fields_set and self.model_name != name:
            raise InvalidOption(
                f"model_name is the encoder's, {name!r}, not {self.model_name!r}; choose the encoder with encoder=…"
            )
        self.model_name = name
        return self

    @classmethod
    def class_name(cls) -> str:
        """Name under which the component is written."""
        return "EncoderEmbedding"

    @property
    def encoder_id(self) -> str:
        """Identity of the encoder, loaded if it is not yet."""
        return self._loaded().encoder_id

    def _loaded(self) -> Encoder:
        return self._encoder.get(self.encoder, lambda: load_encoder(self.encoder))

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return _lists(self._loaded().encode_texts(texts))

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embeddings([query])[0]

    def _get_image_embeddings(self, img_file_paths: list[ImageType]) -> list[list[float]]:
        images = (
            open_image(image.getvalue() if isinstance(image, BytesIO) else image, access=self.image_access)
            for image in img_file_paths
        )
        return _lists(self._loaded().encode_images(images, batch_size=self.embed_batch_size))

    def _get_image_embedding(self, img_file_path: ImageType) -> list[float]:
        return self._get_image_embeddings([img_file_path])[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await compute(self._get_text_embeddings, texts)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await compute(self._get_text_embedding, text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await compute(self._get_query_embedding, query)

    async def _aget_image_embeddings(self, img_file_paths: list[ImageType]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_image_embeddings, img_file_paths)

    async def _aget_image_embedding(self, img_file_path: ImageType) -> list[float]:
        return await asyncio.to_thread(self._get_image_embedding, img_file_path)


def _lists(rows: Any) -> list[list[float]]:
    lists: list[list[float]] = rows.tolist()
    return lists
