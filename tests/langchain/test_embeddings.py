"""The encoder as embeddings, and embeddings as an encoder."""

from __future__ import annotations

import base64
import logging
from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import EmbeddingEncoder, LcseEmbeddings, LogicRetriever, add_images
from PIL import Image

from lcse_plugins import Calibration, LogicScorer
from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.testing import ToyEncoder


async def test_texts_and_pictures_are_unit_vectors(encoder: ToyEncoder, pictures: list[Path]) -> None:
    embeddings, texts = LcseEmbeddings(encoder), ["dog", "cat", "umbrella"]
    rows = embeddings.embed_documents(texts)
    np.testing.assert_allclose(rows, encoder.encode_texts(texts), atol=1e-6)
    assert embeddings.embed_query("cat") == rows[1]
    assert await embeddings.aembed_documents(texts) == rows
    path = pictures[0]
    uri = "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
    seen = embeddings.embed_image([path, str(path), path.read_bytes(), uri])
    assert seen == [seen[0]] * 4


def test_wrong_arguments_are_refused(encoder: ToyEncoder, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="texts, images"):
        LcseEmbeddings(encoder, documents="both")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="list of strings"):
        LcseEmbeddings(encoder).embed_documents("dog")  # type: ignore[arg-type]
    with pytest.raises(ImageError, match=r"missing\.png: there is no such file"):
        LcseEmbeddings(encoder).embed_image([tmp_path / "missing.png"])


@pytest.mark.parametrize("name", ["photo.HEIC", "photo", "logo.svg", "https://example.org/dog?id=3", "a dog"])
def test_what_is_to_be_a_picture_is_never_embedded_as_a_text(name: str, encoder: ToyEncoder) -> None:
    with pytest.raises(ImageError, match="every page content is a picture"):
        LcseEmbeddings(encoder, documents="images").embed_documents([name])


def test_a_pictures_name_embedded_as_a_text_is_told_once(encoder: ToyEncoder, caplog: pytest.LogCaptureFixture) -> None:
    embeddings = LcseEmbeddings(encoder)
    with caplog.at_level(logging.WARNING):
        embeddings.embed_documents(["a dog", "Dog.HEIC"])
        embeddings.embed_documents(["cat.png"])
    assert caplog.text.count("names a picture and is embedded as a text") == 1
    assert "Dog.HEIC" in caplog.text


class OwnClip(Embeddings):
    """A model of the user's, as langchain's OpenCLIPEmbeddings are: pictures by path, vectors of any length."""

    model_name = "ViT-tiny"
    checkpoint = "mine"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[3.0, *(7.0 if word in text else 0.1 for word in ("red", "green"))] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def embed_image(self, uris: list[str]) -> list[list[float]]:
        colours = [Image.open(uri).convert("RGB").getpixel((0, 0)) for uri in uris]
        return [[90.0, *map(float, colour[:2])] for colour in colours if isinstance(colour, tuple)]


def test_any_embeddings_with_pictures_become_an_encoder(pictures: list[Path]) -> None:
    encoder = EmbeddingEncoder(OwnClip(), calibration="clip")
    assert encoder.encoder_id == "langchain:OwnClip/ViT-tiny/mine"
    assert (encoder.dimension, encoder.calibration.beta) == (3, 30.0)
    rows = encoder.encode_images([pictures[0], pictures[1].read_bytes(), str(pictures[2])])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    store = InMemoryVectorStore(OwnClip())
    scorer = LogicScorer(EmbeddingEncoder(OwnClip(), calibration=Calibration(mu=0.9, beta=30.0)))
    add_images(store, pictures[:3], scorer=scorer)
    assert LogicRetriever(source=store, scorer=scorer).invoke("red and not green")[0].page_content == "red"


def test_embeddings_of_texts_only_are_refused() -> None:
    class TextsOnly(OwnClip):
        embed_image = None  # type: ignore[assignment]

    with pytest.raises(InvalidOption, match="TextsOnly has no embed_image"):
        EmbeddingEncoder(TextsOnly())
