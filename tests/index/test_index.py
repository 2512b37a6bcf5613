"""The image index: built, updated, killed, damaged and searched."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.encoders.protocol import FloatArray, ImageSource
from lcse_plugins.errors import ImageError, IndexFileError, InvalidCandidate, InvalidOption
from lcse_plugins.images.reading import load_image
from lcse_plugins.index import ImageIndex, cache_place, is_index
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.calibration import Calibration
from tests.images.test_scan import run_python

ROOT = Path(__file__).parents[2]
COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}


class ColourEncoder:
    """A real, tiny encoder: a picture is its 4 × 4 thumbnail, a text the colours it names."""

    dimension = 48
    calibration = Calibration(mu=0.75, beta=20.0)

    def __init__(self, name: str = "colours-1") -> None:
        self.encoder_id = name
        self.encoded = 0

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        rows = [sum((np.tile(c, 16) for n, c in COLOURS.items() if n in text), np.full(48, 1.0)) for text in texts]
        return self._unit(np.array(rows))

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        rows = [np.asarray(load_image(image).resize((4, 4)), dtype=np.float64).ravel() + 1 for image in images]
        self.encoded += len(rows)
        return self._unit(np.array(rows).reshape(-1, 48))

    @staticmethod
    def _unit(rows: np.ndarray) -> FloatArray:
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def write_picture(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, "PNG")


def write_pictures(folder: Path, count: int) -> Path:
    for n in range(count):
        write_picture(folder / ("trip" if n % 3 else "") / f"{n:02}.png", n)
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "photos", 23)


@pytest.fixture
def encoder() -> ColourEncoder:
    return ColourEncoder()


@pytest.fixture
def out(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> Path:
    """The index of the photographs."""
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    return tmp_path / "idx"


def vectors_file(index: Path) -> Path:
    (path,) = index.glob("vectors-*.bin")
    return path


def test_an_index_holds_one_vector_per_picture(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    calls: list[tuple[int, int]] = []
    report = ImageIndex.build(
        photos, tmp_path / "idx", encoder=encoder, batch_size=5, progress=lambda *call: calls.append(call)
    )
    assert (report.added, report.updated, report.removed, report.unchanged, report.broken) == (23, 0, 0, 0, ())
    assert calls == [(n, 23) for n in (0, 5, 10, 15, 20, 23)]
    index = ImageIndex.open(tmp_path / "idx", encoder=encoder)
    assert list(index.ids) == sorted(p.relative_to(photos).as_posix() for p in photos.rglob("*.png"))
    assert isinstance(index.vectors, np.memmap)
    np.testing.assert_array_equal(index.vectors, encoder.encode_images(index.paths))
    candidate = index.candidate(7)
    assert (candidate.id, candidate.payload) == (index.ids[7], index.paths[7])
    np.testing.assert_array_equal(candidate.vector, index.vectors[7])


def test_new_changed_moved_and_removed_files_are_followed(photos: Path, out: Path, tmp_path: Path) -> None:
    held = ImageIndex.open(out)
    snapshot = np.array(held.vectors)
    write_picture(photos / "aaa.png", 100)
    write_picture(photos / "trip" / "01.png", 101)
    (photos / "03.png").rename(photos / "zzz.png")
    (photos / "trip" / "22.png").unlink()
    shutil.copy(photos / "00.png", photos / "copy.png")
    os.utime(photos / "06.png")  # touched, not changed
    again = ColourEncoder()
    report = ImageIndex.build(photos, out, encoder=again, batch_size=4)
    assert (report.added, report.updated, report.removed, report.unchanged, again.encoded) == (3, 1, 2, 20, 2)
    assert_same_as_fresh(photos, tmp_path, again)
    assert vectors_file(out).read_bytes() == vectors_file(tmp_path / "fresh").read_bytes()
    np.testing.assert_array_equal(held.vectors, snapshot)  # what was opened before stays as it was


def test_broken_files_are_listed_until_they_are_whole(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    (photos / "05.png").write_text("no picture")
    (photos / "half.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut short")
    (photos / "dangling.png").symlink_to(photos / "nowhere.png")
    for run in range(2):
        report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
        assert (report.added, report.unchanged) == ((23, 0) if run == 0 else (0, 23))
        assert [Path(error.source).name for error in report.broken] == ["05.png", "dangling.png", "half.jpg"]
        assert report.broken[0].reason == "not a picture in a known format"
    index = ImageIndex.open(tmp_path / "idx")
    assert (len(index), len(index.broken)) == (23, 3)
    write_picture(photos / "05.png", 5)
    (photos / "00.png").write_text("broken now")
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert (report.added, report.removed, report.unchanged) == (1, 0, 22)
    assert [Path(error.source).name for error in report.broken] == ["00.png", "dangling.png", "half.jpg"]
    assert_same_as_fresh(photos, tmp_path, encoder)


def test_a_folder_inside_that_cannot_be_listed_is_left_out_and_its_pictures_are_kept(
    photos: Path, tmp_path: Path, encoder: ColourEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (photos / "trip" / "half.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut short")
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    before = ImageIndex.open(tmp_path / "idx")
    (photos / "00.png").unlink()
    write_picture(photos / "tripod" / "new.png", 100)
    scandir = os.scandir

    def guarded(path: Any) -> Any:
        if Path(path) == photos / "trip":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert (report.added, report.updated, report.removed, report.unchanged) == (1, 0, 1, 22)
    assert [Path(error.source).name for error in report.broken] == ["trip", "half.jpg"]
    assert "cannot be listed" in report.broken[0].reason
    assert set(ImageIndex.open(tmp_path / "idx").ids) == {*before.ids, "tripod/new.png"} - {"00.png"}
    monkeypatch.undo()
    assert ImageIndex.build(photos, tmp_path / "idx", encoder=encoder).unchanged == 23
    assert_same_as_fresh(photos, tmp_path, encoder)


def forbid_listing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    scandir = os.scandir

    def guarded(path: Any) -> Any:
        if Path(path) == folder:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)


def test_a_folder_that_lost_all_its_pictures_leaves_the_index_alone(
    photos: Path, out: Path, encoder: ColourEncoder
) -> None:
    for path in photos.rglob("*.png"):
        path.unlink()
    with pytest.raises(ImageError, match=r"no picture files .*idx still holds 23 .* mounted.* delete"):
        ImageIndex.build(photos, out, encoder=encoder)
    assert len(ImageIndex.open(out)) == 23


def test_a_reader_sees_the_index_as_of_one_moment(photos: Path, out: Path) -> None:
    done = threading.Event()

    def keep_changing() -> None:
        for n in range(8):
            write_picture(photos / "a.png", 100 + n)
            ImageIndex.build(photos, out, encoder=ColourEncoder(), batch_size=5)
            (photos / "a.png").unlink()
            ImageIndex.build(photos, out, encoder=ColourEncoder(), batch_size=5)
        done.set()

    with ThreadPoolExecutor(1) as pool:
        writing, opened = pool.submit(keep_changing), 0
        while not done.is_set() and not writing.done():
            index = ImageIndex.open(out)  # it verifies every vector
            assert len(index) in (23, 24)
            opened += 1
        writing.result()
    assert opened


def assert_same_as_fresh(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "fresh", encoder=encoder)
    one, other = ImageIndex.open(tmp_path / "idx"), ImageIndex.open(tmp_path / "fresh")
    assert one.ids == other.ids
    np.testing.assert_array_equal(one.vectors, other.vectors)
    assert [error.reason for error in one.broken] == [error.reason for error in other.broken]


def test_another_encoder_is_refused_and_both_are_named(photos: Path, out: Path) -> None:
    other = ColourEncoder("colours-2")
    for attempt in (lambda: ImageIndex.open(out, encoder=other), lambda: ImageIndex.build(photos, out, encoder=other)):
        with pytest.raises(IndexFileError, match=r"made with encoder 'colours-1' .* not with 'colours-2'"):
            attempt()
    assert len(ImageIndex.open(out)) == 23


def test_newcomers_mistakes_are_told(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    with pytest.raises(IndexFileError, match=r"no image index at .*; make one with `lcse index"):
        ImageIndex.open(tmp_path / "absent")
    with pytest.raises(ImageError, match="no such folder"):
        ImageIndex.build(tmp_path / "absent", tmp_path / "idx", encoder=encoder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImageError, match="no picture files"):
        ImageIndex.build(tmp_path / "empty", tmp_path / "idx", encoder=encoder)
    with pytest.raises(IndexFileError, match="holds other files"):
        ImageIndex.build(photos, photos, encoder=encoder)
    with pytest.raises(IndexFileError, match="cannot be written"):
        ImageIndex.build(photos, photos / "00.png", encoder=encoder)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ImageError, match="loop"):
        ImageIndex.build(tmp_path / "loop", tmp_path / "idx", encoder=encoder)
    with pytest.raises(InvalidOption, match="at least one folder"):
        ImageIndex.build([], tmp_path / "idx", encoder=encoder)
    if sys.platform == "linux":  # file names of any bytes
        strange = photos.rename(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")))
        with pytest.raises(ImageError, match="path is not valid Unicode; rename"):
            ImageIndex.build(strange, tmp_path / "idx", encoder=encoder)
    assert not (tmp_path / "idx").exists()


def test_an_index_belongs_to_its_folder(photos: Path, out: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    write_picture(tmp_path / "other" / "a.png", 1)
    photos.rename(tmp_path / "away")
    with pytest.raises(IndexFileError, match=r"is of .*photos, which is not there, not of .*other.*mounted"):
        ImageIndex.build(tmp_path / "other", out, encoder=encoder)
    assert len(ImageIndex.open(out)) == 23


def test_a_picture_is_found_by_id_and_by_path(
    photos: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = ImageIndex.open(out)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "near").symlink_to(photos / "trip" / "04.png")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("trip/04.png", photos / "trip" / "04.png", "photos/../photos/trip/04.png", "near"):
        assert index.ids[index.position(name)] == "trip/04.png"
    for name in ("99.png", "loop", "loop/00.png"):
        with pytest.raises(ImageError, match="not in the index"):
            index.position(name)


def test_the_scorer_searches_an_index(tmp_path: Path, encoder: ColourEncoder) -> None:
    for names in ("red", "green", "blue", "red-green", "red-blue"):
        halves = [COLOURS[name] for name in names.split("-")]
        image = Image.new("RGB", (16, 16), halves[0])
        image.paste(halves[-1], (8, 0, 16, 16))
        (tmp_path / "photos").mkdir(exist_ok=True)
        image.save(tmp_path / "photos" / f"{names}.png")
    ImageIndex.build(tmp_path / "photos", tmp_path / "idx", encoder=encoder)
    index = ImageIndex.open(tmp_path / "idx", encoder=encoder)
    scorer = LogicScorer(encoder)
    ranking = scorer.search("red and not green", index, limit=5)
    assert ranking.exact
    assert ranking[0].id == "red.png"
    with pytest.raises(InvalidCandidate, match="encoded by 'colours-1', the query by 'colours-2'"):
        LogicScorer(ColourEncoder("colours-2")).search("red", index)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET value = 'lcse-index-0'",
        "UPDATE meta SET value = replace(value, '48', '47')",
        "DELETE FROM meta WHERE name = 'facts'",
        "UPDATE files SET row = -1 WHERE path = '00.png'",
        "UPDATE files SET path = x'ff' WHERE path = '00.png'",
        "UPDATE files SET folder = 1 WHERE path = '00.png'",
        "UPDATE files SET path = '/etc/secret.png' WHERE path = '00.png'",
        "UPDATE files SET path = 'trip/../../secret.png' WHERE path = '00.png'",
    ],
)
def test_a_table_that_says_what_it_cannot_is_told_as_damage(
    statement: str, photos: Path, out: Path, encoder: ColourEncoder
) -> None:
    with closing(sqlite3.connect(out / "index.sqlite")) as table, table:
        table.execute(statement)
    for attempt in (lambda: ImageIndex.open(out), lambda: ImageIndex.build(photos, out, encoder=encoder)):
        with pytest.raises(IndexFileError, match="of this version" if "-0" in statement else "is damaged"):
            attempt()


def flip(path: Path, *positions: int) -> None:
    data = bytearray(path.read_bytes())
    for position in positions:
        data[position] ^= 0x40
    path.write_bytes(data)


def only_nan(path: Path) -> None:
    path.write_bytes(np.full(path.stat().st_size // 4, np.nan, np.float32).tobytes())


@pytest.mark.parametrize(
    ("harm", "pictures"),
    [
        (lambda path: flip(path, 48 * 4 * 9 + 3), 1),
        (lambda path: os.truncate(path, 48 * 4 * 9), 14),
        (only_nan, 23),
        (Path.unlink, 23),
    ],
)
def test_damaged_vectors_are_never_served_and_the_next_run_mends_them(
    harm: Callable[[Path], object], pictures: int, photos: Path, out: Path, tmp_path: Path
) -> None:
    harm(vectors_file(out))
    with pytest.raises(IndexFileError, match="is damaged"):
        ImageIndex.open(out)
    again = ColourEncoder()
    report = ImageIndex.build(photos, out, encoder=again)
    assert (report.repaired, report.unchanged, again.encoded) == (pictures, 23 - pictures, pictures)
    assert report.broken == ()
    assert_same_as_fresh(photos, tmp_path, again)


def test_of_a_large_index_the_rows_that_are_returned_are_checked(
    out: Path, encoder: ColourEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcse_plugins.index.image_index.CHECKED_WHOLE", 0)
    scorer = LogicScorer(encoder)
    first, *_ = scorer.search("red and not green", ImageIndex.open(out), limit=23)
    row = ImageIndex.open(out).position(str(first.id))
    flip(vectors_file(out), 48 * 4 * row)  # the lowest bits: the ranking stays
    index = ImageIndex.open(out)
    for query in ("red and not green", "red"):
        with pytest.raises(IndexFileError, match=f"the vectors of {first.id} have changed.*run `lcse index` again"):
            scorer.search(query, index, limit=23)
    with pytest.raises(IndexFileError, match="is damaged"):
        index.part([row])
    only_nan(vectors_file(out))
    with pytest.raises(IndexFileError, match="is damaged"):
        scorer.search("red and not green", ImageIndex.open(out))


@pytest.mark.skipif(os.name != "posix", reason="needs permissions of POSIX")
def test_only_the_owner_reads_an_index(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    before = os.umask(0)
    try:
        for name in ("0.png", "1.png"):
            write_picture(photos / name, 100)
            ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    finally:
        os.umask(before)
    assert {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "idx").iterdir()} == {"0o600"}


def test_several_folders_make_one_index(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    write_picture(tmp_path / "camera" / "00.png", 100)
    report = ImageIndex.build([photos, tmp_path / "camera", photos / "trip"], tmp_path / "idx", encoder=encoder)
    assert (report.added, report.path) == (24, tmp_path / "idx")
    index = ImageIndex.open(tmp_path / "idx")
    assert index.folders == (photos, tmp_path / "camera")
    assert {"camera/00.png", "photos/00.png", "photos/trip/01.png"} <= set(index.ids)
    assert index.paths[index.position("camera/00.png")] == tmp_path / "camera" / "00.png"
    np.testing.assert_array_equal(index.vectors, encoder.encode_images(index.paths))
    added = write_pictures(tmp_path / "added", 10)
    ImageIndex.build([added, photos, tmp_path / "camera"], tmp_path / "idx", encoder=encoder)
    assert len(ImageIndex.open(tmp_path / "idx")) == 34
    with pytest.raises(IndexFileError, match=r"is of .*camera, not of .*photos or .*added; name .*camera too"):
        ImageIndex.build([photos, added], tmp_path / "idx", encoder=encoder)


def test_without_a_place_the_index_goes_into_the_cache_folder(
    photos: Path, tmp_path: Path, encoder: ColourEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    report = ImageIndex.build(photos, encoder=encoder)
    assert report.path == cache_place(photos, encoder)
    assert report.path.is_relative_to(tmp_path / "cache" / "lcse") or sys.platform != "linux"
    assert is_index(report.path)
    assert not is_index("a query\0")
    others = {cache_place(photos, ColourEncoder("colours-2")), cache_place([photos, tmp_path], encoder)}
    assert report.path not in others


def test_pictures_are_chosen_by_the_date_they_were_taken(tmp_path: Path, encoder: ColourEncoder) -> None:
    (tmp_path / "photos").mkdir()
    for n, taken in enumerate(("2023:12:31 23:59:59", "2024:01:01 00:00:00", "2024:05:31 12:00:00", None)):
        image = Image.fromarray(np.random.default_rng(n).integers(0, 256, (12, 16, 3), dtype=np.uint8))
        exif = Image.Exif()
        if taken:
            exif.get_ifd(0x8769)[0x9003] = taken
        image.save(tmp_path / "photos" / f"{n}.jpg", exif=exif)
    os.utime(tmp_path / "photos" / "3.jpg", (1, datetime(2025, 6, 1, 12).timestamp()))
    ImageIndex.build(tmp_path / "photos", tmp_path / "idx", encoder=encoder)
    (tmp_path / "photos" / "1.jpg").rename(tmp_path / "photos" / "9.jpg")  # its date comes along
    ImageIndex.build(tmp_path / "photos", tmp_path / "idx", encoder=encoder)
    index = ImageIndex.open(tmp_path / "idx")
    assert index.dates[0] == datetime(2023, 12, 31, 23, 59, 59)
    for since, until, names in (
        (None, None, "0 2 3 9"),
        ("2024", "2024", "2 9"),
        ("2024-05", "2024-05", "2"),
        ("2024-01-01", None, "2 3 9"),
        (None, "2023-12", "0"),
        (date(2024, 1, 1), datetime(2024, 5, 31, 12), "2 9"),
        ("2025-06-01T11:00", "2025-06-01T13:00", "3"),
        ("2030", None, ""),
    ):
        chosen = index.between(since, until)
        assert [name.removesuffix(".jpg") for name in chosen.ids] == names.split()
        ranking = LogicScorer(encoder).search("red and not green", chosen)
        assert {result.id for result in ranking} == set(chosen.ids)
    assert len(index.between("2024", "2024").between("2024-02")) == 1
    for wrong in ("yesterday", "2024-13", "20245"):
        with pytest.raises(InvalidOption, match="a date is written as"):
            index.between(since=wrong)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.faults)])
def test_killed_at_any_write_the_index_stays_whole(
    every: int, photos: Path, tmp_path: Path, encoder: ColourEncoder
) -> None:
    """Kills a first build and an update at every file operation in turn, then looks and resumes."""
    command = [sys.executable, "-m", "tests.index.kill_storm", str(photos), str(tmp_path / "idx"), str(every)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    first, later = json.loads(done.stdout)
    assert first == sorted(first)  # the later the kill, the more was kept
    assert set(first) <= {0, 6, 12, 18}
    assert len(first) + len(later) >= 16 // every
    print(f"\n{len(first) + len(later)} kills")
    assert min(later) >= 23  # an update never loses what was there
    assert_same_as_fresh(photos, tmp_path, encoder)


@pytest.mark.faults
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")
def test_a_full_disk_is_told_and_costs_nothing(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    """A limit on the size of files stands for the disk: writing beyond it fails as it does on a full one."""

    def build(limit: int) -> str:
        code = """
            import resource, signal, sys
            sys.path.insert(0, sys.argv[1])
            from tests.index.test_index import ColourEncoder, ImageIndex, IndexFileError
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
            try:
                ImageIndex.build(sys.argv[3], sys.argv[4], encoder=ColourEncoder(), batch_size=5)
            except IndexFileError as error:
                print(error)
        """
        return run_python(code, ROOT, limit, photos, tmp_path / "idx")

    assert "cannot be" in build(100)
    assert "damaged" not in build(30_000)
    assert len(ImageIndex.open(tmp_path / "idx")) == 23
    for n in range(200):
        write_picture(photos / "zz" / f"{n}.png", 1000 + n)
    assert "cannot be" in build(30_000)
    assert 23 < len(ImageIndex.open(tmp_path / "idx")) < 223
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert_same_as_fresh(photos, tmp_path, encoder)


def test_two_writers_never_meet(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    def meanwhile(done: int, total: int) -> None:
        if done == 10:
            with pytest.raises(IndexFileError, match="another process is writing"):
                ImageIndex.build(photos, tmp_path / "idx", encoder=ColourEncoder())
            assert len(ImageIndex.open(tmp_path / "idx")) == 10  # reading is free

    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, batch_size=5, progress=meanwhile)
    assert len(ImageIndex.open(tmp_path / "idx")) == 23


@pytest.mark.parametrize("year", [-300, 2300])
def test_a_file_of_any_date_is_indexed(year: int, photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    moment = (year - 1970) * 31_556_952 * 10**9
    try:
        os.utime(photos / "00.png", ns=(moment, moment))
    except (OSError, OverflowError):
        pytest.skip("this file system has no such dates")
    for _ in range(2):
        ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert encoder.encoded == 23


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
            assert (report.removed, report.unchanged) == (0, 22)
            (told,) = report.broken
            assert told.reason == "cannot be read (Stale file handle); what the index knows of it is kept"
    assert ImageIndex.open(tmp_path / "idx").ids == before.ids
    assert ImageIndex.build(photos, tmp_path / "idx", encoder=encoder).unchanged == 23
    assert encoder.encoded == 23
    assert_same_as_fresh(photos, tmp_path, encoder)


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
