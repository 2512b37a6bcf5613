"""Hostile pictures: mutated files, decompression bombs, folders of large photographs."""

from __future__ import annotations

import io
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.errors import ImageError
from lcse_plugins.images.reading import load_image
from tests.images.test_reading import encoded, many_scans, picture, png_header, tiled_tiff
from tests.images.test_scan import run_python, write_large_photographs

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "PPM", "AVIF", "HEIF", "progressive", "deflated", "palette")


def sound(format: str) -> bytes | None:
    """A small file of each kind; None where it cannot be written."""
    match format:
        case "progressive":
            return encoded(picture(), "JPEG", progressive=True)
        case "deflated":
            return encoded(picture(), "TIFF", compression="tiff_adobe_deflate")
        case "palette":
            return encoded(picture().quantize(), "PNG")
        case "HEIF":
            heif, stream = pytest.importorskip("pillow_heif"), io.BytesIO()
            heif.from_pillow(picture(64, 48)).save(stream)
            return stream.getvalue()
    try:
        return encoded(picture(), format)
    except (KeyError, OSError):
        return None


@pytest.mark.parametrize("kind", ["few", pytest.param("many", marks=pytest.mark.faults(rounds=40_000))])
def test_mutated_pictures_are_read_or_refused_and_soon(kind: str, seed: int, rounds: int) -> None:
    rng, outcomes, slowest = np.random.default_rng(seed), Counter[str](), 0.0
    files = [file for file in map(sound, FORMATS) if file is not None]
    ends = time.monotonic() + 150
    for n in range(rounds):
        data = bytearray(files[n % len(files)])
        for place in rng.integers(0, min(len(data), 40 if n % 3 else len(data)), int(rng.integers(1, 9))):
            data[place] = rng.integers(0, 256)
        began = time.monotonic()
        try:
            assert load_image(bytes(data)).mode == "RGB"
            outcomes["read"] += 1
        except ImageError:
            outcomes["refused"] += 1
        slowest = max(slowest, time.monotonic() - began)
        if time.monotonic() > ends:
            break
    print(f"{dict(outcomes)}, the slowest {slowest:.2f} s")
    assert slowest < 30


BOMB = """
    import sys, time
    from lcse_plugins.errors import ImageError
    from lcse_plugins.images.reading import load_image
    began = time.monotonic()
    try:
        load_image(sys.argv[1])
        print("read", end=" ")
    except ImageError as error:
        print("refused", end=" ")
    print(peak(), time.monotonic() - began)
"""


def large(mode: str, format: str, **options: object) -> bytes:
    return encoded(Image.new(mode, (9400, 9400)), format, **options)


@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(
    ("name", "make", "outcome"),
    [
        ("tile", lambda: tiled_tiff(46_000), "refused"),
        ("small tile", lambda: tiled_tiff(4_000), None),
        ("scans", lambda: many_scans(1000), "refused"),
        ("png", lambda: png_header(20_000, 20_000), "refused"),
        ("wide", lambda: png_header(2**31 - 1, 2), "refused"),
        ("rgb", lambda: large("RGB", "PNG"), "read"),
        ("rgba", lambda: large("RGBA", "PNG"), "read"),
        ("deep", lambda: large("I;16", "PNG"), "read"),
        ("progressive", lambda: large("RGB", "JPEG", progressive=True), "read"),
        ("webp", lambda: encoded(Image.new("RGB", (7000, 7000)), "WEBP"), "read"),
        ("large webp", lambda: encoded(Image.new("RGB", (7200, 7200)), "WEBP"), "refused"),
    ],
)
def test_no_picture_takes_the_machine(name: str, make: object, outcome: str | None, tmp_path: Path) -> None:
    assert callable(make)
    (tmp_path / name).write_bytes(make())
    told, peak, seconds = run_python(BOMB, tmp_path / name).split()
    print(f"\n{name}: {told}, {peak} MB, {float(seconds):.1f} s")
    assert told == (outcome or told)
    assert int(peak) < 900
    assert float(seconds) < 60


INDEXERS = {
    "lcse index": """
        from lcse_plugins import ImageIndex
        done = ImageIndex.build(sys.argv[1], sys.argv[2], encoder="starter").added
    """,
    "index_images": """
        from qdrant_client import QdrantClient
        from qdrant_lcse import index_images
        done = index_images(QdrantClient(":memory:"), "photos", sys.argv[1], "starter", progress=False).indexed
    """,
}


@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("indexer", INDEXERS)
@pytest.mark.parametrize("progressive", [False, True])
def test_a_folder_of_large_photographs_takes_little_memory(indexer: str, progressive: bool, tmp_path: Path) -> None:
    photos = write_large_photographs(tmp_path / "photos", 32, progressive=progressive)
    code = "import sys\n" + textwrap.dedent(INDEXERS[indexer])
    code += "\nprint(done, peak())"
    done, peak = map(int, run_python(code, photos, tmp_path / "idx").split())
    print(f"\n{indexer}, {done} photographs of 24 megapixels: {peak} MB")
    assert done == 32
    assert peak < 600
