"""Resampled vectors: as many as wanted, where photographs lie and as they vary."""

from __future__ import annotations

import numpy as np
import pytest

from lcse_plugins.bench.resampled import WidenedEncoder, resample
from lcse_plugins.errors import InvalidOption
from lcse_plugins.testing import ToyEncoder


def photographs() -> np.ndarray:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((200, 6)) @ rng.standard_normal((6, 16)) + 2.0
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def test_rows_are_unit_vectors_the_same_for_the_same_seed() -> None:
    made = resample(photographs(), 12_345, np.random.default_rng(0))
    assert made.shape == (12_345, 16)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(made, resample(photographs(), 12_345, np.random.default_rng(0)))


def test_rows_vary_as_photographs_do() -> None:
    real, made = photographs(), resample(photographs(), 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(made.mean(axis=0), real.mean(axis=0), atol=0.03)
    directions = np.linalg.svd(real - real.mean(axis=0))[2]
    outside = (made - real.mean(axis=0)) @ directions[8:].T
    assert np.square(outside).sum() < 0.1 * np.square(made - real.mean(axis=0)).sum()
    assert len(np.unique(made.round(4), axis=0)) == len(made)


def test_a_wider_space_keeps_every_cosine() -> None:
    narrow = ToyEncoder(dimension=24)
    wide = WidenedEncoder(narrow, 40, np.random.default_rng(0))
    texts = ["dog", "cat", "a red car"]
    before, after = narrow.encode_texts(texts), wide.encode_texts(texts)
    np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-5)
    assert wide.dimension == 40
    with pytest.raises(InvalidOption, match="at least"):
        WidenedEncoder(narrow, 8, np.random.default_rng(0))
