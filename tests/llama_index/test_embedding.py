from __future__ import annotations

import base64
import pickle
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from llama_index_lcse import EncoderEmbedding
from PIL import Image

from lcse_plugins import ImageAccess
from lcse_plugins.errors import ImageError, InvalidOption, UnknownEncoder
from tests.llama_index.painted import PaintedEncoder, painted


@pytest.fixture
def dog(tmp_path: Path) -> str:
    path = tmp_path / "00.png"
    path.write_bytes(painted("dog"))
    return str(path)


async def test_vectors_are_the_encoders(dog: str, encoder: PaintedEncoder) -> None:
    model = EncoderEmbedding(encoder=encoder)
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
        (await model.aget_image_embedding_batch([dog]))[0],
    ):
        np.testing.assert_allclose(vector, text, atol=1e-6)


def test_images_are_encoded_in_batches(encoder: PaintedEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    encode = encoder.encode_images

    def count(images: Iterable[bytes], batch_size: int | None = None) -> object:
        rows = encode(images, batch_size=batch_size)
        sizes.append(len(rows))
        return rows

    monkeypatch.setattr(encoder, "encode_images", count)
    EncoderEmbedding(encoder=encoder, embed_batch_size=4).get_image_embedding_batch([BytesIO(painted("dog"))] * 10)
    assert sizes == [4, 4, 2]


def test_it_comes_back_from_a_dict_and_a_pickle() -> None:
    model = EncoderEmbedding(embed_batch_size=7)
    assert (model.encoder, model.model_name) == ("starter", "starter")
    for copied in (
        EncoderEmbedding.from_dict(model.to_dict()),
        EncoderEmbedding(**model.model_dump()),
        EncoderEmbedding.model_validate(model.model_dump()),
        EncoderEmbedding.model_validate_json(model.model_dump_json()),
        pickle.loads(pickle.dumps(model)),
    ):
        assert copied.to_dict() == model.to_dict()


def test_it_is_named_after_its_encoder(encoder: PaintedEncoder) -> None:
    assert EncoderEmbedding(encoder=encoder).model_name == encoder.encoder_id
    assert EncoderEmbedding(model_name="starter").model_name == "starter"
    for options in ({"model_name": "open_clip:ViT-B-32/openai"}, {"model_name": "starter", "encoder": encoder}):
        with pytest.raises(InvalidOption, match="choose the encoder with encoder="):
            EncoderEmbedding(**options)


def test_pictures_are_read_from_urls_and_only_from_where_they_may_be(dog: str, encoder: PaintedEncoder) -> None:
    seen = EncoderEmbedding(encoder=encoder).get_image_embedding(dog)
    for place in (Path(dog).as_uri(), f"data:image/png;base64,{base64.b64encode(painted('dog')).decode()}"):
        assert EncoderEmbedding(encoder=encoder).get_image_embedding(place) == seen
    with pytest.raises(ImageError, match=r"https://example\.org/dog\.png: .*allow_urls"):
        EncoderEmbedding(encoder=encoder).get_image_embedding("https://example.org/dog.png")
    confined = EncoderEmbedding(encoder=encoder, image_access=ImageAccess(root=str(Path(dog).parent / "inside")))
    with pytest.raises(ImageError, match="outside the folder"):
        confined.get_image_embedding(dog)


def test_pictures_may_be_open_already(dog: str, encoder: PaintedEncoder) -> None:
    embedding = EncoderEmbedding(encoder=encoder)
    with Image.open(dog) as picture:
        assert embedding.get_image_embedding(picture) == embedding.get_image_embedding(dog)


def test_a_broken_picture_is_named(encoder: PaintedEncoder, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(ImageError, match=r"broken\.png: not a picture"):
        EncoderEmbedding(encoder=encoder).get_image_embedding(str(tmp_path / "broken.png"))


def test_what_cannot_be_used_is_refused(encoder: PaintedEncoder) -> None:
    with pytest.raises(InvalidOption, match="EncoderEmbedding takes its options by keyword: encoder=…"):
        EncoderEmbedding("starter")  # type: ignore[call-arg]
    with pytest.raises(InvalidOption, match="encoder"):
        EncoderEmbedding(encoder=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="has no encodr"):
        EncoderEmbedding(encodr="starter")  # type: ignore[call-arg]
    with pytest.raises(UnknownEncoder):
        EncoderEmbedding(encoder="nonsense").get_query_embedding("dog")
    with pytest.raises(ImageError):
        EncoderEmbedding(encoder=encoder).get_image_embedding("no/such.png")
