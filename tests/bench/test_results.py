"""The kept results say what the documentation says of them, and no table is typed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lcse_plugins.bench.readme_tables import TABLES, filled, readme_tables
from lcse_plugins.bench.reports import read_result

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).resolve().parents[2] / "README.md"
RIVALS = ("subtraction", "best score", "holistic", "lcse", "lcse, affirmative text", "factored", "routed")


def result(name: str) -> dict[str, Any]:
    values: dict[str, Any] = read_result(RESULTS / f"{name}.json")["result"]
    return values


def means(name: str) -> dict[str, dict[str, float]]:
    return {row["ranker"]: row for row in result(name)["rows"] if row["operator"] == "mean"}


@pytest.mark.parametrize("name", sorted(set(TABLES) - {"timing"}))
def test_every_table_has_a_result_with_its_command(name: str) -> None:
    record = read_result(RESULTS / f"{name}.json")
    assert record["command"].startswith("lcse bench ")
    assert record["versions"]["numpy"]
    assert record["encoder"].startswith("starter@")
    assert "/work" not in record["command"]
    assert "/tmp" not in record["command"]
    assert "../" not in record["command"]
    assert readme_tables(RESULTS)[name].startswith("| ")


def test_plain_similarity_is_near_chance_and_logic_is_not() -> None:
    for name in ("factor", "factor-half-b"):
        modes = result(name)["modes"]
        assert 50 < modes["holistic"]["overall"] < 65
        for mode in ("lcse", "factored", "anchored"):
            assert modes[mode]["overall"] > modes["holistic"]["overall"] + 20


def test_equivalents_score_alike_with_canonical_text() -> None:
    modes = result("factor")["modes"]
    assert modes["lcse"]["violations"]["all"] > 50
    for mode in ("lcse, canonical text", "anchored, canonical text"):
        assert modes[mode]["violations"]["all"] == 0.0


def test_captions_without_logic_are_retained() -> None:
    found = result("retention")
    for mode in ("lcse", "anchored", "routed"):
        assert found["correlation"][mode] >= 0.999
        for depth, recall in found["recall"][mode].items():
            assert abs(recall - found["recall"]["holistic"][depth]) < 1.0


@pytest.mark.parametrize("name", sorted(name for name in TABLES if name.startswith("retrieval")))
def test_the_anchored_mode_ranks_best(name: str) -> None:
    figures = means(name)
    for rival in RIVALS:
        assert figures["anchored"]["p_at_10"] > figures[rival]["p_at_10"], rival
        assert figures["anchored"]["auc"] > figures[rival]["auc"], rival
    assert figures["anchored, 6 views"]["auc"] > figures["anchored"]["auc"] + 1.0
    assert figures["anchored, 15 views"]["auc"] > figures["anchored, 6 views"]["auc"]


def test_with_fifteen_views_it_leads_every_rival_by_the_floor() -> None:
    figures = means("retrieval-prototype")
    for rival in RIVALS:
        assert figures["anchored, 15 views"]["p_at_10"] >= figures[rival]["p_at_10"] + 3.0, rival
        assert figures["anchored, 15 views"]["auc"] >= figures[rival]["auc"] + 2.0, rival


def test_without_labels_the_calibration_is_within_a_point() -> None:
    fitted, free = result("calibrate")["objectives"]["pairwise"], result("calibrate")["unlabelled"]
    with_labels, without = result("factor-half-b-labelled"), result("factor-half-b")
    assert with_labels["calibration"]["mu"] == pytest.approx(fitted["mu"], abs=0.005)
    assert without["calibration"]["mu"] == pytest.approx(free["mu"], abs=0.005)
    for mode in ("lcse", "factored", "anchored"):
        assert without["modes"][mode]["overall"] > with_labels["modes"][mode]["overall"] - 1.0, mode


@pytest.mark.parametrize("page", [README, RESULTS / "README.md", README.parent / "integrations/qdrant_lcse/README.md"])
def test_pages_hold_the_kept_figures(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<!-- table: " in text
    assert filled(text, RESULTS) == text
