"""The encoder as embeddings, and embeddings as an encoder."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_lcse import EmbeddingEncoder, LcseEmbeddings, LogicRetriever, add_images

from lcse_plugins import Calibration, Encoder, LogicScorer
from lcse_plugins.errors import EncoderError, ImageError, InvalidOption
from lcse_plugins.testing import ToyEncoder


async def test_texts_are_unit_vectors_in_batches_of_any_size(encoder: ToyEncoder) -> None:
    texts = ["dog", "cat", "umbrella"]
    for batch_size in (1, 2, 32):
        embeddings = LcseEmbeddings(encoder, batch_size=batch_size)
        rows = np.array(embeddings.embed_documents(texts))
        np.testing.assert_allclose(rows, encoder.encode_texts(texts), atol=1e-6)
        assert embeddings.embed_query("cat") == rows[1].tolist()
        assert await embeddings.aembed_documents(texts) == rows.tolist()


def test_pictures_from_paths_bytes_and_data_uris(encoder: ToyEncoder, pictures: list[Path]) -> None:
    path = pictures[0]
    uri = "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
    embeddings = LcseEmbeddings(encoder, batch_size=2)
    rows = embeddings.embed_images([path, str(path), path.read_bytes(), uri])
    assert rows == [rows[0]] * 4 == embeddings.embed_image([str(path)] * 4)


def test_wrong_arguments_are_refused(encoder: ToyEncoder, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="texts or images"):
        LcseEmbeddings(encoder, documents="both")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="batch_size"):
        LcseEmbeddings(encoder, batch_size=0)
    with pytest.raises(InvalidOption, match="list of strings"):
        LcseEmbeddings(encoder).embed_documents("dog")  # type: ignore[arg-type]
    with pytest.raises(ImageError, match=r"missing\.png: there is no such file"):
        LcseEmbeddings(encoder).embed_images([tmp_path / "missing.png"])


def test_the_scorer_is_shared_with_the_retriever(encoder: ToyEncoder) -> None:
    scorer = LogicScorer(encoder, calibration=Calibration(mu=0.1, beta=9.0))
    embeddings = LcseEmbeddings(scorer, mode="lcse")
    store = InMemoryVectorStore(embeddings)
    assert embeddings.scorer.calibration is scorer.calibration
    assert LogicRetriever(source=store).scorer is embeddings.scorer
    assert LcseEmbeddings(scorer).scorer is scorer


class OwnClip(Embeddings):
    """A model of the user's, as langchain's OpenCLIPEmbeddings are: pictures by path, vectors of any length."""

    model_name = "ViT-tiny"
    checkpoint = "mine"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[3.0, *(7.0 if word in text else 0.1 for word in ("red", "green"))] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def embed_image(self, uris: list[str]) -> list[list[float]]:
        from PIL import Image

        colours = [Image.open(uri).convert("RGB").getpixel((0, 0)) for uri in uris]
        return [[90.0, *map(float, colour[:2])] for colour in colours if isinstance(colour, tuple)]


def test_any_embeddings_with_pictures_become_an_encoder(pictures: list[Path]) -> None:
    encoder = EmbeddingEncoder(OwnClip(), calibration="clip", batch_size=2)
    assert isinstance(encoder, Encoder)
    assert encoder.encoder_id == "langchain:OwnClip/ViT-tiny/mine"
    assert (encoder.dimension, encoder.calibration.beta) == (3, 30.0)
    rows = encoder.encode_images([pictures[0], pictures[1].read_bytes(), str(pictures[2])])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    store = InMemoryVectorStore(OwnClip())
    fitted = Calibration(mu=0.9, beta=30.0)
    scorer = LogicScorer(EmbeddingEncoder(OwnClip(), calibration=fitted))
    add_images(store, pictures[:3], scorer=scorer)
    found = LogicRetriever(source=store, scorer=scorer).invoke("red and not green")
    assert found[0].page_content == "red"


def test_embeddings_that_cannot_be_an_encoder_are_refused(encoder: ToyEncoder, pictures: list[Path]) -> None:
    class TextsOnly(OwnClip):
        embed_image = None  # type: ignore[assignment]

    class Broken(OwnClip):
        def embed_image(self, uris: list[str]) -> list[list[float]]:
            return [[0.0] * 3] * len(uris)

    with pytest.raises(InvalidOption, match="TextsOnly has no embed_image"):
        EmbeddingEncoder(TextsOnly())
    with pytest.raises(InvalidOption, match="calibration"):
        EmbeddingEncoder(OwnClip(), calibration="dino")  # type: ignore[arg-type]
    with pytest.raises(EncoderError, match="zero or NaN"):
        EmbeddingEncoder(Broken(), name="broken").encode_images(pictures)
    assert EmbeddingEncoder(LcseEmbeddings(encoder)).encode_texts([]).shape[0] == 0
