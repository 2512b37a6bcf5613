from __future__ import annotations

import asyncio
import pickle
import threading
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.encoders.protocol import FloatArray, ImageSource
from lcse_plugins.errors import EncoderError, ImageError, InvalidOption
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.images.locations import ImageAccess, ImageLocation
from lcse_plugins.testing import ToyEncoder


def picture(shade: int) -> bytes:
    stream = BytesIO()
    Image.new("RGB", (4, 4), (shade, 0, 0)).save(stream, "PNG")
    return stream.getvalue()


PICTURES = [picture(shade) for shade in range(8)]


class GatedEncoder(ToyEncoder):
    """Encodes images only once `gate` is open; says through `entered` that it was asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.gate = threading.Event(), threading.Event()
        self.failures: list[BaseException] = []

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        self.entered.set()
        assert self.gate.wait(10)
        if self.failures:
            raise self.failures.pop()
        return super().encode_images(images, batch_size=batch_size)


def arrays(found: list[FloatArray | ImageError]) -> FloatArray:
    return np.stack([vector for vector in found if not isinstance(vector, ImageError)])


def test_each_distinct_picture_is_encoded_once_and_as_the_encoder_would() -> None:
    encoder = ToyEncoder()
    cache = ImageVectorCache(encoder, batch_size=3)
    first = cache.vectors([*PICTURES, PICTURES[0]])
    assert encoder.images_encoded == len(cache) == 8
    second = cache.vectors(reversed(PICTURES))
    assert encoder.images_encoded == 8
    np.testing.assert_array_equal(arrays(first[:8]), arrays(second[::-1]))
    np.testing.assert_array_equal(first[0], first[8])
    opened = [Image.open(BytesIO(data)) for data in PICTURES]
    np.testing.assert_array_equal(arrays(first[:8]), ToyEncoder().encode_images(opened))


def test_a_broken_picture_comes_as_its_error_and_spoils_no_other() -> None:
    encoder = ToyEncoder()
    cache = ImageVectorCache(encoder)
    earlier = ImageError("a.png", "there is no such file")
    found = cache.vectors([PICTURES[0], b"not a picture", earlier, PICTURES[1]])
    assert found[2] is earlier
    assert isinstance(found[1], ImageError)
    assert arrays([found[0], found[3]]).shape == (2, 64)
    assert len(cache) == encoder.images_encoded == 2


def test_the_least_recently_used_is_forgotten() -> None:
    encoder = ToyEncoder()
    cache = ImageVectorCache(encoder, capacity=2)
    cache.vectors(PICTURES[:2])
    cache.vectors([PICTURES[0]])
    cache.vectors([PICTURES[2]])  # drops the second
    assert len(cache) == 2
    cache.vectors([PICTURES[0]])
    assert encoder.images_encoded == 3
    cache.vectors([PICTURES[1]])
    assert encoder.images_encoded == 4


def test_what_is_kept_cannot_be_changed_by_a_caller() -> None:
    vector = ImageVectorCache(ToyEncoder()).vectors([PICTURES[0]])[0]
    assert not isinstance(vector, ImageError)
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 1.0
    assert vector.base is None  # it keeps no other alive


def test_threads_that_want_the_same_pictures_share_one_encoding() -> None:
    encoder = GatedEncoder()
    cache = ImageVectorCache(encoder)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(cache.vectors, PICTURES[i : i + 5]) for i in (0, 1, 2, 3)]
        encoder.gate.set()
        found = [future.result(10) for future in futures]
    assert encoder.images_encoded == 8
    np.testing.assert_array_equal(arrays(found[0][1:]), arrays(found[1][:4]))


@pytest.mark.parametrize("failure", [EncoderError("no memory"), KeyboardInterrupt()])
def test_who_waits_for_an_encoding_that_fails_does_it_itself(failure: BaseException) -> None:
    encoder = GatedEncoder()
    encoder.failures.append(failure)
    cache = ImageVectorCache(encoder)
    raised: list[BaseException] = []

    def owner() -> None:
        try:
            cache.vectors(PICTURES[:1])
        except BaseException as error:
            raised.append(error)

    owning = threading.Thread(target=owner)
    owning.start()
    assert encoder.entered.wait(10)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cache.vectors, PICTURES[:1])
        encoder.gate.set()
        assert not isinstance(waiting.result(10)[0], ImageError)
    owning.join(10)
    assert raised == [failure]
    assert encoder.images_encoded == len(cache) == 1


async def test_tasks_share_work_and_the_loop_stays_free() -> None:
    encoder = GatedEncoder()
    cache = ImageVectorCache(encoder)
    tasks = [asyncio.create_task(cache.avectors(PICTURES)) for _ in range(3)]
    while not encoder.entered.is_set():
        await asyncio.sleep(0.001)  # the loop runs on while the encoder is held
    encoder.gate.set()
    found = await asyncio.gather(*tasks)
    assert encoder.images_encoded == 8
    np.testing.assert_array_equal(arrays(found[0]), arrays(found[2]))


async def test_cancelling_one_task_leaves_the_other_its_result() -> None:
    encoder = GatedEncoder()
    cache = ImageVectorCache(encoder)
    first = asyncio.create_task(cache.avectors(PICTURES))
    while not encoder.entered.is_set():
        await asyncio.sleep(0.001)
    second = asyncio.create_task(cache.avectors(PICTURES))
    await asyncio.sleep(0.01)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    encoder.gate.set()
    assert arrays(await second).shape == (8, 64)
    assert encoder.images_encoded == len(cache) == 8
    assert not cache._flights


@pytest.mark.parametrize("rows", [np.full((1, 64), np.nan), np.ones((1, 63)), np.ones((2, 64))])
def test_vectors_that_cannot_be_used_are_refused(rows: FloatArray, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = ToyEncoder()
    cache = ImageVectorCache(encoder)
    with monkeypatch.context() as patch:
        patch.setattr(encoder, "encode_images", lambda images, batch_size=None: rows)
        with pytest.raises(EncoderError, match="must be finite"):
            cache.vectors([PICTURES[0]])
    assert not isinstance(cache.vectors([PICTURES[0]])[0], ImageError)


@pytest.mark.parametrize("options", [{"capacity": 0}, {"batch_size": 0}])
def test_sizes_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InvalidOption, match="positive whole number"):
        ImageVectorCache(ToyEncoder(), **options)


def test_a_copy_begins_empty() -> None:
    cache = ImageVectorCache(ToyEncoder(), capacity=3, batch_size=2)
    cache.vectors(PICTURES)
    copied = pickle.loads(pickle.dumps(cache))
    assert (len(cache), len(copied)) == (3, 0)
    np.testing.assert_array_equal(copied.vectors(PICTURES), cache.vectors(PICTURES))
    assert len(copied) == 3


def test_pictures_are_found_at_their_locations(tmp_path: Path) -> None:
    encoder = ToyEncoder()
    cache = ImageVectorCache(encoder)
    path = tmp_path / "0.png"
    path.write_bytes(PICTURES[0])
    found = cache.vectors_at([path, PICTURES[1], str(path), "no/such.png", "http://127.0.0.1/refused.png"])
    assert [isinstance(item, ImageError) for item in found] == [False, False, False, True, True]
    np.testing.assert_array_equal(found[0], found[2])
    assert encoder.images_encoded == 2
    path.write_bytes(PICTURES[2])
    assert not np.array_equal(arrays(cache.vectors_at([path])), arrays(found[:1]))  # the file changed


def test_pictures_are_decoded_one_after_the_other() -> None:
    seen: list[weakref.ref[Image.Image]] = []
    most = 0

    class Counting(ToyEncoder):
        def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
            def counted() -> Iterable[ImageSource]:
                nonlocal most
                for image in images:
                    assert isinstance(image, Image.Image)
                    seen.append(weakref.ref(image))
                    most = max(most, sum(ref() is not None for ref in seen))
                    yield image

            return super().encode_images(counted(), batch_size=batch_size)

    found = ImageVectorCache(Counting()).vectors([b"broken", *PICTURES])
    assert [isinstance(vector, ImageError) for vector in found] == [True] + [False] * 8
    assert most <= 3  # the first, the one before and the one at hand


def test_an_encoder_is_not_asked_when_no_picture_is_sound() -> None:
    encoder = GatedEncoder()
    assert isinstance(ImageVectorCache(encoder).vectors([b"broken"])[0], ImageError)
    assert not encoder.entered.is_set()


@pytest.mark.parametrize("given", [None, 12, bytearray(PICTURES[0]), BytesIO(PICTURES[0]), "a.png"])
def test_what_is_no_picture_comes_as_an_error_in_its_place(given: Any) -> None:
    found = ImageVectorCache(ToyEncoder()).vectors([PICTURES[0], given])
    assert not isinstance(found[0], ImageError)
    assert f"not {type(given).__name__}" in str(found[1])


def test_one_picture_is_not_a_list() -> None:
    cache = ImageVectorCache(ToyEncoder())
    with pytest.raises(InvalidOption, match=r"\[image\]"):
        cache.vectors(PICTURES[0])  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"\[image\]"):
        cache.vectors_at("a.png")


URLS = [f"http://example.org/{i}.png" for i in range(len(PICTURES))]
ONLINE = ImageAccess(allow_urls=True)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs that are fetched; each shows the picture of its number."""
    asked: list[str] = []

    def fetch(url: str, *, access: ImageAccess) -> bytes:
        if not access.allow_urls:
            raise ImageError(url, "URLs are not fetched")
        asked.append(url)
        return PICTURES[URLS.index(url)]

    monkeypatch.setattr("lcse_plugins.images.fetch.fetch_image", fetch)
    return asked


