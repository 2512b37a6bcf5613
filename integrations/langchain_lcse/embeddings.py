"""`LcseEmbeddings`: an encoder as LangChain embeddings. `EmbeddingEncoder`: LangChain embeddings as an encoder."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

from langchain_core.embeddings import Embeddings
from PIL.Image import Image

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.hosts.embedding_encoder import CalibrationChoice, EmbeddingEncoderBase
from lcse_plugins.hosts.pictures import open_image
from lcse_plugins.images.keys import find_picture, named_picture
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, ImageLocation
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.arguments import check_choice, pictures_of
from lcse_plugins.scoring.config import Mode

__all__ = ["EmbeddingEncoder", "LcseEmbeddings"]

logger = logging.getLogger(__name__)

DocumentKind = Literal["texts", "images"]


class LcseEmbeddings(Embeddings):
    """Texts and pictures as unit vectors of one encoder; `LogicRetriever` takes its scorer from here.

        >>> store = InMemoryVectorStore(LcseEmbeddings("starter"))
        >>> add_images(store, ["beach.jpg", "street.jpg"])

    Args:
        scorer: A `LogicScorer`, an encoder or an encoder's name.
        mode: How queries are scored; the scorer's own way by default.
        documents: What page contents are to `embed_documents`: `texts`, or `images`. Then each is the path, URL, data
            URI or base64 of a picture, so that any vector store can be filled with pictures.
        image_access: What may be read to get a picture.
    """

    def __init__(
        self,
        scorer: LogicScorer | Encoder | str = "starter",
        *,
        mode: Mode | None = None,
        documents: DocumentKind = "texts",
        image_access: ImageAccess = DEFAULT_ACCESS,
    ) -> None:
        check_choice("documents", documents, get_args(DocumentKind))
        self.scorer = LogicScorer.of(scorer, mode=mode)
        self.documents = documents
        self.image_access = image_access
        self._told = False

    @property
    def encoder(self) -> Encoder:
        """What encodes texts and pictures."""
        return self.scorer.encoder

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text."""
        vector: list[float] = self.encoder.encode_texts([text])[0].tolist()
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of page contents: of the texts, or of the pictures they name.

        Raises:
            ImageError: they are to be pictures, and one is not or cannot be read.
        """
        if self.documents == "images" and texts != ["dummy_text"]:  # langchain-qdrant's, to learn the vectors' length
            try:
                return self.embed_image([find_picture({}, text, access=self.image_access) or text for text in texts])
            except ImageError as error:
                hint = "with documents='images' every page content is a picture; add_images takes captions too"
                raise ImageError(error.source, f"{error.reason}; {hint}") from error
        rows: list[list[float]] = self.encoder.encode_texts(texts).tolist()
        picture = None if self._told else next((text for text in texts if named_picture(text) is not None), None)
        if picture is not None:
            self._told = True
            logger.warning(
                "%.60r names a picture and is embedded as a text; use add_images, or documents='images'", picture
            )
        return rows

    def embed_image(self, uris: Sequence[ImageLocation]) -> list[list[float]]:
        """The vectors of pictures: paths, URLs, data URIs or bytes. `Chroma.add_images` calls this.

        Raises:
            ImageError: a picture cannot be read.
        """
        pictures = (open_image(uri, access=self.image_access) for uri in pictures_of(uris))
        rows: list[list[float]] = self.encoder.encode_images(pictures).tolist()
        return rows


class EmbeddingEncoder(EmbeddingEncoderBase):
    """Any LangChain embeddings that have `embed_image` as an encoder: your own CLIP in one line.

        >>> clip = EmbeddingEncoder(OpenCLIPEmbeddings(model_name=…, checkpoint=…), calibration="clip")
        >>> LogicRetriever(source=store, scorer=LogicScorer(clip))

    Vectors are brought to unit length. Texts go through `embed_documents`; pictures are written to a temporary folder
    and go through `embed_image(paths)`.

    Args:
        embeddings: Embeds texts and pictures into one space.
        calibration: "clip", "siglip2", or a `Calibration` fitted to these embeddings.
        name: Identity of model and weights; by default its class, model name and checkpoint.

    Raises:
        InvalidOption: the embeddings have no `embed_image`, or there is no such calibration.
    """

    def __init__(
        self, embeddings: Embeddings, *, calibration: CalibrationChoice = "clip", name: str | None = None
    ) -> None:
        if not callable(getattr(embeddings, "embed_image", None)):
            raise InvalidOption(f"{type(embeddings).__name__} has no embed_image: it embeds texts only")
        super().__init__(f"langchain:{name or _model_name(embeddings)}", calibration=calibration)
        self.embeddings = embeddings

    def _embed_texts(self, texts: list[str]) -> Any:
        return self.embeddings.embed_documents(texts)

    def _embed_images(self, images: list[Image]) -> Any:
        with TemporaryDirectory() as folder:
            paths = [str(Path(folder, f"{place}.png")) for place in range(len(images))]
            for path, image in zip(paths, images, strict=True):
                image.convert("RGB").save(path, compress_level=1)
            return self.embeddings.embed_image(paths)  # type: ignore[attr-defined]


def _model_name(embeddings: Embeddings) -> str:
    named = (getattr(embeddings, name, None) for name in ("model_name", "model", "model_id"))
    parts = [next((name for name in named if isinstance(name, str)), ""), getattr(embeddings, "checkpoint", "")]
    return "/".join([type(embeddings).__name__, *(part for part in parts if isinstance(part, str) and part)])
