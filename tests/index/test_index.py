"""The image index: built, updated, killed, damaged and searched."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.encoders.protocol import FloatArray, ImageSource
from lcse_plugins.errors import EncoderError, ImageError, IndexFileError, InvalidCandidate, InvalidOption
from lcse_plugins.images.reading import load_image
from lcse_plugins.index import ImageIndex
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.calibration import Calibration

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


def vectors_file(index: Path) -> Path:
    (path,) = index.glob("vectors-*.bin")
    return path


def assert_same(one: ImageIndex, other: ImageIndex) -> None:
    assert one.ids == other.ids
    np.testing.assert_array_equal(one.vectors, other.vectors)
    assert [error.reason for error in one.broken] == [error.reason for error in other.broken]


def test_an_index_holds_one_vector_per_picture(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    calls: list[tuple[int, int]] = []
    report = ImageIndex.build(
        photos,
        tmp_path / "idx",
        encoder=encoder,
        batch_size=5,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert (report.added, report.updated, report.removed, report.unchanged, report.broken) == (23, 0, 0, 0, ())
    assert calls == [(n, 23) for n in (0, 5, 10, 15, 20, 23)]
    index = ImageIndex.open(tmp_path / "idx", encoder=encoder)
    assert len(index) == 23
    assert list(index.ids) == sorted(p.relative_to(photos).as_posix() for p in photos.rglob("*.png"))
    assert index.paths == tuple(photos / name for name in index.ids)
    assert isinstance(index.vectors, np.memmap)
    assert index.vectors.dtype == np.float32
    assert index.encoder_id == "colours-1"
    np.testing.assert_array_equal(index.vectors, encoder.encode_images(index.paths))
    candidate = index.candidate(7)
    assert (candidate.id, candidate.payload) == (index.ids[7], index.paths[7])
    np.testing.assert_array_equal(candidate.vector, index.vectors[7])
    index.verify()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_a_pipe_is_not_waited_for(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    os.mkfifo(photos / "pipe.png")
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert [fault.reason for fault in report.broken] == ["not a regular file"]


def test_a_second_run_encodes_nothing(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    before = vectors_file(tmp_path / "idx").read_bytes()
    os.utime(photos / "00.png")  # touched, not changed
    again = ColourEncoder()
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=again)
    assert (report.added, report.updated, report.removed, report.unchanged) == (0, 0, 0, 23)
    assert again.encoded == 0
    assert vectors_file(tmp_path / "idx").read_bytes() == before


def test_a_new_size_tells_of_a_change_that_the_time_hides(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    before = (photos / "00.png").stat()
    Image.new("RGB", (16, 12), "red").save(photos / "00.png")
    os.utime(photos / "00.png", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert ImageIndex.build(photos, tmp_path / "idx", encoder=encoder).updated == 1


def test_new_changed_moved_and_removed_files_are_followed(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    out = tmp_path / "idx"
    ImageIndex.build(photos, out, encoder=encoder, batch_size=4)
    held = ImageIndex.open(out)
    snapshot = np.array(held.vectors)
    write_picture(photos / "aaa.png", 100)
    write_picture(photos / "trip" / "01.png", 101)
    (photos / "03.png").rename(photos / "zzz.png")
    (photos / "trip" / "22.png").unlink()
    shutil.copy(photos / "00.png", photos / "copy.png")
    again = ColourEncoder()
    report = ImageIndex.build(photos, out, encoder=again, batch_size=4)
    assert (report.added, report.updated, report.removed, report.unchanged) == (3, 1, 2, 20)
    assert again.encoded == 2
    ImageIndex.build(photos, tmp_path / "fresh", encoder=encoder)
    assert_same(ImageIndex.open(out), ImageIndex.open(tmp_path / "fresh"))
    assert vectors_file(out).read_bytes() == vectors_file(tmp_path / "fresh").read_bytes()
    ImageIndex.open(out).verify()
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
    assert len(index) == 23
    assert "05.png" not in index.ids
    assert [error.source for error in index.broken] == [error.source for error in report.broken]
    write_picture(photos / "05.png", 5)
    (photos / "00.png").write_text("broken now")
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert (report.added, report.removed, report.unchanged) == (1, 0, 22)
    assert [Path(error.source).name for error in report.broken] == ["00.png", "dangling.png", "half.jpg"]
    assert_same_as_fresh(photos, tmp_path, encoder)


def test_a_file_that_could_not_be_read_is_tried_again(
    photos: Path, tmp_path: Path, encoder: ColourEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (photos / "half.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut short")
    locked, read, read_bytes = {"00.png"}, list[str](), Path.read_bytes

    def guarded(path: Path) -> bytes:
        read.append(path.name)
        if path.name in locked:
            raise PermissionError(errno.EACCES, "Permission denied")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", guarded)
    for _ in range(2):
        report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
        assert report.broken[0].reason == "cannot be read (Permission denied)"
    locked.clear()
    read.clear()
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert (report.added, report.unchanged) == (1, 22)
    assert [Path(error.source).name for error in report.broken] == ["half.jpg"]
    assert sorted(read) == ["00.png", "half.jpg"]  # sound ones are not read again
    assert_same_as_fresh(photos, tmp_path, encoder)


def test_a_folder_inside_that_cannot_be_listed_is_left_out_and_its_pictures_are_kept(
    photos: Path, tmp_path: Path, encoder: ColourEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (photos / "trip" / "half.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut short")
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    before = ImageIndex.open(tmp_path / "idx")
    (photos / "00.png").unlink()
    write_picture(photos / "tripod" / "new.png", 100)
    forbid_listing(monkeypatch, photos / "trip")
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert (report.added, report.updated, report.removed, report.unchanged) == (1, 0, 1, 22)
    assert [Path(error.source).name for error in report.broken] == ["trip", "half.jpg"]
    assert "cannot be listed" in report.broken[0].reason
    after = ImageIndex.open(tmp_path / "idx")
    assert set(after.ids) == {*before.ids, "tripod/new.png"} - {"00.png"}
    after.verify()
    monkeypatch.undo()
    assert ImageIndex.build(photos, tmp_path / "idx", encoder=encoder).unchanged == 23
    assert_same_as_fresh(photos, tmp_path, encoder)


def test_a_folder_that_cannot_be_listed_at_all_is_an_error(
    photos: Path, tmp_path: Path, encoder: ColourEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_listing(monkeypatch, photos)
    with pytest.raises(ImageError, match="photos: cannot be listed"):
        ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    monkeypatch.undo()
    forbid_listing(monkeypatch, photos / "trip")
    for path in photos.glob("*.png"):
        path.unlink()
    with pytest.raises(ImageError, match="trip: cannot be listed"):
        ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)


def forbid_listing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    scandir = os.scandir

    def guarded(path: Any) -> Any:
        if Path(path) == folder:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)


def test_a_folder_that_lost_all_its_pictures_leaves_the_index_alone(
    photos: Path, tmp_path: Path, encoder: ColourEncoder
) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    for path in photos.rglob("*.png"):
        path.unlink()
    with pytest.raises(ImageError, match=r"no picture files .*idx still holds 23 .* mounted.* delete"):
        ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert len(ImageIndex.open(tmp_path / "idx")) == 23


def assert_same_as_fresh(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "fresh", encoder=encoder)
    assert_same(ImageIndex.open(tmp_path / "idx"), ImageIndex.open(tmp_path / "fresh"))


def test_a_folder_of_broken_files_only_makes_an_empty_index(tmp_path: Path, encoder: ColourEncoder) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("text")
    report = ImageIndex.build(tmp_path / "photos", tmp_path / "idx", encoder=encoder)
    assert (report.added, len(report.broken)) == (0, 1)
    index = ImageIndex.open(tmp_path / "idx")
    assert len(index) == 0
    assert index.vectors.shape == (0, 48)


@pytest.mark.skipif(sys.platform != "linux", reason="file names of any bytes exist on Linux")
def test_a_name_that_is_not_text_is_listed_as_broken(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    shutil.copy(photos / "00.png", os.fsdecode(os.fsencode(photos) + b"/caf\xe9.png"))
    for _ in range(2):
        report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
        assert [error.reason for error in report.broken] == ["its name is not valid Unicode"]
    assert len(ImageIndex.open(tmp_path / "idx")) == 23


def test_half_precision_takes_half_the_disk(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, dtype="float16")
    assert vectors_file(tmp_path / "idx").stat().st_size == 23 * 48 * 2
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert report.unchanged == 23
    index = ImageIndex.open(tmp_path / "idx")
    np.testing.assert_allclose(index.vectors, encoder.encode_images(index.paths), atol=1e-3)
    index.verify()
    with pytest.raises(IndexFileError, match="keeps vectors as float16, not float32"):
        ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, dtype="float32")
    with pytest.raises(InvalidOption, match="float64"):
        ImageIndex.build(photos, tmp_path / "new", encoder=encoder, dtype="float64")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="batch_size"):
        ImageIndex.build(photos, tmp_path / "new", encoder=encoder, batch_size=0)


def test_another_encoder_is_refused_and_both_are_named(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    other = ColourEncoder("colours-2")
    for attempt in (
        lambda: ImageIndex.open(tmp_path / "idx", encoder=other),
        lambda: ImageIndex.build(photos, tmp_path / "idx", encoder=other),
    ):
        with pytest.raises(IndexFileError, match=r"made with encoder 'colours-1' .* not with 'colours-2'"):
            attempt()
    assert len(ImageIndex.open(tmp_path / "idx", encoder=encoder)) == 23


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
    assert not (tmp_path / "idx").exists()


def test_an_index_belongs_to_one_folder_but_the_folder_may_move(
    photos: Path, tmp_path: Path, encoder: ColourEncoder
) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    write_picture(tmp_path / "other" / "a.png", 1)
    with pytest.raises(IndexFileError, match=r"is of .*photos, not of .*other"):
        ImageIndex.build(tmp_path / "other", tmp_path / "idx", encoder=encoder)
    photos.rename(tmp_path / "moved")
    report = ImageIndex.build(tmp_path / "moved", tmp_path / "idx", encoder=encoder)
    assert report.unchanged == 23
    assert ImageIndex.open(tmp_path / "idx").folder == tmp_path / "moved"


def test_a_picture_is_found_by_id_and_by_path(
    photos: Path, tmp_path: Path, encoder: ColourEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    index = ImageIndex.open(tmp_path / "idx")
    monkeypatch.chdir(tmp_path)
    for name in ("trip/04.png", photos / "trip" / "04.png", "photos/trip/04.png", "photos/../photos/trip/04.png"):
        assert index.ids[index.position(name)] == "trip/04.png"
    with pytest.raises(ImageError, match="not in the index"):
        index.position("99.png")


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
    assert ranking[0].candidate.payload == tmp_path / "photos" / "red.png"
    fast = ImageIndex.open(tmp_path / "idx", quantised=True)
    assert [result.id for result in scorer.search("red and not green", fast, limit=3)] == [r.id for r in ranking[:3]]
    with pytest.raises(InvalidCandidate, match="encoded by 'colours-1', the query by 'colours-2'"):
        LogicScorer(ColourEncoder("colours-2")).search("red", index)
    in_memory = scorer.rank("red and not green", np.array(index.vectors), limit=5)
    assert [index.ids[int(str(result.id))] for result in in_memory] == [result.id for result in ranking]


def test_an_encoder_that_breaks_its_promise_leaves_the_index_alone(photos: Path, tmp_path: Path) -> None:
    class Wrong(ColourEncoder):
        def __init__(self, factor: float, rows: int | None) -> None:
            super().__init__()
            self.factor, self.rows = factor, rows

        def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
            return np.asarray(super().encode_images(images)[: self.rows] * self.factor)

    for factor, rows, message in (
        (2.0, None, "length one"),
        (np.nan, None, "length one"),
        (1.0, 3, r"\(3, 48\) where \(5, 48\)"),
    ):
        with pytest.raises(EncoderError, match=message):
            ImageIndex.build(photos, tmp_path / "idx", encoder=Wrong(factor, rows), batch_size=5)
    assert len(ImageIndex.open(tmp_path / "idx")) == 0
    assert ImageIndex.build(photos, tmp_path / "idx", encoder=ColourEncoder()).added == 23


@pytest.mark.parametrize("damage", ["garbage", "empty", "header", "short", "missing", "version", "no table", "numbers"])
def test_damaged_files_are_told(damage: str, photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    out = tmp_path / "idx"
    ImageIndex.build(photos, out, encoder=encoder)
    table, vectors = out / "index.sqlite", vectors_file(out)
    if damage == "garbage":
        table.write_bytes(table.read_bytes()[:4096] + os.urandom(table.stat().st_size - 4096))
    elif damage == "empty":
        table.write_bytes(b"")
    elif damage == "header":
        table.write_bytes(b"x" * 100 + table.read_bytes()[100:])
    elif damage == "short":
        vectors.write_bytes(vectors.read_bytes()[:-1])
    elif damage == "missing":
        vectors.unlink()
    else:
        connection = sqlite3.connect(table)
        statements = {
            "version": "UPDATE meta SET value = 'lcse-index-0'",
            "no table": "DROP TABLE files",
            "numbers": "UPDATE meta SET value = 'many' WHERE name = 'dimension'",
        }
        connection.execute(statements[damage])
        connection.commit()
        connection.close()
    for attempt in (lambda: ImageIndex.open(out), lambda: ImageIndex.build(photos, out, encoder=encoder)):
        with pytest.raises(IndexFileError, match="build it again" if damage == "version" else "is damaged"):
            attempt()


def test_a_flipped_bit_is_found_by_verify(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    path = vectors_file(tmp_path / "idx")
    data = bytearray(path.read_bytes())
    data[48 * 4 * 9 + 2] ^= 1
    path.write_bytes(data)
    index = ImageIndex.open(tmp_path / "idx")
    with pytest.raises(IndexFileError, match=rf"the vector of {index.ids[9]} has changed"):
        index.verify()


DRIVER = """
    import os, signal, sys
    from pathlib import Path
    sys.path.insert(0, {root!r})
    from tests.index.test_index import ColourEncoder, write_picture
    from lcse_plugins.index import ImageIndex
    photos, out = Path({photos!r}), Path({out!r})
