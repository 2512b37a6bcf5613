"""Evidence from regions: what a tile shows counts, and a query without logic ranks as before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from lcse_plugins import LogicScorer, ScoringConfig, VectorPool
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.images.tiles import FEW_TILES
from lcse_plugins.retrieval.tiles import RegionPool, ViewScale, encode_regions, fit_view_scale
from lcse_plugins.testing import ToyEncoder

WHOLES = ["street car", "street", "street tree", "park dog", "park"]
TILES = {1: (3, "person"), 4: (0, "dog")}
"""Image → which tile shows something that its whole vector does not."""


def pools() -> tuple[ToyEncoder, VectorPool, RegionPool]:
    encoder = ToyEncoder(dimension=256)
    vectors = encoder.encode_images(WHOLES)
    regions = np.repeat(vectors[:, None, :], len(FEW_TILES), axis=1)
    for image, (tile, word) in TILES.items():
        regions[image, tile] = regions[image, 2] = encoder.encode_images([word])[0]
    return encoder, VectorPool(vectors, ids=WHOLES), RegionPool(vectors, regions, ids=WHOLES)


@pytest.mark.parametrize("mode", ["lcse", "anchored", "factored"])
def test_a_thing_in_a_corner_counts(mode: str) -> None:
    encoder, whole, regional = pools()
    scorer = LogicScorer(encoder, config=ScoringConfig(mode=mode))  # type: ignore[arg-type]
    query = "a street but no person"
    assert scorer.rank(query, whole)[-1].id != "street"
    before = {r.id: r for r in scorer.rank(query, whole)}["street"]
    after = {r.id: r for r in scorer.rank(query, regional)}["street"]
    assert after.truth < 0.5 < before.truth
    assert after.evidence[1].similarity == pytest.approx(1.0, abs=1e-5)
    assert after.score < before.score
    either = "a dog or a car"
    assert "park" not in [r.id for r in scorer.rank(either, whole, min_truth=0.5)]
    assert "park" in [r.id for r in scorer.rank(either, regional, limit=3, min_truth=0.5)]


def test_without_logic_nothing_changes() -> None:
    encoder, whole, regional = pools()
    scorer = LogicScorer(encoder)
    one, other = scorer.rank("a dog in the park", whole), scorer.rank("a dog in the park", regional)
    assert [(r.id, r.score, r.holistic) for r in one] == [(r.id, r.score, r.holistic) for r in other]


def test_tiles_cover_the_picture() -> None:
    class Mean(ToyEncoder):
        """Sees the mean colour of what it is shown."""

        def encode_images(self, images: Any, *, batch_size: int | None = None) -> FloatArray:
            rows = [np.asarray(image, dtype=float).mean(axis=(0, 1)) + 1.0 for image in images]
            return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    picture = Image.new("RGB", (100, 50), (0, 0, 0))
    picture.paste((255, 0, 0), (0, 0, 20, 10))
    picture.paste((0, 0, 255), (80, 40, 100, 50))
    seen: list[int] = []
    tiles = encode_regions(Mean({"x": [1.0, 0.0, 0.0]}), [picture, picture], progress=seen.append)
    assert tiles.shape == (2, 5, 3)
    assert seen == [1, 2]
    assert int(tiles[0, :, 0].argmax()) == 0, "the red corner is in the first tile"
    assert int(tiles[0, :, 2].argmax()) == 3, "the blue corner is in the fourth"


def test_tables_that_do_not_belong_together_are_refused() -> None:
    encoder, whole, _ = pools()
    for regions in (np.ones((4, 5, 256)), np.ones((5, 256)), np.ones((5, 2, 8)), np.zeros((5, 2, 256))):
        with pytest.raises(InvalidCandidate):
            RegionPool(whole.vectors, regions)
    fitting = np.ones((5, 2, 256), dtype=np.float32)
    with pytest.raises(InvalidCandidate, match="no image vectors"):
        RegionPool(whole.vectors, fitting).part([])
    with pytest.raises(InvalidCandidate, match="64 dimensions"):
        RegionPool.fitted(ToyEncoder(dimension=64), whole.vectors, fitting)
    assert encode_regions(encoder, []).shape == (0, 5, 256)


def test_a_similarity_is_the_mean_of_the_best_views() -> None:
    encoder = ToyEncoder({"dog": [1.0, 0.0, 0.0], "cat": [0.0, 1.0, 0.0]})
    shares = np.array([0.1, 0.9, 0.5, 0.7, 0.2, 0.3])
    views = np.stack([shares, np.zeros(6), np.sqrt(1.0 - shares**2)], axis=1)
    pool = RegionPool(views[:1], views[None, 1:], scale=ViewScale(0.5, 0.1))
    ranked = LogicScorer(encoder).rank("a dog and no cat", pool)[0]
    assert [item.similarity for item in ranked.evidence] == pytest.approx([0.5 * 0.8 + 0.1, 0.1], abs=1e-6)


def test_fitted_similarities_are_on_the_scale_of_whole_images() -> None:
    from lcse_plugins.calibrating.unlabelled import COMMON_THINGS, spread_calibration
    from lcse_plugins.encoders.protocol import concept_vectors

    encoder = ToyEncoder(dimension=64)
    rng = np.random.default_rng(0)
    vectors = encoder.encode_images([f"{COMMON_THINGS[i % 50]} scene{i}" for i in range(100)])
    regions = rng.standard_normal((100, 5, 64)).astype(np.float32)
    regions /= np.linalg.norm(regions, axis=2, keepdims=True)
    scale = fit_view_scale(encoder, vectors, regions)
    concepts = concept_vectors(encoder, list(COMMON_THINGS))
    views = np.concatenate([vectors[:, None, :], regions], axis=1) @ concepts.T
    pooled = np.sort(views, axis=1)[:, -2:].mean(axis=1)
    assert spread_calibration(pooled).mu > spread_calibration(vectors @ concepts.T).mu, "untouched, they lie higher"
    carried, whole = spread_calibration(scale.factor * pooled + scale.offset), spread_calibration(vectors @ concepts.T)
    assert (carried.mu, carried.beta) == pytest.approx((whole.mu, whole.beta), rel=1e-4)
    assert RegionPool.fitted(encoder, vectors, regions).scale == scale
