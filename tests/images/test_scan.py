"""Scanning folders and encoding what they hold: odd files are told, never waited for, and memory stays bounded."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.encoders.protocol import FloatArray, ImageSource
from lcse_plugins.errors import EncoderError, ImageError, InvalidOption
from lcse_plugins.images import scan
from lcse_plugins.images.encoding import encode_files
from lcse_plugins.images.reading import load_image
from lcse_plugins.images.scan import passed_over_note, scan_folder, walk_images
from lcse_plugins.index import ImageIndex
from lcse_plugins.testing import ToyEncoder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.png", "a.JPG", "sub/c.webp", "sub/deep/d.gif", ".hidden/e.png", ".f.png", "notes.txt", "z.eps"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".txt", ".eps"):
            path.write_text("text")
        else:
            Image.new("RGB", (8, 8), (len(name), 0, 0)).save(path)
    (tmp_path / "photos" / "sub" / "loop").symlink_to(tmp_path, target_is_directory=True)
    return tmp_path / "photos"


def names(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in walk_images(folder)]


def faults(folder: Path) -> dict[str, str]:
    found = [error for error in scan_folder(folder) if isinstance(error, ImageError)]
    return {Path(error.source).name: error.reason for error in found}


def test_the_scan_is_sorted_recursive_and_ends(folder: Path) -> None:
    (folder / "link.png").symlink_to(folder / "b.png")
    assert names(folder) == ["a.JPG", "b.png", "link.png", "sub/c.webp", "sub/deep/d.gif"]
    assert faults(folder) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="pipes, devices and names of any bytes")
def test_only_regular_files_of_bounded_size_are_given_and_the_rest_is_told(folder: Path) -> None:
    os.mkfifo(folder / "pipe.png")
    (folder / "zero.png").symlink_to("/dev/zero")
    (folder / "nowhere.png").symlink_to(folder / "absent")
    (folder / "loop.png").symlink_to(folder / "loop.png")
    (folder / "empty.png").touch()
    with open(folder / "huge.png", "wb") as stream:
        stream.truncate(600 * 1024 * 1024)
    os.close(os.open(os.fsencode(folder) + b"/caf\xe9.png", os.O_CREAT | os.O_WRONLY))
    assert names(folder) == ["a.JPG", "b.png", "sub/c.webp", "sub/deep/d.gif"]
    assert faults(folder) == {
        "pipe.png": "not a regular file",
        "zero.png": "not a regular file",
        "nowhere.png": "there is no such file",
        "loop.png": "cannot be read (Too many levels of symbolic links)",
        "empty.png": "the file is empty",
        "huge.png": "629,145,600 bytes are too many; at most 160,000,000 are read; LCSE_PICTURE_MEMORY sets the limit",
        "caf\udce9.png": "its name is not valid Unicode; rename it",
    }
    found = dict(encode_files(ToyEncoder(), scan_folder(folder), batch_size=3))
    assert sum(isinstance(vector, ImageError) for vector in found.values()) == 7
    assert len(found) == 11
    report = ImageIndex.build(folder, folder.parent / "idx", encoder=ToyEncoder())
    assert (report.added, len(report.broken)) == (4, 7)


def test_a_folder_that_cannot_be_listed_is_an_error(folder: Path) -> None:
    for name, reason in (("absent", "no such folder"), ("b.png", "it is a file; give its folder")):
        with pytest.raises(ImageError, match=reason):
            list(scan_folder(folder / name))


def test_what_is_passed_over_is_counted_with_the_way_to_read_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.heic", "b.HEIC", "c.avif", "d.cr2", "e.txt"):
        (folder / name).write_bytes(b"x")
    monkeypatch.setattr(scan, "picture_suffixes", lambda: frozenset({".jpg", ".png"}))
    passed_over: Counter[str] = Counter()
    list(scan_folder(folder, passed_over=passed_over))
    assert passed_over == {".heic": 2, ".avif": 1, ".cr2": 1}
    note = passed_over_note(passed_over)
    assert note is not None
    assert note.startswith('1 .avif, 2 .heic passed over: to read them, pip install "lcse-plugins[heic]"; 1 .cr2')


def test_vectors_and_errors_come_in_order(folder: Path) -> None:
    (folder / "bad.png").write_bytes(b"not a picture")
    encoder = ToyEncoder()
    found = list(encode_files(encoder, scan_folder(folder), batch_size=2))
    assert [path.name for path, _ in found] == ["a.JPG", "b.png", "bad.png", "c.webp", "d.gif"]
    for path, vector in found:
        assert isinstance(vector, ImageError) == (path.name == "bad.png")
        if not isinstance(vector, ImageError):
            np.testing.assert_array_equal(vector, encoder.encode_images([load_image(path)])[0])


def test_an_encoder_that_leaves_pictures_is_told(folder: Path) -> None:
    class Lazy(ToyEncoder):
        def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
            return super().encode_images(list(islice(images, 2)))

    with pytest.raises(EncoderError, match="gave 2 vectors"):
        list(encode_files(Lazy(), walk_images(folder)))
    with pytest.raises(InvalidOption, match="batch_size"):
        next(encode_files(ToyEncoder(), walk_images(folder), batch_size=0))


PEAK = """
    import sys
    from lcse_plugins.encoders.starter import StarterEncoder
    from lcse_plugins.images.encoding import encode_files
    from lcse_plugins.images.scan import scan_folder
    vectors = [vector.shape for _, vector in encode_files(StarterEncoder(), scan_folder(sys.argv[1]))]
    assert set(vectors) == {(256,)}, vectors
    print(peak())
"""


def write_large_photographs(folder: Path, names: Iterable[str]) -> Path:
    """JPEG files of 24 megapixels, each with other bytes."""
    noise = np.random.default_rng(0).integers(0, 256, (250, 375, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).resize((6000, 4000)).save(stream, "JPEG", quality=85)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.jpg").write_bytes(stream.getvalue() + name.encode())
    return folder


def run_python(body: str, *arguments: object, **environment: str) -> str:
    """What a process prints; `peak()` is there the most memory it held, in MB."""
    peak = "def peak(): return int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1024"
    code = f"{peak}\n{textwrap.dedent(body)}"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    settings = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_large_photographs_are_encoded_in_little_memory(tmp_path: Path) -> None:
    photos = write_large_photographs(tmp_path / "photos", "abcdef")
    assert int(run_python(PEAK, photos)) < 600
