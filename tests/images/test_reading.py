"""Safe image loading, on files the tests write themselves."""

from __future__ import annotations

import io
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.images.reading import (
    MAX_PIXELS,
    content_hash,
    iter_images,
    load_image,
    names_picture,
    walk_images,
)


def encoded(image: Image.Image, format: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def picture(width: int = 40, height: int = 30) -> Image.Image:
    """A smooth picture, different in each corner."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, 255 - x], axis=-1).astype(np.uint8))


def png_header(width: int, height: int) -> bytes:
    """A PNG that promises a size and holds almost no pixels: the shape of a decompression bomb."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "WEBP", "GIF", "JPEG", "PPM"])
def test_path_bytes_and_opened_image_give_the_same_rgb(format: str, tmp_path: Path) -> None:
    data = encoded(picture(), format, **({"lossless": True} if format == "WEBP" else {}))
    path = tmp_path / "picture"
    path.write_bytes(data)
    from_bytes = load_image(data)
    assert from_bytes.mode == "RGB"
    assert from_bytes.size == (40, 30)
    for source in (path, str(path), Image.open(io.BytesIO(data))):
        np.testing.assert_array_equal(load_image(source), from_bytes)
    if format not in ("GIF", "JPEG"):
        np.testing.assert_array_equal(from_bytes, picture())


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_exif_orientation_is_applied_once(format: str, orientation: int) -> None:
    stored = {
        1: [],
        2: [Image.Transpose.FLIP_LEFT_RIGHT],
        3: [Image.Transpose.ROTATE_180],
        4: [Image.Transpose.FLIP_TOP_BOTTOM],
        5: [Image.Transpose.TRANSPOSE],
        6: [Image.Transpose.ROTATE_90],
        7: [Image.Transpose.TRANSVERSE],
        8: [Image.Transpose.ROTATE_270],
    }[orientation]
    image = picture()
    for step in stored:
        image = image.transpose(step)
    exif = Image.Exif()
    exif[0x0112] = orientation
    loaded = load_image(encoded(image, format, exif=exif))
    assert loaded.size == (40, 30)
    np.testing.assert_allclose(np.asarray(loaded, float), np.asarray(picture(), float), atol=16)
    np.testing.assert_array_equal(load_image(loaded), loaded)  # as an encoder does with what was loaded before


def test_damaged_exif_does_not_hide_a_sound_picture() -> None:
    data = encoded(picture(), "PNG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert load_image(data).size == (40, 30)


def test_sixteen_bit_grey_is_scaled_not_clipped() -> None:
    ramp = np.tile(np.linspace(0, 65535, 256).astype(np.uint16), (4, 1))
    expected = np.rint(ramp / 257).astype(np.uint8)
    for image in (Image.fromarray(ramp), Image.fromarray(ramp.astype(np.int32))):
        for source in (image, encoded(image, "TIFF")):
            np.testing.assert_array_equal(np.asarray(load_image(source))[..., 0], expected)
    np.testing.assert_array_equal(np.asarray(load_image(encoded(Image.fromarray(ramp), "PNG")))[..., 1], expected)


def grey_tiff(values: np.ndarray, bits: int, *, photometric: int = 1) -> bytes:
    """An uncompressed TIFF file of one unsigned sample a pixel, which Pillow itself does not write."""
    if bits == 12:
        left, right = values[:, ::2].astype(int), values[:, 1::2].astype(int)
        data = np.stack([left >> 4, (left & 15) << 4 | right >> 8, right & 255], axis=-1).astype(np.uint8).tobytes()
    else:
        data = values.astype(f"<u{bits // 8}").tobytes()
    height, width = values.shape
    tags = {256: width, 257: height, 258: bits, 259: 1, 262: photometric, 273: 0, 277: 1, 278: height, 279: len(data)}
    tags[273] = 8 + 2 + 12 * len(tags) + 4
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + b"\0" * 4 + data


@pytest.mark.parametrize(("bits", "photometric"), [(12, 1), (16, 1), (16, 0), (32, 1)])
def test_grey_of_any_depth_runs_from_black_to_white(bits: int, photometric: int) -> None:
    ramp = np.tile(np.rint(np.linspace(0, 2**bits - 1, 256)), (4, 1))
    loaded = np.asarray(load_image(grey_tiff(ramp, bits, photometric=photometric)))[0, :, 0]
    np.testing.assert_array_equal(loaded if photometric else 255 - loaded, np.arange(256))


def test_integers_are_taken_for_8_bits_where_they_fit() -> None:
    ramp = np.tile(np.arange(256, dtype=np.int32), (4, 1))
    for image in (Image.fromarray(ramp), Image.fromarray(8_000_000 * ramp), Image.fromarray(ramp - 128)):
        np.testing.assert_array_equal(np.asarray(load_image(image))[0, :, 1], np.arange(256))


def test_float_pictures_are_stretched_to_the_full_range() -> None:
    values = np.tile(np.linspace(-3.0, 7.0, 256, dtype=np.float32), (4, 1))
    loaded = np.asarray(load_image(encoded(Image.fromarray(values), "TIFF")))
    np.testing.assert_array_equal(loaded[0, :, 2], np.arange(256))
    flat = load_image(Image.new("F", (3, 3), float("nan")))
    assert flat.getpixel((0, 0)) == (0, 0, 0)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
def test_transparency_is_laid_over_white(mode: str) -> None:
    if mode in ("L", "RGB"):  # one grey or colour declared transparent
        image = Image.new(mode, (4, 4), 0)
        data = encoded(image, "PNG", transparency=0 if mode == "L" else (0, 0, 0))
        assert load_image(data).getpixel((0, 0)) == (255, 255, 255)
        return
    half = Image.new("RGBA", (4, 4), (0, 0, 0, 128))
    half.putpixel((0, 0), (0, 0, 0, 0))
    if mode == "P":
        data = encoded(half.quantize(), "PNG")
        assert load_image(data).getpixel((0, 0)) == (255, 255, 255)
        return
    loaded = load_image(half.convert(mode))
    assert loaded.getpixel((0, 0)) == (255, 255, 255)
    grey = loaded.getpixel((1, 1))
    assert isinstance(grey, tuple)
    assert all(abs(value - 127) <= 1 for value in grey)


def test_cmyk_bilevel_and_palette_become_rgb() -> None:
    red = Image.new("RGB", (8, 8), (255, 0, 0))
    for source in (
        red.convert("CMYK"),
        encoded(red.convert("CMYK"), "JPEG", quality=95),
        encoded(red.quantize(), "GIF"),
    ):
        r, g, b = np.asarray(load_image(source)).reshape(-1, 3).mean(axis=0)
        assert r > 245
        assert max(g, b) < 10
    assert load_image(Image.new("1", (3, 3), 1)).getpixel((1, 1)) == (255, 255, 255)


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_of_an_animation_the_first_frame_is_taken(format: str) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    options = {"lossless": True} if format == "WEBP" else {}
    data = encoded(frames[0], format, save_all=True, append_images=frames[1:], **options)
    assert load_image(data).getpixel((4, 4)) == (255, 0, 0)


def test_a_given_image_is_not_changed_nor_shared() -> None:
    original = picture()
    loaded = load_image(original)
    loaded.putpixel((0, 0), (1, 2, 3))
    np.testing.assert_array_equal(original, picture())


def test_twenty_thousand_squared_is_refused_before_decoding() -> None:
    with pytest.raises(ImageError, match="too many"):
        load_image(png_header(20_000, 20_000))


def test_a_limit_below_pillows_own_is_kept_too(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    path.write_bytes(png_header(3000, 2000))
    with pytest.raises(ImageError, match=r"large\.png: 3000 × 2000 pixels are too many; at most 5,000,000"):
        load_image(path, max_pixels=5_000_000)
    with pytest.raises(ImageError, match="too many"):
        load_image(Image.new("1", (100, 100)), max_pixels=9_999)
    assert load_image(Image.new("1", (100, 100)), max_pixels=10_000).size == (100, 100)
    assert MAX_PIXELS == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize("size", [(1, 1), (1, 50), (50, 1)])
def test_pictures_one_pixel_wide_are_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ImageError, match="show nothing"):
        load_image(encoded(Image.new("RGB", size), "PNG"))
    assert load_image(encoded(Image.new("RGB", (2, 2)), "PNG")).size == (2, 2)


def test_a_huge_jpeg_is_decoded_smaller_and_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    image = picture(600, 500).resize((6000, 5000), Image.Resampling.NEAREST)
    loaded = load_image(encoded(image, "JPEG", exif=exif))
    assert loaded.size == (2500, 3000)
    expected = image.transpose(Image.Transpose.ROTATE_270).resize((250, 300), Image.Resampling.BOX)
    actual = loaded.resize((250, 300), Image.Resampling.BOX)
    assert np.abs(np.asarray(actual, float) - np.asarray(expected, float)).max() < 12


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP"])
def test_a_truncated_file_is_an_error_with_its_path(format: str, tmp_path: Path) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    path = tmp_path / "cut.img"
    data = encoded(noise, format)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ImageError) as caught:
        load_image(path)
    assert caught.value.source == str(path)


def test_random_damage_never_raises_anything_else() -> None:
    rng = np.random.default_rng(7)
    sound = [encoded(picture(), format) for format in ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "PPM")]
    refused = 0
    for round_ in range(700):
        data = bytearray(sound[round_ % len(sound)])
        for position in rng.integers(0, len(data), 6):
            data[position] = rng.integers(0, 256)
        try:
            assert load_image(bytes(data)).mode == "RGB"
        except ImageError:
            refused += 1
    assert 0 < refused < 700


