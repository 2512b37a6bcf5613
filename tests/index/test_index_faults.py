"""The image index and what goes wrong around it: passing faults, disks that are away, readers and other writers."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from lcse_plugins.errors import ImageError
from lcse_plugins.index import ImageIndex
from tests.index.test_index import ColourEncoder, assert_same_as_fresh, vectors_file, write_picture, write_pictures


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "photos", 5)


@pytest.fixture
def encoder() -> ColourEncoder:
    return ColourEncoder()


@pytest.mark.parametrize("year", [-300, 2300])
def test_a_file_of_any_date_is_indexed(year: int, photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    moment = (year - 1970) * 31_556_952 * 10**9
    try:
        os.utime(photos / "00.png", ns=(moment, moment))
    except (OSError, OverflowError):
        pytest.skip("this file system has no such dates")
    assert ImageIndex.build(photos, tmp_path / "idx", encoder=encoder).added == 5
    assert ImageIndex.build(photos, tmp_path / "idx", encoder=encoder).unchanged == 5
    assert encoder.encoded == 5


@pytest.mark.parametrize("step", ["stat", "open"])
def test_a_known_picture_that_cannot_be_read_is_told_and_kept(
    step: str, photos: Path, tmp_path: Path, encoder: ColourEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    before, real = ImageIndex.open(tmp_path / "idx"), getattr(os, step)
    os.utime(photos / "00.png", (1, 1))

    def failing(path: Any, *options: Any, **more: Any) -> Any:
        if not isinstance(path, int) and Path(path).name == "00.png":
            raise OSError(errno.ESTALE, "Stale file handle")
        return real(path, *options, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, step, failing)
        for _ in range(2):
            report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
            assert (report.removed, report.unchanged) == (0, 4)
            (told,) = report.broken
            assert told.reason == "cannot be read (Stale file handle); what the index knows of it is kept"
    kept = ImageIndex.open(tmp_path / "idx")
    assert kept.ids == before.ids
    assert [Path(error.source).name for error in kept.broken] == ["00.png"]
    assert ImageIndex.build(photos, tmp_path / "idx", encoder=encoder).unchanged == 5
    assert encoder.encoded == 5
    assert_same_as_fresh(photos, tmp_path, encoder)


def test_a_known_picture_whose_target_is_gone_is_dropped(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    (photos / "00.png").rename(tmp_path / "elsewhere.png")
    (photos / "00.png").symlink_to(tmp_path / "elsewhere.png")
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    (tmp_path / "elsewhere.png").unlink()
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert "00.png" not in ImageIndex.open(tmp_path / "idx").ids


def test_a_reader_is_not_touched_by_a_run_after_an_interrupted_one(
    photos: Path, tmp_path: Path, encoder: ColourEncoder
) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    reader = ImageIndex.open(tmp_path / "idx")
    (photos / reader.ids[-1]).write_text("not a picture")

    def interrupt(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, progress=interrupt)
    write_picture(photos / "zz.png", 100)
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    reader.verify()
    assert_same_as_fresh(photos, tmp_path, encoder)
    assert vectors_file(tmp_path / "idx").read_bytes() == vectors_file(tmp_path / "fresh").read_bytes()


def test_loops_of_links_are_told(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (photos / "loop.png").symlink_to(photos / "loop.png")
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert [Path(error.source).name for error in report.broken] == ["loop.png"]
    with pytest.raises(ImageError, match="loop"):
        ImageIndex.build(tmp_path / "loop", tmp_path / "new", encoder=encoder)
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="file names of any bytes exist on Linux")
def test_a_folder_whose_path_is_not_text_is_refused(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    photos.rename(folder)
    with pytest.raises(ImageError, match="path is not valid Unicode; rename"):
        ImageIndex.build(folder, tmp_path / "idx", encoder=encoder)
    assert not (tmp_path / "idx").exists()
