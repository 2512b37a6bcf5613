"""Safe image loading, on files the tests write themselves."""

from __future__ import annotations

import io
import struct
import zlib
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.images.reading import load_image, load_photograph
from lcse_plugins.images.thumbnails import jpeg_thumbnail
from tests.images.test_scan import run_python


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
def test_exif_orientation_is_applied_once(orientation: int) -> None:
    turns = "FLIP_LEFT_RIGHT ROTATE_180 FLIP_TOP_BOTTOM TRANSPOSE ROTATE_90 TRANSVERSE ROTATE_270".split()
    image = picture() if orientation == 1 else picture().transpose(Image.Transpose[turns[orientation - 2]])
    exif = Image.Exif()
    exif[0x0112] = orientation
    loaded = load_image(encoded(image, "PNG", exif=exif))
    assert loaded.size == (40, 30)
    np.testing.assert_allclose(np.asarray(loaded, float), np.asarray(picture(), float), atol=16)
    np.testing.assert_array_equal(load_image(loaded), loaded)  # as an encoder does with what was loaded before


def test_deep_grey_is_scaled_not_clipped() -> None:
    ramp = np.tile(np.linspace(0, 65535, 256).astype(np.uint16), (4, 1))
    expected = np.rint(ramp / 257).astype(np.uint8)
    for image in (Image.fromarray(ramp), Image.fromarray(ramp.astype(np.int32))):
        for source in (image, encoded(image, "TIFF")):
            np.testing.assert_array_equal(np.asarray(load_image(source))[..., 0], expected)
    values = np.tile(np.linspace(-3.0, 7.0, 256, dtype=np.float32), (4, 1))
    stretched = np.asarray(load_image(encoded(Image.fromarray(values), "TIFF")))
    np.testing.assert_array_equal(stretched[0, :, 2], np.arange(256))
    assert load_image(Image.new("F", (3, 3), float("nan"))).getpixel((0, 0)) == (0, 0, 0)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparency_is_laid_over_white(mode: str) -> None:
    half = Image.new("RGBA", (4, 4), (0, 0, 0, 128))
    half.putpixel((0, 0), (0, 0, 0, 0))
    loaded = load_image(encoded(half.quantize(), "PNG") if mode == "P" else half.convert(mode))
    assert loaded.getpixel((0, 0)) == (255, 255, 255)
    assert np.abs(np.asarray(loaded)[1, 1].astype(int) - 127).max() <= 1
    declared = encoded(Image.new("L", (4, 4), 0), "PNG", transparency=0)  # one grey that counts as transparent
    assert load_image(declared).getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_of_an_animation_the_first_frame_is_taken(format: str) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    options = {"lossless": True} if format == "WEBP" else {}
    data = encoded(frames[0], format, save_all=True, append_images=frames[1:], **options)
    assert load_image(data).getpixel((4, 4)) == (255, 0, 0)


def test_pictures_one_pixel_wide_are_refused() -> None:
    with pytest.raises(ImageError, match="show nothing"):
        load_image(encoded(Image.new("RGB", (1, 50)), "PNG"))
    assert load_image(encoded(Image.new("RGB", (2, 2)), "PNG")).size == (2, 2)


def test_a_huge_jpeg_is_decoded_smaller_and_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    image = picture(640, 480).resize((3200, 2400), Image.Resampling.NEAREST)
    loaded = load_image(encoded(image, "JPEG", exif=exif))
    assert loaded.size == (1200, 1600)
    expected = image.transpose(Image.Transpose.ROTATE_270).resize((240, 320), Image.Resampling.BOX)
    actual = loaded.resize((240, 320), Image.Resampling.BOX)
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


def test_what_is_not_a_picture_says_why(tmp_path: Path) -> None:
    text = tmp_path / "notes.jpg"
    text.write_text("not a picture at all")
    with pytest.raises(ImageError, match=r"notes\.jpg: not a picture"):
        load_image(text)
    with pytest.raises(ImageError, match="no such file"):
        load_image("https://example.org/cat.jpg")
    with pytest.raises(ImageError, match="not a picture in a known format"):  # what would run another program
        load_image(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n")
    with pytest.raises(ImageError, match="the file is empty"):
        load_image(b"")
    with pytest.raises(ImageError, match="not bytearray"):
        load_image(bytearray(100_000))  # type: ignore[arg-type]
    for side in (9_500, 20_000):  # beyond our limit, and beyond Pillow's
        with pytest.raises(ImageError, match="too many"):
            load_image(png_header(side, side))
    with pytest.raises(ImageError, match="too many on a side; at most 65,535"):
        load_image(Image.new("L", (70_000, 2)))
    assert load_image(encoded(picture(), "PNG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")).size == (40, 30)
    closed = Image.open(io.BytesIO(encoded(picture(), "PNG")))
    closed.close()
    with pytest.raises(ImageError, match="cannot be decoded"):
        load_image(closed)


def exif_of(taken: str | None = None, changed: str | None = None) -> Image.Exif:
    exif = Image.Exif()
    if taken is not None:
        exif.get_ifd(0x8769)[0x9003] = taken
    if changed is not None:
        exif[0x0132] = changed
    return exif


@pytest.mark.parametrize(
    ("exif", "expected"),
    [
        (exif_of("2024:05:01 10:22:33"), datetime(2024, 5, 1, 10, 22, 33)),
        (exif_of("2024:05:01 10:22:33", "2025:01:01 00:00:00"), datetime(2024, 5, 1, 10, 22, 33)),
        (exif_of(changed="2025:01:01 00:00:00"), datetime(2025, 1, 1)),
        (exif_of("0000:00:00 00:00:00"), None),
        (exif_of(), None),
    ],
)
def test_the_date_of_a_photograph_is_the_cameras(exif: Image.Exif, expected: datetime | None) -> None:
    assert load_photograph(encoded(picture(), "JPEG", exif=exif)).taken == expected


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "CMYK", "I;16", "I", "F"])
def test_a_large_picture_of_any_kind_is_made_smaller(mode: str) -> None:
    grey = Image.fromarray(np.tile(np.linspace(0, 255, 3200).astype(np.uint8), (1600, 1)))
    if mode[0] in "IF":
        factor = {"I;16": 257, "I": 1, "F": 0.1}[mode]
        image = Image.fromarray((np.asarray(grey, float) * factor).astype({"I;16": "<u2", "I": "i4", "F": "f4"}[mode]))
    else:
        image = grey.convert("RGB").convert(mode)
    loaded = load_image(image)
    assert loaded.size == (1600, 800)
    assert load_image(Image.new(mode, (8000, 1200))).size == (4000, 600)
    row = np.asarray(loaded)[400, :, 0].astype(float)
    expected = np.asarray(grey.reduce(2))[400].astype(float)
    assert np.abs(row.reshape(-1, 80).mean(axis=1) - expected.reshape(-1, 80).mean(axis=1)).max() < 6