def test_what_is_not_a_picture_says_why(tmp_path: Path) -> None:
    text = tmp_path / "notes.jpg"
    text.write_text("not a picture at all")
    with pytest.raises(ImageError, match=r"notes\.jpg: not a picture"):
        load_image(text)
    with pytest.raises(ImageError, match="no such file"):
        load_image("https://example.org/cat.jpg")
    with pytest.raises(ImageError, match="not a regular file"):
        load_image(tmp_path)
    with pytest.raises(ImageError, match="the file is empty"):
        load_image(b"")
    with pytest.raises(ImageError, match="not int"):
        load_image(3)  # type: ignore[arg-type]
    with pytest.raises(ImageError, match=r"at most 10 are read"):
        load_image(b"x" * 11, max_bytes=10)
    closed = Image.open(io.BytesIO(encoded(picture(), "PNG")))
    closed.close()
    with pytest.raises(ImageError, match="cannot be decoded"):
        load_image(closed)


def test_postscript_is_never_opened() -> None:
    with pytest.raises(ImageError, match="not a picture in a known format"):
        load_image(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.png", "a.JPG", "sub/c.webp", "sub/deep/d.gif", ".hidden/e.png", ".f.png", "notes.txt", "z.eps"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        picture().save(path) if path.suffix in (".png", ".JPG", ".webp", ".gif") else path.write_text("text")
    (tmp_path / "sub" / "broken.jpg").write_bytes(encoded(picture(), "JPEG")[:200])
    (tmp_path / "sub" / "loop").symlink_to(tmp_path, target_is_directory=True)
    return tmp_path


def test_the_walk_is_sorted_recursive_and_ends(folder: Path) -> None:
    (folder / "link.png").symlink_to(folder / "b.png")
    found = [path.relative_to(folder).as_posix() for path in walk_images(folder)]
    assert found == ["a.JPG", "b.png", "link.png", "sub/broken.jpg", "sub/c.webp", "sub/deep/d.gif"]


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no such folder"):
        list(walk_images(tmp_path / "absent"))
    file = tmp_path / "file.png"
    file.write_bytes(b"x")
    with pytest.raises(ImageError, match="cannot be listed: it is a file; give the folder it is in"):
        list(walk_images(file))
    if os.geteuid() != 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0)
        with pytest.raises(ImageError, match="cannot be listed"):
            list(walk_images(tmp_path))


