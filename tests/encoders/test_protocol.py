"""What holds for every encoder: how concepts become vectors, and what they refuse."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from lcse_plugins import estimate_calibration
from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource, checked, concept_vectors
from lcse_plugins.errors import EncoderError, InvalidOption, UnknownEncoder
from lcse_plugins.images.locations import read_images
from lcse_plugins.retrieval.tiles import encode_regions
from lcse_plugins.testing import ToyEncoder

ENCODER = ToyEncoder()


def test_one_string_is_not_a_list() -> None:
    given: Any = "dog"
    vectors = ENCODER.encode_images([f"{n}.jpg" for n in range(60)])
    for wrong in (
        lambda: ENCODER.encode_texts(given),
        lambda: ENCODER.encode_images(given),
        lambda: concept_vectors(ENCODER, given),
        lambda: concept_vectors(ENCODER, ["dog"], templates=given),
        lambda: estimate_calibration(ENCODER, vectors, templates=given),
        lambda: encode_regions(ENCODER, given),
        lambda: read_images(given),
    ):
        with pytest.raises(InvalidOption, match="not one"):
            wrong()


@pytest.mark.parametrize("templates", [(), ("a photo",), ("{} {}",), (None,)])
def test_each_template_has_one_place(templates: Any) -> None:
    with pytest.raises(InvalidOption, match="templates"):
        concept_vectors(ENCODER, ["dog"], templates=templates)


class Bent(ToyEncoder):
    """Gives its vectors bent by a function."""

    def __init__(self, bend: Any) -> None:
        super().__init__()
        self.bend = bend

    def encode_texts(self, texts: Any) -> FloatArray:
        bent: FloatArray = self.bend(super().encode_texts(texts))
        return bent

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        bent: FloatArray = self.bend(super().encode_images(images))
        return bent


def test_a_checked_encoder_gives_what_the_encoder_gives() -> None:
    encoder = checked(ENCODER)
    assert isinstance(encoder, Encoder)
    assert checked(encoder) is encoder
    assert (encoder.encoder_id, encoder.dimension) == (ENCODER.encoder_id, 64)
    assert encoder.calibration == ENCODER.calibration
    np.testing.assert_array_equal(encoder.encode_texts(["dog"]), ENCODER.encode_texts(["dog"]))
    for images in (["a.jpg", "b.jpg"], iter(["a.jpg", "b.jpg"])):
        np.testing.assert_array_equal(encoder.encode_images(images), ENCODER.encode_images(["a.jpg", "b.jpg"]))
    for twin in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        np.testing.assert_array_equal(twin.encode_texts(["dog"]), encoder.encode_texts(["dog"]))
    assert encoder.texts_encoded == ENCODER.texts_encoded  # type: ignore[attr-defined]


def test_rows_that_are_not_of_length_one_are_normalised_with_one_warning() -> None:
    encoder = checked(Bent(lambda rows: 7.5 * rows))
    with pytest.warns(UserWarning, match="not of length one; they are normalised"):
        rows = encoder.encode_texts(["dog"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pictures = encoder.encode_images(iter(["a.jpg"]))
    np.testing.assert_allclose(rows, ENCODER.encode_texts(["dog"]), atol=1e-6)
    np.testing.assert_allclose(pictures, ENCODER.encode_images(["a.jpg"]), atol=1e-6)


@pytest.mark.parametrize(
    ("bend", "message"),
    [
        (lambda rows: rows[:, :63], r"shape \(2, 63\) for 2"),
        (lambda rows: rows[0], r"shape \(64,\) for 2"),
        (lambda rows: rows * np.nan, "zero, NaN or infinite for 2 of 2"),
        (lambda rows: "vectors", "no table of numbers"),
    ],
)
def test_a_broken_promise_is_told(bend: Any, message: str) -> None:
    encoder = checked(Bent(bend))
    with pytest.raises(EncoderError, match=message):
        encoder.encode_texts(["dog", "cat"])
    with pytest.raises(EncoderError, match=message):
        encoder.encode_images(image for image in ("a.jpg", "b.jpg"))


def test_what_is_no_encoder_is_told_what_it_lacks() -> None:
    class Half:
        encoder_id, dimension = "half", 64

        def encode_texts(self, texts: Any) -> None: ...

    with pytest.raises(UnknownEncoder, match="Half is no encoder: it lacks calibration, encode_images"):
        checked(Half())  # type: ignore[arg-type]
    with pytest.raises(UnknownEncoder, match="ToyEncoder is a class"):
        checked(ToyEncoder)  # type: ignore[arg-type]
    for name, value in (("encoder_id", ""), ("dimension", None)):
        with pytest.raises(EncoderError, match=name):
            checked(type("Wrong", (ToyEncoder,), {name: value})())
