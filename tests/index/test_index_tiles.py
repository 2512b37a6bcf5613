"""The image index with tiles: what holds for vectors holds for those of regions, and an index without has none."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import IndexFileError, InvalidOption
from lcse_plugins.index import ImageIndex
from lcse_plugins.retrieval.tiles import RegionPool, encode_regions
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.results import Ranking
from tests.index.test_index import ColourEncoder, flip, vectors_file, write_picture, write_pictures

QUERY = "red and no blue"


class ShadedEncoder(ColourEncoder):
    """Each text has some colour, so that common things can be told apart."""

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        shades = np.array([np.random.default_rng(len(text)).random(48) for text in texts])
        return self._unit(super().encode_texts(texts) + 0.05 * shades)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "photos", 17)


@pytest.fixture
def encoder() -> ShadedEncoder:
    return ShadedEncoder()


def told(ranking: Ranking) -> list[tuple[Any, Any, Any]]:
    return [
        (result.id, pytest.approx(result.score, abs=1e-5), pytest.approx(result.truth, abs=1e-4)) for result in ranking
    ]


def found(index: ImageIndex, encoder: ShadedEncoder) -> list[tuple[object, float, float]]:
    return [(result.id, result.score, result.truth) for result in LogicScorer(encoder).search(QUERY, index, limit=9)]


def test_an_index_with_tiles_ranks_as_a_fitted_region_pool(
    photos: Path, tmp_path: Path, encoder: ShadedEncoder
) -> None:
    report = ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles="few", batch_size=5)
    assert (report.added, report.tiles, encoder.encoded) == (17, True, 17 * 6)
    index = ImageIndex.open(tmp_path / "idx", encoder=encoder)
    assert index.tiles
    regions = encode_regions(encoder, index.paths)
    pool = RegionPool.fitted(encoder, np.array(index.vectors), regions, ids=index.ids)
    scorer = LogicScorer(encoder)
    for limit in (None, 3):
        expected = [(r.id, r.score, r.truth) for r in scorer.rank(QUERY, pool, limit=limit)]
        assert expected == told(scorer.rank(QUERY, index, limit=limit))
    best = scorer.search(QUERY, index, limit=1)[0]
    (alone,) = scorer.rank(QUERY, index.part([index.position(str(best.id))]))
    assert (alone.id, alone.candidate.payload) == (best.id, photos / str(best.id))
    assert alone.score == pytest.approx(best.score, abs=1e-5)


def test_a_small_thing_is_found_in_a_tile(tmp_path: Path, encoder: ShadedEncoder) -> None:
    (tmp_path / "photos").mkdir()
    for n, spot in enumerate([None, (0, 0), (80, 60), None, None]):
        image = Image.new("RGB", (100, 80), (30, 190 + n, 30))
        if spot:
            image.paste((200, 30, 30), (*spot, spot[0] + 20, spot[1] + 20))
        image.save(tmp_path / "photos" / f"{n}.png")
    ImageIndex.build(tmp_path / "photos", tmp_path / "idx", encoder=encoder, tiles="few")
    ranking = LogicScorer(encoder).search("red and green", ImageIndex.open(tmp_path / "idx"), limit=2)
    assert {result.id for result in ranking} == {"1.png", "2.png"}


def test_an_update_and_an_interruption_end_as_a_fresh_build(
    photos: Path, tmp_path: Path, encoder: ShadedEncoder
) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles="few", batch_size=5, progress=interrupt)
    part = ImageIndex.open(tmp_path / "idx", encoder=encoder)
    assert len(found(part, encoder)) == 9  # it can be searched already
    write_picture(photos / "0.png", 50)
    (photos / "trip" / "01.png").unlink()
    shutil.copy(photos / "03.png", photos / "zz.png")
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)  # as it was built: with tiles
    flip(vectors_file(tmp_path / "idx"), 48 * 4 * 20 + 7)  # the vector of a tile
    with pytest.raises(IndexFileError, match="is damaged"):
        ImageIndex.open(tmp_path / "idx")
    assert ImageIndex.build(photos, tmp_path / "idx", encoder=encoder).repaired == 1
    ImageIndex.build(photos, tmp_path / "fresh", encoder=encoder, tiles="few")
    assert vectors_file(tmp_path / "idx").read_bytes() == vectors_file(tmp_path / "fresh").read_bytes()
    one, other = (found(ImageIndex.open(tmp_path / name), encoder) for name in ("idx", "fresh"))
    assert one == other


def test_tiles_are_chosen_when_an_index_is_made(photos: Path, tmp_path: Path, encoder: ShadedEncoder) -> None:
    ImageIndex.build(photos, tmp_path / "idx", encoder=encoder)
    with pytest.raises(IndexFileError, match="was built without tiles"):
        ImageIndex.build(photos, tmp_path / "idx", encoder=encoder, tiles="few")
    with pytest.raises(InvalidOption, match="unknown tiles 'many'; choose few"):
        ImageIndex.build(photos, tmp_path / "new", encoder=encoder, tiles="many")  # type: ignore[arg-type]
