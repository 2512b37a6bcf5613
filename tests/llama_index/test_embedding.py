from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import BaseNode, Document, ImageDocument, ImageNode, TextNode
from llama_index_lcse import EmbeddingEncoder, LcseEmbedding, LogicRetriever

from lcse_plugins import Calibration, Encoder, ImageAccess, LogicScorer
from lcse_plugins.errors import CalibrationMismatch, EncoderError, ImageError, InvalidOption, UnknownEncoder
from tests.llama_index.painted import GALLERY, LongEmbedding, PaintedEncoder, painted


@pytest.fixture
def dog(tmp_path: Path) -> str:
    path = tmp_path / "00.png"
    path.write_bytes(painted("dog"))
    return str(path)


async def test_vectors_are_the_encoders(dog: str, encoder: PaintedEncoder) -> None:
    model = LcseEmbedding(scorer=encoder)
    text = encoder.encode_texts(["dog"])[0]
    for vector in (
        model.get_query_embedding("dog"),
        model.get_text_embedding("dog"),
        model.get_text_embedding_batch(["cat", "dog"])[1],
        model.get_image_embedding(dog),
        model.get_image_embedding(BytesIO(painted("dog"))),
        model.get_image_embedding_batch([BytesIO(painted("cat")), dog])[1],
        await model.aget_query_embedding("dog"),
        await model.aget_text_embedding("dog"),
        (await model.aget_text_embedding_batch(["cat", "dog"]))[1],
        await model.aget_image_embedding(dog),
    ):
        np.testing.assert_allclose(vector, text, atol=1e-6)


def test_what_cannot_be_used_is_refused(dog: str, encoder: PaintedEncoder) -> None:
    assert LcseEmbedding(scorer=encoder).model_name == encoder.encoder_id
    with pytest.raises(InvalidOption, match="choose the encoder with scorer="):
        LcseEmbedding(model_name="open_clip:ViT-B-32/openai")
    with pytest.raises(UnknownEncoder):
        LcseEmbedding(scorer="nonsense")
    with pytest.raises(ImageError, match=r"https://example\.org/dog\.png: .*allow_urls"):
        LcseEmbedding(scorer=encoder).get_image_embedding("https://example.org/dog.png")
    confined = LcseEmbedding(scorer=encoder, image_access=ImageAccess(root=str(Path(dog).parent / "inside")))
    with pytest.raises(ImageError, match="outside the folder"):
        confined.get_image_embedding(dog)


def documents(folder: Path) -> list[Document]:
    """As SimpleDirectoryReader gives them: a picture, and metadata that name its file."""
    return [ImageDocument(image_path=str(path), metadata={"file_path": str(path)}) for path in sorted(folder.iterdir())]


def is_of_picture(vector: list[float] | None, words: str) -> bool:
    return vector is not None and bool(np.dot(vector, PaintedEncoder().encode_texts([words])[0]) > 0.999)


@pytest.mark.parametrize("use_async", [False, True])
def test_an_index_of_documents_holds_the_vectors_of_their_pictures(
    use_async: bool, folder: Path, encoder: PaintedEncoder
) -> None:
    index = VectorStoreIndex.from_documents(
        documents(folder), embed_model=LcseEmbedding(scorer=encoder), use_async=use_async
    )
    vectors = index.vector_store.data.embedding_dict  # type: ignore[attr-defined]
    assert all(is_of_picture(vector, shown) for vector, shown in zip(vectors.values(), GALLERY, strict=True))
    found = LogicRetriever.from_index(index, top_n=2).retrieve("umbrella but no person")
    assert [Path(node.metadata["file_path"]).stem for node in found] == ["01", "03"]


async def test_a_pipeline_embeds_the_pictures_of_image_nodes(
    folder: Path, encoder: PaintedEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    broken = folder / "broken.png"
    broken.write_bytes(b"no picture")
    given: list[BaseNode] = [
        ImageNode(text="a caption", image_path=str(folder / "11.png")),
        TextNode(text="cat"),
        ImageNode(text="a caption", image_path=str(broken)),
        TextNode(text="a caption", metadata={"image_path": str(folder / "11.png")}),
    ]
    pipeline = IngestionPipeline(transformations=[LcseEmbedding(scorer=encoder)], disable_cache=True)
    for nodes in (pipeline.run(nodes=given), await pipeline.arun(nodes=given)):
        assert [is_of_picture(node.embedding, "dog") for node in nodes] == [True, False, True]
        assert is_of_picture(nodes[1].embedding, "cat")
    assert f"{broken}: not a picture" in caplog.text


@pytest.mark.parametrize(
    ("text", "is_picture"),
    [
        ("file_path: {dog}", True),
        ("file_name: 00.png\nfile_path: {dog}\n\na caption", True),
        ("{dog}", True),
        ("a dog", False),
        ("see {dog}", False),
        ("note: a dog\n\nfile_path: {dog}", False),
    ],
)
def test_texts_that_name_a_picture(text: str, is_picture: bool, dog: str, encoder: PaintedEncoder) -> None:
    model = LcseEmbedding(scorer=encoder)
    model.get_text_embedding(text.format(dog=dog))
    model.get_query_embedding(text.format(dog=dog))
    assert encoder.images_encoded == is_picture


def test_a_picture_that_is_gone_leaves_its_text_and_is_told(
    encoder: PaintedEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    assert any(LcseEmbedding(scorer=encoder).get_text_embedding("file_path: /moved/dog.png"))
    assert "not as the picture that it names: /moved/dog.png" in caplog.text


def test_any_embedding_becomes_an_encoder(dog: str) -> None:
    encoder = EmbeddingEncoder(LongEmbedding())
    assert isinstance(encoder, Encoder)
    assert (encoder.encoder_id, encoder.dimension) == ("llama-index:LongEmbedding:long", 64)
    expected = PaintedEncoder().encode_texts(["dog"])
    for rows in (encoder.encode_texts(["dog"]), encoder.encode_images([dog]), encoder.encode_images([painted("dog")])):
        np.testing.assert_allclose(rows, expected, atol=1e-6)
    assert len(encoder.encode_images([dog] * 23, batch_size=5)) == 23
    assert encoder.encode_images([]).shape == encoder.encode_texts([]).shape == (0, 64)
    assert encoder.calibration.mu == 0.22
    own = Calibration(mu=0.1, beta=20.0)
    assert LogicScorer(EmbeddingEncoder(LongEmbedding(), calibration=own)).calibration == own
    with pytest.raises(InvalidOption, match="MockEmbedding is no MultiModalEmbedding"):
        EmbeddingEncoder(MockEmbedding(embed_dim=8))  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="'clip', 'siglip2' or a Calibration"):
        EmbeddingEncoder(LongEmbedding(), calibration="blip")  # type: ignore[arg-type]
    with pytest.raises(CalibrationMismatch):
        EmbeddingEncoder(LongEmbedding(), calibration=Calibration(mu=0.1, beta=9.0, encoder_id="another"))


@pytest.mark.parametrize("row", [[0.0] * 64, [1.0], ["x"]])
def test_vectors_that_cannot_be_used_are_told(row: object, dog: str) -> None:
    class Faulty(LongEmbedding):
        def _get_image_embedding(self, img_file_path: object) -> list[float]:
            return row  # type: ignore[return-value]

    encoder = EmbeddingEncoder(Faulty())
    encoder.encode_texts(["dog"])
    with pytest.raises(EncoderError, match="llama-index:Faulty:long gave"):
        encoder.encode_images([dog])
