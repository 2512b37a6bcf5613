"""The vector cache: each distinct picture is encoded once, and a broken one spoils no other."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.locations import ImageAccess, ImageLocation
from lcse_plugins.testing import ToyEncoder


def picture(shade: int) -> bytes:
    stream = BytesIO()
    Image.new("RGB", (4, 4), (shade, 0, 0)).save(stream, "PNG")
    return stream.getvalue()


PICTURES: list[ImageLocation] = [picture(shade) for shade in range(8)]


def arrays(found: list[FloatArray | ImageError]) -> FloatArray:
    return np.stack([vector for vector in found if not isinstance(vector, ImageError)])


def test_each_distinct_picture_is_encoded_once_and_as_the_encoder_would() -> None:
    encoder = ToyEncoder()
    cache = ImageVectorCache(encoder, batch_size=3)
    first = cache.vectors_at([*PICTURES, PICTURES[0]])
    assert encoder.images_encoded == len(cache) == 8
    second = cache.vectors_at(PICTURES[::-1])
    assert encoder.images_encoded == 8
    np.testing.assert_array_equal(arrays(first[:8]), arrays(second[::-1]))
    np.testing.assert_array_equal(first[0], first[8])
    opened = [Image.open(BytesIO(data)) for data in PICTURES if isinstance(data, bytes)]
    np.testing.assert_array_equal(arrays(first[:8]), ToyEncoder().encode_images(opened))


def test_threads_that_want_the_same_pictures_share_one_encoding() -> None:
    encoder = ToyEncoder()
    cache = ImageVectorCache(encoder)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(cache.vectors_at, [PICTURES[i : i + 5] for i in range(4)]))
    assert encoder.images_encoded == 8
    np.testing.assert_array_equal(arrays(found[0][1:]), arrays(found[1][:4]))


def test_a_copy_begins_empty_and_sizes_are_checked() -> None:
    cache = ImageVectorCache(ToyEncoder(), capacity=3, batch_size=2)
    cache.vectors_at(PICTURES)
    copied = pickle.loads(pickle.dumps(cache))
    assert (len(cache), len(copied)) == (3, 0)
    np.testing.assert_array_equal(copied.vectors_at(PICTURES), cache.vectors_at(PICTURES))
    with pytest.raises(InvalidOption, match="positive whole number"):
        ImageVectorCache(ToyEncoder(), capacity=0)
    with pytest.raises(InvalidOption, match=r"\[image\]"):
        cache.vectors_at("a.png")


def test_pictures_are_found_at_their_locations(tmp_path: Path) -> None:
    encoder = ToyEncoder()
    cache = ImageVectorCache(encoder)
    path = tmp_path / "0.png"
    path.write_bytes(picture(0))
    broken: Any = (12, b"not a picture", "no/such.png")
    found = cache.vectors_at([path, PICTURES[1], str(path), *broken])
    assert [isinstance(item, ImageError) for item in found] == [False, False, False, True, True, True]
    np.testing.assert_array_equal(found[0], found[2])
    assert encoder.images_encoded == 2
    path.write_bytes(picture(2))
    assert not np.array_equal(arrays(cache.vectors_at([path])), arrays(found[:1]))  # the file changed


def test_a_url_named_often_is_fetched_once() -> None:
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return picture(0)

    access = ImageAccess(allow_urls=True, fetch=fetch)
    cache, url = ImageVectorCache(ToyEncoder()), "http://example.org/0.png"
    found = cache.vectors_at([url, PICTURES[1], url, "no/such.png", url], access=access)
    assert [isinstance(vector, ImageError) for vector in found] == [False, False, False, True, False]
    np.testing.assert_array_equal(found[0], found[4])
    np.testing.assert_array_equal(cache.vectors_at([url], access=access)[0], found[0])
    assert asked == [url]
    assert isinstance(cache.vectors_at([url])[0], ImageError)  # not allowed, though its vector is kept


def test_the_error_of_a_broken_picture_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"abc")
    secret = "https://user@example.org/c.png?token=secret"
    places: list[ImageLocation] = [tmp_path / "a.png", secret, "data:,abc", b"abc", tmp_path / "none.png"]
    access = ImageAccess(allow_urls=True, fetch=lambda url: b"abc")
    found = ImageVectorCache(ToyEncoder()).vectors_at(places, access=access)
    names = [error.source for error in found if isinstance(error, ImageError)]
    assert names == [
        str(places[0]), "https://example.org/c.png", "data URI of 9 characters", "picture of 3 bytes", str(places[4]),
    ]  # fmt: skip
    assert "".join(map(str, found)).count("not a picture in a known format") == 4
