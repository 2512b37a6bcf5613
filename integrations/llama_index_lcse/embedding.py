"""`LcseEmbedding`, an encoder as LlamaIndex's embedding; `EmbeddingEncoder`, LlamaIndex's embedding as an encoder."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from io import BytesIO
from typing import Annotated, Any

from llama_index.core.bridge.pydantic import ConfigDict, Field, PlainSerializer, PrivateAttr, model_validator
from llama_index.core.embeddings import MultiModalEmbedding
from llama_index.core.schema import BaseNode, ImageType, MetadataMode
from PIL.Image import Image
from pydantic import BeforeValidator, SkipValidation

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.hosts.checked_options import CheckedOptions
from lcse_plugins.hosts.embedding_encoder import CalibrationChoice, EmbeddingEncoderBase
from lcse_plugins.hosts.pictures import open_image
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.keys import find_picture
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation
from lcse_plugins.scorer import LogicScorer
from llama_index_lcse.nodes import picture_of

__all__ = ["EmbeddingEncoder", "LcseEmbedding", "ScorerField", "embedding_name"]

logger = logging.getLogger(__name__)

_METADATA_LINE = re.compile(r"(\w+): (.+)")


def _scorer_name(scorer: LogicScorer | Encoder | str) -> str:
    """The name that was given, or the identity of the encoder."""
    if isinstance(scorer, str):
        return scorer
    return (scorer.encoder if isinstance(scorer, LogicScorer) else scorer).encoder_id


def _checked_scorer(scorer: Any) -> Any:
    if isinstance(scorer, str | LogicScorer | Encoder):
        return scorer
    raise InvalidOption(
        f"scorer is a LogicScorer, or an encoder such as 'starter' or EmbeddingEncoder(…), not {type(scorer).__name__}"
    )


ScorerField = Annotated[
    LogicScorer | Encoder | str,
    SkipValidation,
    BeforeValidator(_checked_scorer),
    PlainSerializer(_scorer_name, return_type=str),
]
"""A scorer, an encoder or an encoder's name; written as a name. Reading back the name of an object is refused."""