def tiled_tiff(side: int) -> bytes:
    """A TIFF file of a few bytes whose one deflated tile is far larger than its picture."""
    data = zlib.compress(b"\0" * 100)
    tags = {256: 16, 257: 16, 258: 8, 259: 8, 262: 1, 277: 1, 322: side, 323: side, 324: 0, 325: len(data)}
    tags[324] = 8 + 2 + 12 * len(tags) + 4
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + b"\0" * 4 + data


def test_a_tile_larger_than_any_picture_is_refused_before_decoding() -> None:
    with pytest.raises(ImageError, match="a tile of 46000 × 46000 pixels is too large"):
        load_image(tiled_tiff(46_000))


def with_exif(data: bytes) -> bytes:
    """A small PNG with this in its EXIF chunk."""
    png = encoded(picture(), "PNG")
    chunk = struct.pack(">I", len(data)) + b"eXIf" + data + struct.pack(">I", zlib.crc32(b"eXIf" + data))
    place = png.index(b"IDAT") - 4
    return png[:place] + chunk + png[place:]


def test_thousands_of_damaged_tags_print_nothing(tmp_path: Path) -> None:
    tags = b"".join(struct.pack("<HHII", tag, 4, 10**6, 10**6) for tag in range(1000, 3000))
    (tmp_path / "tags.png").write_bytes(with_exif(b"II*\0" + struct.pack("<IH", 8, 2000) + tags + b"\0" * 4))
    code = """
        import io, sys
        from lcse_plugins.images.reading import load_image
        sys.stderr = io.StringIO()
        print(load_image(sys.argv[1]).size, repr(sys.stderr.getvalue()[:300]))
    """
    assert run_python(code, tmp_path / "tags.png") == "(40, 30) ''\n"


def many_scans(count: int) -> bytes:
    """A progressive JPEG that repeats its last scan."""
    data = encoded(picture(200, 150), "JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * count + data[-2:]


def test_a_jpeg_of_very_many_scans_is_refused_before_decoding(tmp_path: Path) -> None:
    assert load_image(many_scans(1)).size == (200, 150)
    path = tmp_path / "scans.jpg"
    path.write_bytes(many_scans(1000))
    for source in (path, path.read_bytes()):
        with pytest.raises(ImageError, match="more than 100 scans"):
            load_image(source)


def test_a_video_behind_a_photograph_is_not_counted_as_scans() -> None:
    video = np.random.default_rng(0).bytes(10_000_000)  # 150 times what looks like the beginning of a scan
    assert load_image(encoded(picture(), "JPEG") + video).size == (40, 30)


def test_the_limit_of_memory_can_be_set(tmp_path: Path) -> None:
    path = tmp_path / "large.webp"
    path.write_bytes(encoded(Image.new("RGB", (4500, 4500)), "WEBP"))
    with pytest.raises(
        ImageError, match=r"at most 20,000,000 of WEBP are decoded \(LCSE_PICTURE_MEMORY sets the limit"
    ):
        load_image(path)
    load = "import sys; from lcse_plugins.images.reading import load_image; print(load_image(sys.argv[1]).size)"
    assert run_python(load, path, LCSE_PICTURE_MEMORY="400") == "(1125, 1125)\n"


def test_heic_photographs_load(tmp_path: Path) -> None:
    heif = pytest.importorskip("pillow_heif")
    path = tmp_path / "phone.heic"
    heif.from_pillow(picture(64, 48)).save(path)
    loaded = load_image(path)
    assert loaded.size == (64, 48)
    assert np.abs(np.asarray(loaded, float) - np.asarray(picture(64, 48), float)).mean() < 8


def test_a_thumbnail_keeps_within_its_bounds() -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (300, 600, 3), dtype=np.uint8))
    whole = jpeg_thumbnail(noise, max_side=512)
    assert whole is not None
    fitted = jpeg_thumbnail(noise, max_side=512, max_bytes=len(whole) // 3)
    assert fitted is not None
    assert len(fitted) <= len(whole) // 3
    for data, size in ((whole, (512, 256)), (fitted, (256, 128)), (jpeg_thumbnail(picture()), (40, 30))):
        opened = Image.open(io.BytesIO(data or b""))
        assert (opened.format, opened.size) == ("JPEG", size)
    assert jpeg_thumbnail(noise, max_bytes=100) is None
    with pytest.raises(InvalidOption, match="max_side"):
        jpeg_thumbnail(noise, max_side=3)