"""


def run_python(photos: Path, out: Path, body: str) -> subprocess.CompletedProcess[str]:
    driver = textwrap.dedent(DRIVER).format(root=str(Path(__file__).parent.parent), photos=str(photos), out=str(out))
    code = driver + textwrap.dedent(body)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_loses_at_most_the_last_batch_and_is_resumed(
    photos: Path, tmp_path: Path, encoder: ColourEncoder
) -> None:
    killed = run_python(
        photos,
        tmp_path / "idx",
        """
        def progress(done, total):
            if done == 12:
                os.kill(os.getpid(), signal.SIGKILL)
        ImageIndex.build(photos, out, encoder=ColourEncoder(), batch_size=4, progress=progress)
        """,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    part = ImageIndex.open(tmp_path / "idx", encoder=encoder)
    assert len(part) == 12
    part.verify()
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, batch_size=4)
    assert (report.added, report.unchanged, encoder.encoded) == (11, 12, 11)
    assert_same_as_fresh(photos, tmp_path, encoder)
    assert vectors_file(tmp_path / "idx").read_bytes() == vectors_file(tmp_path / "fresh").read_bytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_write_the_index_stays_whole(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    """Kills a first build and an update at every file operation in turn, then looks and resumes."""
    done = run_python(
        photos,
        tmp_path / "idx",
        """
        import json
        from tests.index.kill_storm import kill_first_builds, kill_updates

        def build():
            ImageIndex.build(photos, out, encoder=ColourEncoder(), batch_size=6, workers=0)

        def check(complete):
            index = ImageIndex.open(out)
            index.verify()
            if complete:
                assert index.ids == tuple(sorted(p.relative_to(photos).as_posix() for p in photos.rglob("*.png")))
                assert (index.vectors == ColourEncoder().encode_images(index.paths)).all()
                assert len(list(out.glob("vectors-*"))) == 1
            return len(index)

        print(json.dumps([kill_first_builds(out, build, check), kill_updates(photos, out, build, check)]))
        """,
    )
    assert done.returncode == 0, done.stderr
    first, later = json.loads(done.stdout)
    assert first == sorted(first)  # the later the kill, the more was kept
    assert set(first) == {0, 6, 12, 18}
    assert len(later) >= 8
    assert min(later) >= 23  # an update never loses what was there
    assert_same_as_fresh(photos, tmp_path, encoder)


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")
def test_a_full_disk_is_told_and_costs_nothing(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    """A limit on the size of files stands for the disk: writing beyond it fails as it does on a full one."""
    limited = """
        import resource
        from lcse_plugins.errors import IndexFileError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
        try:
            ImageIndex.build(photos, out, encoder=ColourEncoder(), batch_size=5)
        except IndexFileError as error:
            print(error)
    """
    for limit in (100, 6000, 30_000):
        told = run_python(photos, tmp_path / "idx", limited.format(limit=limit))
        assert told.returncode == 0, told.stderr
        assert "cannot be" in told.stdout or limit == 30_000
        assert "damaged" not in told.stdout
    full = len(ImageIndex.open(tmp_path / "idx"))
    assert full == 23
    for n in range(200):
        write_picture(photos / "zz" / f"{n}.png", 1000 + n)
    told = run_python(photos, tmp_path / "idx", limited.format(limit=30_000))
    assert "cannot be" in told.stdout
    part = ImageIndex.open(tmp_path / "idx")
    part.verify()
    assert full < len(part) < 223
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


def test_an_index_is_read_as_it_was_at_one_moment(
    photos: Path, tmp_path: Path, encoder: ColourEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    connect = sqlite3.connect

    class Disturbed(sqlite3.Connection):
        """Another process writes just before the files are read; it would have to wait."""

        def execute(self, sql: str, /, *arguments: Any) -> sqlite3.Cursor:
            if "FROM files" in sql:
                with closing(connect(tmp_path / "idx" / "index.sqlite", timeout=0)) as other:
                    with pytest.raises(sqlite3.OperationalError, match="locked"), other:
                        other.execute("DELETE FROM files")
            return super().execute(sql, *arguments)

    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Disturbed))
    assert len(ImageIndex.open(tmp_path / "idx")) == 23


def test_an_exception_in_the_middle_keeps_what_was_done(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, batch_size=5, progress=interrupt)
    assert len(ImageIndex.open(tmp_path / "idx")) == 15
    assert ImageIndex.build(photos, tmp_path / "idx", encoder=encoder).added == 8


def test_a_file_too_large_to_read_is_broken(
    photos: Path, tmp_path: Path, encoder: ColourEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcse_plugins.index.update.MAX_BYTES", 10_000)
    (photos / "huge.png").write_bytes(b"x" * 10_001)
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert [error.reason for error in report.broken] == ["10,001 bytes are too many; at most 10,000 are read"]
    assert "23 pictures" in repr(ImageIndex.open(tmp_path / "idx"))


def test_real_photographs_are_indexed(shared_data: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    (tmp_path / "photos").mkdir()
    for path in sorted((shared_data / "photos").glob("*.jpg"))[:60]:
        (tmp_path / "photos" / path.name).symlink_to(path)
    report = ImageIndex.build(tmp_path / "photos", tmp_path / "idx", encoder=encoder)
    assert (report.added, report.broken) == (60, ())
    index = ImageIndex.open(tmp_path / "idx")
    np.testing.assert_array_equal(index.vectors, encoder.encode_images(index.paths))
