"""Stores filled with vectors of texts are noticed, for next to nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from lcse_plugins import ImageAccess, LogicScorer
from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.hosts.text_vectors import StoredResult, TextVectorCheck
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.testing import ToyEncoder

Stored = Callable[[str, str], StoredResult]


@pytest.fixture
def encoder() -> ToyEncoder:
    return ToyEncoder()


@pytest.fixture
def check(encoder: ToyEncoder) -> TextVectorCheck:
    return TextVectorCheck(ImageVectorCache(encoder), access=ImageAccess(), advice="embed the pictures")


@pytest.fixture
def stored(encoder: ToyEncoder, tmp_path: Path) -> Stored:
    Image.new("RGB", (8, 8), "red").save(tmp_path / "picture.png")
    other = ToyEncoder()

    def make(name: str, vector_of: str) -> StoredResult:
        return StoredResult(name, other.encode_texts([vector_of])[0], f"file {name}", str(tmp_path / "picture.png"))

    return make


def test_all_wrong_is_refused_and_some_are_left_out(
    check: TextVectorCheck, stored: Stored, caplog: pytest.LogCaptureFixture
) -> None:
    wrong, right = stored("a", "file a"), [stored(name, "a dog") for name in "bcdef"]
    with pytest.raises(InvalidCandidate, match=r"vector of a is that of its text, 'file a', not of its picture; embed"):
        check.find_text_vectors([wrong])
    assert check.find_text_vectors([*right, wrong]) == [5]  # once alarmed, all of the best are looked at
    assert "left out: the stored vector of a" in caplog.text


def test_the_picture_decides_where_a_text_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "dog.png"
    Image.new("RGB", (8, 8), "red").save(path)
    encoder = ToyEncoder()
    cache = ImageVectorCache(encoder)
    (of_picture,) = cache.vectors_at([str(path)])
    check = TextVectorCheck(cache, access=ImageAccess(), advice="")
    assert check.find_text_vectors([StoredResult("x", of_picture, "dog", str(path))]) == []  # type: ignore[arg-type]
    for result in (
        StoredResult("no vector", None, "a dog", str(path)),
        StoredResult("no text", encoder.encode_texts(["x"])[0], " ", str(path)),
        StoredResult("no picture", encoder.encode_texts(["a dog"])[0], "a dog", None),
    ):
        assert check.find_text_vectors([result]) == []


def test_it_costs_less_than_a_twentieth_of_the_queries(
    check: TextVectorCheck, stored: Stored, encoder: ToyEncoder
) -> None:
    scorer = LogicScorer(ToyEncoder())
    results = [stored(f"n{i}", f"thing{i}") for i in range(400)]
    for i in range(100):
        scorer.encode(f"thing{i} but no other{i}")
        assert check.find_text_vectors(results[4 * i : 4 * i + 4]) == []
    assert 8 <= encoder.texts_encoded <= scorer.encoder.texts_encoded / 20  # type: ignore[attr-defined]


def test_a_wrong_one_that_comes_late_is_noticed(check: TextVectorCheck, stored: Stored) -> None:
    for i in range(50):
        check.find_text_vectors([stored(f"n{i}", "a dog")])
    found = [check.find_text_vectors([stored("late", "file late"), stored(f"m{i}", "a dog")]) for i in range(40)]
    assert [0] in found