class LcseEmbedding(CheckedOptions, MultiModalEmbedding):
    """A LlamaIndex embedding of texts and images by any encoder of `lcse_plugins`.

        >>> documents = SimpleDirectoryReader("photos").load_data()
        >>> index = VectorStoreIndex.from_documents(documents, embed_model=LcseEmbedding())

    LlamaIndex hands an embedding class only the *text* of an image node. So a text whose metadata lines name a picture
    that can be read ("file_path: /photos/dog.jpg", as LlamaIndex writes them) is embedded as that picture. Run as a
    transformation, `IngestionPipeline(transformations=[LcseEmbedding()])`, it sees the nodes themselves: those with a
    picture get its vector, and those whose picture cannot be read are left out, with a warning. Queries are always
    texts. `LogicRetriever` recognises an index made with it.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    scorer: ScorerField = Field(
        default="starter", frozen=True, description="An encoder's name, an encoder, or a LogicScorer with one."
    )
    image_access: ImageAccess = Field(
        default=DEFAULT_ACCESS, frozen=True, description="Where pictures may be read from: a root, URLs or not, limits."
    )
    _encoder: Encoder = PrivateAttr()

    @model_validator(mode="after")
    def _named_after_encoder(self) -> LcseEmbedding:
        name = _scorer_name(self.scorer)
        if "model_name" in self.model_fields_set and self.model_name != name:
            raise InvalidOption(
                f"model_name is the encoder's, {name!r}, not {self.model_name!r}; choose the encoder with scorer=…"
            )
        self.model_name = name
        self._encoder = LogicScorer.of(self.scorer).encoder
        return self

    @classmethod
    def class_name(cls) -> str:
        """Name under which the component is written."""
        return "LcseEmbedding"

    @property
    def encoder(self) -> Encoder:
        """The encoder."""
        return self._encoder

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """Nodes with their embeddings, as a transformation gives them back; broken pictures are left out."""
        places = [picture_of(node, self.image_access) for node in nodes]
        vectors = self._vectors(places, [node.get_content(MetadataMode.EMBED) for node in nodes])
        kept = []
        for node, vector in zip(nodes, vectors, strict=True):
            if isinstance(vector, ImageError):
                logger.warning("node %s is left out: %s", node.node_id, vector)
                continue
            node.embedding = vector.tolist()
            kept.append(node)
        return kept

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """As the call, off the event loop."""
        return await asyncio.to_thread(self.__call__, nodes, **kwargs)

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._encoder.encode_texts([query])[0].tolist()
        return vector

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors = self._vectors([self._picture_named_by(text) for text in texts], texts)
        for place, vector in enumerate(vectors):
            if isinstance(vector, ImageError):
                logger.warning("embedded as a text, not as the picture that it names: %s", vector)
                vectors[place] = self._encoder.encode_texts([texts[place]])[0]
        return [vector.tolist() for vector in vectors]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_image_embeddings(self, img_file_paths: Sequence[ImageType | ImageLocation]) -> list[list[float]]:
        given = (one.getvalue() if isinstance(one, BytesIO) else one for one in img_file_paths)
        images = (open_image(one, access=self.image_access) for one in given)
        rows: list[list[float]] = self._encoder.encode_images(images, batch_size=self.embed_batch_size).tolist()
        return rows

    def _get_image_embedding(self, img_file_path: ImageType) -> list[float]:
        return self._get_image_embeddings([img_file_path])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_image_embedding(self, img_file_path: ImageType) -> list[float]:
        return await asyncio.to_thread(self._get_image_embedding, img_file_path)

    def _picture_named_by(self, text: str) -> ImageLocation | None:
        """The picture that the metadata lines at the head of a document's text name."""
        lines = map(_METADATA_LINE.fullmatch, text.partition("\n\n")[0].split("\n"))
        return find_picture({line[1]: line[2] for line in lines if line}, text, access=self.image_access)

    def _vectors(self, places: Sequence[ImageLocation | None], texts: Sequence[str]) -> list[Any]:
        """For each place the vector of its picture, or an error; of the text where there is no place."""
        words = [text for text, place in zip(texts, places, strict=True) if place is None]
        cache = ImageVectorCache(self._encoder, capacity=1, batch_size=self.embed_batch_size)
        images = iter(cache.vectors_at([place for place in places if place is not None], access=self.image_access))
        embedded = iter(self._encoder.encode_texts(words) if words else ())
        return [next(embedded) if place is None else next(images) for place in places]


class EmbeddingEncoder(EmbeddingEncoderBase):
    """An encoder made of any LlamaIndex `MultiModalEmbedding`, such as `ClipEmbedding`.

        >>> LogicRetriever.from_index(index, scorer=EmbeddingEncoder(ClipEmbedding()), top_n=5)

    Vectors are brought to unit length. `calibration` is "clip", "siglip2" or a `Calibration`; for models of other
    families `estimate_calibration(encoder, image_vectors)` finds one without labels. A model that embeds no pictures is
    refused with `InvalidOption`.
    """

    def __init__(self, embedding: MultiModalEmbedding, *, calibration: CalibrationChoice = "clip") -> None:
        if not isinstance(embedding, MultiModalEmbedding):
            raise InvalidOption(
                f"an encoder needs a model that embeds texts and pictures, and {type(embedding).__name__} is no "
                "MultiModalEmbedding; use ClipEmbedding, or LogicScorer('open_clip:…')"
            )
        super().__init__(embedding_name(embedding), calibration=calibration, batch_size=embedding.embed_batch_size)
        self.embedding = embedding

    def _embed_texts(self, texts: list[str]) -> Any:
        return self.embedding.get_text_embedding_batch(texts)

    def _embed_images(self, images: list[Image]) -> Any:
        files = [BytesIO() for _ in images]
        for image, file in zip(images, files, strict=True):
            image.save(file, "PNG", compress_level=1)
            file.seek(0)
        return self.embedding.get_image_embedding_batch(list(files))


def embedding_name(embedding: Any) -> str:
    """Identity of an embedding model: its encoder's for `LcseEmbedding`, else its class and model."""
    if isinstance(embedding, LcseEmbedding):
        return embedding.encoder.encoder_id
    return f"llama-index:{type(embedding).__name__}:{getattr(embedding, 'model_name', 'unknown')}"
