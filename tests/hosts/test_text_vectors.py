"""Stores filled with vectors of texts are noticed, for next to nothing."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from lcse_plugins import ImageAccess, LogicScorer
from lcse_plugins.hosts.text_vectors import StoredResult, TextVectorCheck
from lcse_plugins.images.cache import ImageVectorCache
from lcse_plugins.testing import ToyEncoder


def test_the_check_costs_a_twentieth_of_the_queries_at_most_and_notices_what_comes_late(tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    Image.new("RGB", (8, 8), "red").save(picture)
    checking, asking, filling = ToyEncoder(), ToyEncoder(), ToyEncoder()
    check = TextVectorCheck(ImageVectorCache(checking), access=ImageAccess(), advice="embed the pictures")
    scorer = LogicScorer(asking)

    def stored(name: str, vector_of: str) -> StoredResult:
        return StoredResult(name, filling.encode_texts([vector_of])[0], f"file {name}", str(picture))

    for i in range(100):
        scorer.encode(f"thing{i} but no other{i}")
        assert check.find_text_vectors([stored(f"n{i} {j}", f"thing{i}") for j in range(4)]) == []
    assert 8 <= checking.texts_encoded <= asking.texts_encoded / 20
    found = [check.find_text_vectors([stored("late", "file late"), stored(f"m{i}", "a dog")]) for i in range(40)]
    assert [0] in found
