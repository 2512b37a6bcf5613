"""Which of the places a record names is taken for its picture."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lcse_plugins.images.keys import find_picture, named_picture, picture_in
from lcse_plugins.images.locations import ImageAccess

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and so on").decode()


@pytest.mark.parametrize(
    ("text", "metadata", "expected"),
    [
        ("a dog", {"image_path": "dog"}, "dog"),
        ("a dog", {"image_url": "https://example.org/1", "source": "x.txt"}, "https://example.org/1"),
        ("a dog", {"image": b"bytes"}, b"bytes"),
        ("a dog", {"image": PNG}, f"data:;base64,{PNG}"),
        ("a dog", {"b64": "Qk0="}, "data:;base64,Qk0="),
        ("a dog", {"source": "report.pdf", "path": "dog.JPG"}, "dog.JPG"),
        ("a dog", {"url": "https://example.org/dog.webp?size=2"}, "https://example.org/dog.webp?size=2"),
        ("a dog", {"payload": {"path": "dog.png"}}, "dog.png"),
        ("photos/dog.HEIC", {}, "photos/dog.HEIC"),
        ("data:image/png;base64,AAAA", {}, "data:image/png;base64,AAAA"),
        (PNG, {}, f"data:;base64,{PNG}"),
        ("a dog", {"source": "report.pdf"}, None),
        ("a dog", {"image_path": ""}, None),
        ("a line\nphoto.png", {}, None),
    ],
)
def test_where_a_picture_is(text: str, metadata: dict[str, Any], expected: Any) -> None:
    assert find_picture(metadata, text) == expected
    assert picture_in(metadata) == (None if expected and expected == named_picture(text) else expected)


def test_the_place_that_can_be_read_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "dog.png"
    Image.new("RGB", (8, 8)).save(path)
    bare = {"filename": "dog.png", "image_path": "no/such.png"}
    assert find_picture({**bare, "path": str(path)}) == str(path)
    assert find_picture(bare, str(path)) == str(path)
    assert find_picture({**bare, "base64": PNG}) == f"data:;base64,{PNG}"
    assert find_picture(bare) == "no/such.png"  # reading it tells what is wrong
    assert find_picture({"image_path": "nul\0", "path": str(path)}) == str(path)
    both = {"image_url": "https://example.org/dog.png", "path": str(path)}
    assert find_picture(both) == str(path)
    assert find_picture(both, access=ImageAccess(allow_urls=True)) == both["image_url"]
    inside = ImageAccess(root=str(tmp_path))
    assert find_picture({"image_path": "/etc/hostname", "file": "dog.png"}, access=inside) == "dog.png"
