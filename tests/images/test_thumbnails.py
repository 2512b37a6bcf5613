"""Small copies of pictures keep within their bounds and leave the original alone."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.images.thumbnails import jpeg_thumbnail


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8))


def opened(data: bytes | None) -> Image.Image:
    assert data is not None
    return Image.open(BytesIO(data))


def test_the_longer_side_is_bounded_and_the_shape_kept() -> None:
    small = opened(jpeg_thumbnail(noise(600, 300), max_side=100))
    assert (small.format, small.size) == ("JPEG", (100, 50))
    assert opened(jpeg_thumbnail(noise(70, 20), max_side=100)).size == (70, 20)


def test_it_shrinks_until_it_fits() -> None:
    whole = jpeg_thumbnail(noise(512, 512), max_side=512)
    assert whole is not None
    fitted = jpeg_thumbnail(noise(512, 512), max_side=512, max_bytes=len(whole) // 3)
    assert fitted is not None
    assert len(fitted) <= len(whole) // 3
    assert opened(fitted).size == (256, 256)
    assert jpeg_thumbnail(noise(512, 512), max_bytes=100) is None


def test_faults_are_named() -> None:
    with pytest.raises(ImageError, match="not a picture"):
        jpeg_thumbnail(b"not a picture at all")
    with pytest.raises(InvalidOption, match="max_side"):
        jpeg_thumbnail(noise(10, 10), max_side=3)
