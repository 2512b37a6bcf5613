"""Ranking what another search found: what cannot be ranked, and the places kept for texts."""

from __future__ import annotations

from typing import Any

import pytest

from lcse_plugins import LogicScorer
from lcse_plugins.errors import ImageError, LcseError
from lcse_plugins.hosts.reranking import Reranked, rerank, usable_vector
from lcse_plugins.testing import toy_gallery

ENCODER, GALLERY = toy_gallery()
SCORER = LogicScorer(ENCODER)


def run(names: list[str], **options: Any) -> Reranked[str]:
    """Names of the gallery are pictures; "gone" is one that cannot be read, and "text" is none."""
    vectors = {str(one.id): one.vector for one in GALLERY}
    settings = {"limit": None, "min_truth": None, "is_picture": lambda name: not name.startswith("text"), **options}
    given = [vectors.get(name, ImageError(name, "cannot be read")) for name in names]
    return rerank(SCORER.encode("umbrella and no person"), names, given, **settings)


def order(outcome: Reranked[str]) -> list[str]:
    return [*(result.candidate.payload for result in outcome.ranking), *(one.found for one in outcome.unranked)]


NAMES = ["text 1", "gone", "person", "umbrella", "text 2", "umbrella bench"]
CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["umbrella", "umbrella bench", "person", "text 1", "gone", "text 2"]),
    ({"limit": 4}, ["umbrella", "umbrella bench", "person", "text 1"]),
    ({"limit": 2}, ["umbrella", "umbrella bench"]),
    ({"limit": 2, "keep_texts": 1}, ["umbrella", "text 1"]),
    ({"limit": 9, "keep_texts": 2, "on_missing": "drop"}, ["umbrella", "umbrella bench", "person", "text 1", "text 2"]),
    ({"on_missing": "drop"}, ["umbrella", "umbrella bench", "person"]),
    ({"min_truth": 0.5}, ["umbrella", "umbrella bench", "text 1", "text 2"]),
]


@pytest.mark.parametrize(("options", "expected"), CASES)
def test_what_follows_and_what_is_left_out(options: dict[str, Any], expected: list[str]) -> None:
    outcome = run(NAMES, **options)
    assert order(outcome) == expected
    assert not outcome.ranking.exact
    scores = [*(result.score for result in outcome.ranking), *(one.score for one in outcome.unranked)]
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]


def test_nothing_ranked_has_no_scores(caplog: pytest.LogCaptureFixture) -> None:
    assert [one.score for one in run(["text 1", "gone"]).unranked] == [None, None]
    assert "2 of 2 results could not be ranked" in caplog.text
    assert order(run([])) == []


def test_the_first_fault_is_raised_if_asked() -> None:
    with pytest.raises(LcseError, match="text 1"):
        run(NAMES, on_missing="raise")
    with pytest.raises(LcseError, match="gone"):
        run(NAMES, on_missing="raise", limit=3, keep_texts=1)
    assert order(run(["text 1", "umbrella"], on_missing="raise", limit=3, keep_texts=1)) == ["umbrella", "text 1"]


def test_usable_vectors() -> None:
    assert usable_vector([3.0, 4.0], 2) is not None
    for row in (None, [0.0, 0.0], [float("nan"), 1.0], [1e39, 1.0], [1.0]):
        assert usable_vector(row, 2) is None
