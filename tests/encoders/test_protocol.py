"""What holds for every encoder: how concepts become vectors, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lcse_plugins import concept_vectors, encode_regions, estimate_calibration
from lcse_plugins.errors import InvalidOption, QueryError
from lcse_plugins.images.locations import read_images
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
        lambda: estimate_calibration(ENCODER, vectors, vocabulary=given),
        lambda: encode_regions(ENCODER, given),
        lambda: read_images(given),
    ):
        with pytest.raises(InvalidOption, match="not one"):
            wrong()


@pytest.mark.parametrize("templates", [(), ("a photo",), ("{} {}",), (None,)])
def test_each_template_has_one_place(templates: Any) -> None:
    with pytest.raises(InvalidOption, match="templates"):
        concept_vectors(ENCODER, ["dog"], templates=templates)


def test_texts_may_come_from_anywhere() -> None:
    np.testing.assert_array_equal(
        concept_vectors(ENCODER, (word for word in ("dog", "cat"))),  # type: ignore[arg-type]
        concept_vectors(ENCODER, ["dog", "cat"]),
    )
    with pytest.raises(QueryError, match="UTF-8"):
        concept_vectors(ENCODER, ["\ud800"])


def test_a_word_set_by_hand_is_heard_in_any_case() -> None:
    encoder = ToyEncoder({"Dog": [1.0, 0.0], "cat": [0.0, 1.0]})
    np.testing.assert_array_equal(encoder.encode_texts(["Dog", "DOG", "Cat"]), [[1, 0], [1, 0], [0, 1]])
