"""Hostile pictures: mutated files, decompression bombs, folders of large photographs."""

from __future__ import annotations

import io
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.errors import ImageError
from lcse_plugins.images.reading import load_image, picture_suffixes
from tests.images.test_reading import encoded, many_scans, picture, png_header, tiled_tiff, with_exif
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


def large(side: int, format: str, mode: str = "RGB", **options: object) -> bytes:
    return encoded(Image.new(mode, (side, side)), format, **options)


@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(
    ("name", "make", "outcome"),
    [
        ("tile", lambda: tiled_tiff(46_000), "refused"),
        ("small tile", lambda: tiled_tiff(2_000), "refused"),  # it is damaged too
        ("scans", lambda: many_scans(1000), "refused"),
        ("png", lambda: png_header(20_000, 20_000), "refused"),
        ("wide", lambda: png_header(2**31 - 1, 2), "refused"),
        ("thin", lambda: encoded(Image.new("RGB", (20_000_000, 2)), "PNG"), "refused"),
        ("metadata", lambda: with_exif(bytes(150_000_000)), "read"),
        ("rgb", lambda: large(8000, "PNG"), "read"),
        ("large rgb", lambda: large(8100, "PNG"), "refused"),
        ("rgba", lambda: large(8000, "PNG", "RGBA"), "read"),
        ("deep", lambda: large(8000, "PNG", "I;16"), "read"),
        ("float", lambda: large(6200, "TIFF", "F"), "read"),
        ("jpeg", lambda: large(9400, "JPEG"), "read"),
        ("progressive", lambda: large(9400, "JPEG", progressive=True, subsampling="4:2:0"), "refused"),
        ("smaller progressive", lambda: large(8900, "JPEG", progressive=True, subsampling="4:2:0"), "read"),
        ("webp", lambda: large(4400, "WEBP"), "read"),
        ("large webp", lambda: large(4500, "WEBP"), "refused"),
    ],
)
def test_no_picture_takes_the_machine(name: str, make: Callable[[], bytes], outcome: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(make())
    told, peak, seconds = run_python(BOMB, tmp_path / name).split()
    print(f"\n{name}: {told}, {peak} MB, {float(seconds):.1f} s")
    assert told == outcome
    assert int(peak) < 450
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


@pytest.fixture(scope="module")
def largest_of_each_format(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pictures of each format, about as large as may be, between photographs of 24 megapixels."""
    folder = tmp_path_factory.mktemp("large")
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 50, 3), dtype=np.uint8))
    kinds: list[tuple[str, int, dict[str, Any]]] = [
        ("jpg", 9400, {}), ("jpg", 8900, {"progressive": True, "subsampling": "4:2:0"}), ("png", 8000, {}),
        ("tif", 6600, {"compression": "tiff_adobe_deflate"}), ("webp", 4470, {}), ("avif", 5600, {"speed": 10}),
        ("heic", 6980, {"quality": 50}),
    ]  # fmt: skip
    for number, (suffix, side, options) in enumerate(kinds):
        if f".{suffix}" in picture_suffixes():
            noise.resize((side, side)).save(folder / f"{number}0.{suffix}", **options)
            write_large_photographs(folder, [f"{number}1", f"{number}2"])
            data = (folder / f"{number}0.{suffix}").read_bytes()
            (folder / f"{number}3.{suffix}").write_bytes(data + bytes(4))
    return folder


@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("indexer", INDEXERS)
def test_a_folder_of_the_largest_pictures_takes_little_memory(
    indexer: str, largest_of_each_format: Path, tmp_path: Path
) -> None:
    code = f"import sys\n{textwrap.dedent(INDEXERS[indexer])}\nprint(done, peak())"
    done, peak = map(int, run_python(code, largest_of_each_format, tmp_path / "idx").split())
    print(f"\n{indexer}, {done} pictures of 20 to 88 megapixels: {peak} MB")
    assert done == len(list(largest_of_each_format.iterdir()))
    assert peak < 600