def test_a_folder_inside_that_cannot_be_listed_may_be_passed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir, told = os.scandir, list[ImageError]()

    def guarded(path: str) -> object:
        if Path(path).name in ("sub", "absent"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    with pytest.raises(ImageError, match="cannot be listed"):
        list(walk_images(folder))
    assert [path.name for path in walk_images(folder, left_out=told.append)] == ["a.JPG", "b.png"]
    assert [error.source for error in told] == [str(folder / "sub")]
    with pytest.raises(ImageError, match="cannot be listed"):
        list(walk_images(folder / "absent", left_out=told.append))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_broken_files_are_listed_and_the_walk_goes_on(folder: Path, workers: int) -> None:
    loaded = list(iter_images(folder, workers=workers))
    assert [path.name for path, _ in loaded] == ["a.JPG", "b.png", "broken.jpg", "c.webp", "d.gif"]
    assert [path.name for path, image in loaded if isinstance(image, ImageError)] == ["broken.jpg"]
    assert [path for path, _ in iter_images((p for p, _ in loaded), workers=workers)] == [p for p, _ in loaded]


def test_no_more_than_prefetch_pictures_wait(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    picture().save(path)
    asked = 0

    def paths() -> object:
        nonlocal asked
        for _ in range(100):
            asked += 1
            yield path

    stream = iter_images(paths(), workers=2, prefetch=3)  # type: ignore[arg-type]
    next(stream)
    assert asked <= 4
    stream.close()  # type: ignore[attr-defined]
    assert asked <= 4
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lcse-images")]
    with pytest.raises(InvalidOption):
        next(iter_images([path], prefetch=0))


def test_a_picture_is_told_by_its_name() -> None:
    assert names_picture(Path("d.webp"))
    assert all(map(names_picture, ["a.png", "b/c.JPG"]))
    assert not any(map(names_picture, ["a.txt", "png", ".png", "a.png.pdf", ""]))


def test_content_hash_is_of_bytes_wherever_they_are(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"abc" * 1_000_000)
    assert content_hash(path) == content_hash(str(path)) == content_hash(b"abc" * 1_000_000)
    assert content_hash(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(ImageError, match="cannot be read"):
        content_hash(tmp_path / "absent")


def test_real_photographs_load(shared_data: Path) -> None:
    loaded = [image for _, image in iter_images(sorted((shared_data / "photos").glob("*.jpg"))[:40])]
    assert len(loaded) == 40
    assert all(isinstance(image, Image.Image) and image.mode == "RGB" and min(image.size) >= 200 for image in loaded)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_came_before_a_failing_source_is_delivered(folder: Path, workers: int) -> None:
    def paths() -> Iterator[Path]:
        yield from [folder / "b.png"] * 6
        raise RuntimeError("listing failed")

    stream = iter_images(paths(), workers=workers)
    assert [path.name for path, _ in islice(stream, 6)] == ["b.png"] * 6
    with pytest.raises(RuntimeError, match="listing failed"):
        next(stream)


def test_what_is_no_picture_is_named_by_its_kind() -> None:
    with pytest.raises(ImageError) as caught:
        load_image(bytearray(100_000))  # type: ignore[arg-type]
    assert "not bytearray" in str(caught.value)
    assert len(str(caught.value)) < 200


def test_pillows_own_limit_is_told_where_it_is_the_lower_one() -> None:
    with pytest.raises(ImageError, match="at most 178,956,970"):
        load_image(png_header(20_000, 20_000), max_pixels=10**9)