def test_a_url_named_often_is_fetched_once(fetched: list[str]) -> None:
    cache, url = ImageVectorCache(ToyEncoder()), URLS[0]
    found = cache.vectors_at([url, PICTURES[1], url, "no/such.png", url], access=ONLINE)
    assert [isinstance(vector, ImageError) for vector in found] == [False, False, False, True, False]
    np.testing.assert_array_equal(found[0], found[4])
    np.testing.assert_array_equal(cache.vectors_at([url], access=ONLINE)[0], found[0])
    assert fetched == [url]


def test_the_url_used_last_is_kept_longest(fetched: list[str]) -> None:
    cache = ImageVectorCache(ToyEncoder(), capacity=4)  # two pictures, each by its bytes and by its URL
    for i in (0, 1, 0, 2, 0):
        cache.vectors_at([URLS[i]], access=ONLINE)
    assert fetched == URLS[:3]


def test_a_url_that_is_not_allowed_is_refused_though_its_vector_is_kept(fetched: list[str]) -> None:
    cache = ImageVectorCache(ToyEncoder())
    cache.vectors_at(URLS[:1], access=ONLINE)
    assert isinstance(cache.vectors_at(URLS[:1])[0], ImageError)
    assert not isinstance(cache.vectors_at(URLS[:1], access=ONLINE)[0], ImageError)


def test_the_error_of_a_broken_picture_names_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.png").write_bytes(b"abc")
    (tmp_path / "b.png").write_bytes(b"abc")
    secret = "https://user@example.org/c.png?token=secret"
    monkeypatch.setattr("lcse_plugins.images.fetch.fetch_image", lambda url, *, access: b"abc")
    places: list[ImageLocation] = [
        tmp_path / "a.png",
        str(tmp_path / "b.png"),
        secret,
        "data:,abc",
        b"abc",
        tmp_path / "none.png",
    ]
    found = ImageVectorCache(ToyEncoder()).vectors_at(places, access=ImageAccess(allow_urls=True))
    names = [error.source for error in found if isinstance(error, ImageError)]
    assert names[:2] == [str(place) for place in places[:2]]
    assert names[2:5] == ["https://example.org/c.png", "data URI of 9 characters", "picture of 3 bytes"]
    assert names[5] == str(places[5])
    assert "".join(map(str, found)).count("not a picture in a known format") == 5
