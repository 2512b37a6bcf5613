"""The image index with tiles: the guarantees of vectors hold for those of regions, and an index without has none."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.encoders.protocol import FloatArray, ImageSource
from lcse_plugins.errors import IndexFileError, InvalidOption
from lcse_plugins.images.tiles import TILES, TileChoice
from lcse_plugins.index import ImageIndex
from lcse_plugins.retrieval.tiles import FEW_TILES, MANY_TILES, RegionPool, encode_regions
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.results import Ranking
from tests.index.test_index import ColourEncoder, run_python, write_picture, write_pictures

QUERY = "red and no blue"


class CountingEncoder(ColourEncoder):
    """Counts texts too; each has some colour, so that common things can be told apart."""

    texts = 0

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        self.texts += len(texts)
        shades = np.array([np.random.default_rng(len(text)).random(48) for text in texts])
        return self._unit(super().encode_texts(texts) + 0.05 * shades)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "photos", 17)


@pytest.fixture
def encoder() -> CountingEncoder:
    return CountingEncoder()


def rows(index: Path, kind: str = "regions") -> Path:
    (path,) = index.glob(f"{kind}-*.bin")
    return path


def meta(index: Path) -> dict[str, str]:
    connection = sqlite3.connect(index / "index.sqlite")
    found = dict(connection.execute("SELECT name, value FROM meta"))
    connection.close()
    return found


def told(ranking: Ranking) -> list[tuple[object, float, float]]:
    return [(result.id, result.score, result.truth) for result in ranking]


def assert_same_as_fresh(photos: Path, tmp_path: Path, encoder: ColourEncoder) -> None:
    """The index at `idx` is, to the byte, the one that a single undisturbed run makes."""
    ImageIndex.build(photos, tmp_path / "fresh", encoder=encoder, tiles="few")
    for kind in ("vectors", "regions"):
        assert rows(tmp_path / "idx", kind).read_bytes() == rows(tmp_path / "fresh", kind).read_bytes()
    assert meta(tmp_path / "idx")["scale"] == meta(tmp_path / "fresh")["scale"]
    one, other = (ImageIndex.open(tmp_path / name, encoder=encoder) for name in ("idx", "fresh"))
    one.verify()
    scorer = LogicScorer(encoder)
    assert told(scorer.search(QUERY, one)) == told(scorer.search(QUERY, other))


@pytest.mark.parametrize("tiles", ["few", "many"])
def test_an_index_with_tiles_ranks_as_a_fitted_region_pool(
    tiles: TileChoice, photos: Path, tmp_path: Path, encoder: CountingEncoder
) -> None:
    calls: list[tuple[int, int]] = []
    report = ImageIndex.build(
        photos,
        tmp_path / "idx",
        encoder=encoder,
        tiles=tiles,
        batch_size=5,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert (report.added, report.tiles) == (17, TILES[tiles])
    assert calls == [(n, 17) for n in (0, 5, 10, 15, 17)]
    index = ImageIndex.open(tmp_path / "idx", encoder=encoder)
    index.verify()
    assert index.tiles == TILES[tiles]
    assert f"tiles {tiles}" in repr(index)
    assert isinstance(index.vectors, np.memmap)
    regions = encode_regions(encoder, index.paths, tiles=TILES[tiles])
    np.testing.assert_array_equal(np.fromfile(rows(tmp_path / "idx"), np.float32).reshape(regions.shape), regions)
    pool = RegionPool.fitted(encoder, np.array(index.vectors), regions, ids=index.ids)
    scorer = LogicScorer(encoder)
    for limit in (None, 3):
        assert told(scorer.rank(QUERY, index, limit=limit)) == told(scorer.rank(QUERY, pool, limit=limit))
    best = scorer.search(QUERY, index, limit=1)[0]
    assert best.candidate.payload == photos / str(best.id)
    position = index.position(str(best.id))
    other = (position + 1) % 17
    first, second = scorer.rank(QUERY, index.part([other, position]))
    assert (first.id, first.candidate.payload, second.id) == (best.id, best.candidate.payload, index.ids[other])
    assert (first.score, first.truth) == pytest.approx((best.score, best.truth))
    assert second.score == pytest.approx(scorer.rank(QUERY, pool.part([other]))[0].score)


def test_a_query_without_logic_does_not_see_the_tiles(photos: Path, tmp_path: Path, encoder: CountingEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "plain", encoder=encoder)
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles="few")
    assert rows(tmp_path / "plain", "vectors").read_bytes() == rows(tmp_path / "idx", "vectors").read_bytes()
    scorer = LogicScorer(encoder)
    for quantised in (False, True):
        plain, tiled = (ImageIndex.open(tmp_path / name, quantised=quantised) for name in ("plain", "idx"))
        for limit in (None, 4):
            assert told(scorer.rank("a red car", plain, limit=limit)) == told(
                scorer.rank("a red car", tiled, limit=limit)
            )
        assert told(scorer.rank(QUERY, plain)) != told(scorer.rank(QUERY, tiled))


def test_without_tiles_the_format_is_the_old_one(photos: Path, tmp_path: Path, encoder: CountingEncoder) -> None:
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert report.tiles == ()
    assert {path.name for path in (tmp_path / "idx").iterdir()} == {"index.sqlite", "build.lock", "vectors-0.bin"}
    assert meta(tmp_path / "idx") == {
        "format": "lcse-index-1",
        "encoder_id": "colours-1",
        "dimension": "48",
        "dtype": "float32",
        "folder": str(photos),
        "vectors_file": "vectors-0.bin",
    }
    assert ImageIndex.open(tmp_path / "idx").tiles == ()
    assert encoder.texts == 0
    ImageIndex.build(photos, tmp_path / "tiled", encoder=encoder, tiles="few")
    assert meta(tmp_path / "tiled")["format"] != "lcse-index-1"  # or an older reader would take it for one without


def test_a_second_run_encodes_nothing_and_keeps_the_tiles(
    photos: Path, tmp_path: Path, encoder: CountingEncoder
) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles="few")
    before = rows(tmp_path / "idx").read_bytes()
    again = CountingEncoder()
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=again)
    assert (report.unchanged, report.tiles) == (17, FEW_TILES)
    assert (again.encoded, again.texts) == (0, 0)
    assert rows(tmp_path / "idx").read_bytes() == before


@pytest.mark.parametrize(
    ("built", "asked", "message"),
    [
        ("few", "many", "tiles few, not many"),
        ("many", "few", "tiles many, not few"),
        (None, "few", "tiles none, not few"),
    ],
)
def test_another_choice_of_tiles_is_refused(
    built: TileChoice | None,
    asked: TileChoice,
    message: str,
    photos: Path,
    tmp_path: Path,
    encoder: CountingEncoder,
) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles=built)
    encoder.encoded = 0
    with pytest.raises(IndexFileError, match=rf"{message}; leave the choice .* or make another index"):
        ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles=asked)
    assert encoder.encoded == 0
    assert len(ImageIndex.open(tmp_path / "idx")) == 17
    with pytest.raises(InvalidOption, match="unknown tiles 'some'"):
        ImageIndex.build(photos, tmp_path / "new", encoder=encoder, tiles="some")  # type: ignore[arg-type]


def test_new_changed_moved_removed_and_broken_files_are_followed(
    photos: Path, tmp_path: Path, encoder: CountingEncoder
) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles="few", batch_size=4)
    held = ImageIndex.open(tmp_path / "idx")
    before = told(LogicScorer(encoder).search(QUERY, held))
    write_picture(photos / "aaa.png", 100)
    write_picture(photos / "trip" / "01.png", 101)
    (photos / "03.png").rename(photos / "zzz.png")
    (photos / "trip" / "16.png").unlink()
    (photos / "half.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut short")
    shutil.copy(photos / "00.png", photos / "copy.png")
    again = CountingEncoder()
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=again, batch_size=4)
    assert (report.added, report.updated, report.removed) == (3, 1, 2)
    assert [Path(error.source).name for error in report.broken] == ["half.jpg"]
    assert again.encoded == 2 * (1 + len(FEW_TILES))
    assert_same_as_fresh(photos, tmp_path, encoder)
    assert told(LogicScorer(encoder).search(QUERY, held)) == before  # what was opened stays as it was


def test_the_smallest_picture_has_tiles(tmp_path: Path, encoder: CountingEncoder) -> None:
    (tmp_path / "photos").mkdir()
    for size in ((2, 2), (3, 40), (4, 3)):
        Image.new("RGB", size, (200, 30, 30)).save(tmp_path / "photos" / f"{size[0]}.png")
    report = ImageIndex.build(tmp_path / "photos", tmp_path / "idx", encoder=encoder, tiles="many")
    assert (report.added, report.broken) == (3, ())
    index = ImageIndex.open(tmp_path / "idx")
    assert len(LogicScorer(encoder).search(QUERY, index)) == 3  # all alike: no scale can be told, none is needed


def test_an_interrupted_update_is_searched_and_resumed(photos: Path, tmp_path: Path, encoder: CountingEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles="few")
    write_picture(photos / "00.png", 300)
    write_picture(photos / "aaa.png", 301)

    def interrupt(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, progress=interrupt)
    part = ImageIndex.open(tmp_path / "idx", encoder=encoder)
    part.verify()
    regions = encode_regions(encoder, part.paths)
    scorer = LogicScorer(encoder)
    alone = [scorer.rank(QUERY, part.part([position]))[0].score for position in range(len(part))]
    ranked = scorer.rank(QUERY, part)
    assert [result.score for result in ranked] == pytest.approx(sorted(alone, reverse=True), abs=1e-6)
    factor, offset, _ = json.loads(meta(tmp_path / "idx")["scale"])
    position = part.position("aaa.png")
    views = np.concatenate([part.vectors[position][None], regions[position]]) @ scorer.encode(QUERY).concept_vectors[0]
    expected = factor * np.sort(views)[-2:].mean() + offset
    found = next(result for result in ranked if result.id == "aaa.png")
    assert found.evidence[0].similarity == pytest.approx(expected, abs=1e-6)
    assert ImageIndex.build(photos, tmp_path / "idx", encoder=encoder).unchanged == 18
    assert_same_as_fresh(photos, tmp_path, encoder)


@pytest.mark.parametrize("damage", ["short", "missing", "scale", "tiles"])
def test_damaged_regions_are_told(damage: str, photos: Path, tmp_path: Path, encoder: CountingEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles="few")
    path = rows(tmp_path / "idx")
    if damage == "short":
        path.write_bytes(path.read_bytes()[:-1])
    elif damage == "missing":
        path.unlink()
    else:
        connection = sqlite3.connect(tmp_path / "idx" / "index.sqlite")
        connection.execute("UPDATE meta SET value = '[1.0]' WHERE name = ?", (damage,))
        connection.commit()
        connection.close()
    with pytest.raises(IndexFileError, match="is damaged"):
        ImageIndex.open(tmp_path / "idx")


def test_a_flipped_bit_of_a_region_is_found_by_verify(photos: Path, tmp_path: Path, encoder: CountingEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles="few", dtype="float16")
    path = rows(tmp_path / "idx")
    data = bytearray(path.read_bytes())
    assert len(data) == 17 * len(FEW_TILES) * 48 * 2
    data[48 * 2 * len(FEW_TILES) * 9 + 2] ^= 1
    path.write_bytes(data)
    index = ImageIndex.open(tmp_path / "idx")
    with pytest.raises(IndexFileError, match=rf"{index.ids[9]} has changed"):
        index.verify()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_write_regions_stay_with_their_pictures(
    photos: Path, tmp_path: Path, encoder: CountingEncoder
) -> None:
    """Kills a first build and an update at every file operation in turn, then looks, searches and resumes."""
    done = run_python(
        photos,
        tmp_path / "idx",
        """
        import json
        from tests.index.kill_storm import kill_first_builds, kill_updates
        from tests.index.test_index_tiles import QUERY, CountingEncoder
        from lcse_plugins.scorer import LogicScorer

        scorer = LogicScorer(CountingEncoder())

        def build():
            ImageIndex.build(photos, out, encoder=CountingEncoder(), tiles="few", batch_size=6, workers=0)

        def check(complete):
            index = ImageIndex.open(out)
            index.verify()
            assert len(scorer.search(QUERY, index, limit=100)) == len(index)
            if complete:
                assert len(index) == len(list(photos.rglob("*.png")))
                assert len(list(out.glob("*.bin"))) == 2
            return len(index)

        print(json.dumps([kill_first_builds(out, build, check), kill_updates(photos, out, build, check)]))
        """,
    )
    assert done.returncode == 0, done.stderr
    first, later = json.loads(done.stdout)
    assert first == sorted(first)
    assert set(first) == {0, 6, 12, 17}
    assert len(later) >= 8
    assert min(later) >= 17
    assert_same_as_fresh(photos, tmp_path, encoder)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_is_resumed_without_encoding_twice(photos: Path, tmp_path: Path, encoder: CountingEncoder) -> None:
    killed = run_python(
        photos,
        tmp_path / "idx",
        """
        from tests.index.test_index_tiles import CountingEncoder
        def progress(done, total):
            if done == 12:
                os.kill(os.getpid(), signal.SIGKILL)
        ImageIndex.build(photos, out, encoder=CountingEncoder(), tiles="few", batch_size=4, progress=progress)
        """,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    part = ImageIndex.open(tmp_path / "idx", encoder=encoder)
    assert len(LogicScorer(encoder).search(QUERY, part, limit=100)) == 12
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    assert (report.added, report.unchanged, encoder.encoded) == (5, 12, 5 * (1 + len(FEW_TILES)))
    assert_same_as_fresh(photos, tmp_path, encoder)


def test_pictures_are_not_held_in_memory_for_their_tiles(photos: Path, tmp_path: Path) -> None:
    class Watching(CountingEncoder):
        """Asks for one view at a time and never sees two pictures' views mixed."""

        sizes: list[tuple[int, int]]

        def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
            parts = []
            for image in images:
                assert isinstance(image, Image.Image)
                self.sizes.append(image.size)
                parts.append(super().encode_images([image]))
            return np.concatenate(parts)

    encoder = Watching()
    encoder.sizes = []
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles="many")
    assert encoder.sizes == 17 * [(16, 12), *5 * [(10, 7)], *9 * [(7, 5)]]
    assert len(MANY_TILES) == 14
