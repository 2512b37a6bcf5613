"""The picture report as text: what it says, and what it never does. `tests/browser` looks at it in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from lcse_plugins import Candidate, LogicScorer, ScoringConfig
from lcse_plugins.cli.report import Comparison, render_report, write_report
from lcse_plugins.scoring.results import Ranking
from lcse_plugins.testing import ToyEncoder

NASTY = "<script>alert(1)<script>&\"'.png"


def comparison(folder: Path, names: list[str], query: str) -> Comparison:
    encoder = ToyEncoder()
    for place, name in enumerate(names):
        Image.new("RGB", (600, 400), (40 * place % 255, 90, 120)).save(folder / name)
    vectors = encoder.encode_images(names)
    candidates = [
        Candidate(id=name, vector=vector, payload=folder / name) for name, vector in zip(names, vectors, strict=True)
    ]
    plain = LogicScorer(encoder, config=ScoringConfig(mode="holistic"))
    return Comparison(plain=plain.rank(query, candidates), logical=LogicScorer(encoder).rank(query, candidates))


@pytest.fixture
def page(tmp_path: Path) -> str:
    names = ["umbrella person.png", "umbrella.png", "person.png", "bench.png", NASTY]
    return render_report([comparison(tmp_path, names, "umbrella and no person")])


def test_shows_query_tree_and_both_rankings(page: str) -> None:
    assert "umbrella and no person</h2>" in page
    assert "└── NOT person" in page
    plain, logical = page.split("<h3>With logic</h3>")
    assert plain.index('alt="place 1: umbrella person.png"') > 0
    assert logical.index('alt="place 1: umbrella.png"') > 0
    assert "logic moves it to place" in plain
    assert "logic moves it" not in logical


def test_shows_evidence_with_its_polarity(page: str) -> None:
    first = page.split("<h3>With logic</h3>")[1].split("</li>")[0]
    assert re.search(r'umbrella <span class="fits">✓</span></dt><dd class="wanted">', first)
    assert re.search(r'no person <span class="fits">✓</span></dt><dd class="unwanted">', first)
    assert re.search(r"score \d\.\d{3} = \d\.\d{3} \+\d\.\d{3}", first)


def test_names_and_queries_stay_text(tmp_path: Path, page: str) -> None:
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;" in page
    hostile = render_report([comparison(tmp_path, ["umbrella.png"], 'an umbrella <img src=x onerror="alert(1)">')])
    assert "<img src=x" not in hostile


def test_asks_for_nothing(page: str) -> None:
    assert set(re.findall(r'src="([^,"]*)', page)) == {"data:image/jpeg;base64"}
    assert not re.search(r"https?:|@import|url\(|<link|<script|<iframe", page)
    assert "default-src 'none'" in page


def test_is_one_modest_file(tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", [comparison(tmp_path, ["umbrella.png", "person.png"], "no person")])
    assert 2_000 < (tmp_path / "r.html").stat().st_size < 100_000


def test_a_picture_that_cannot_be_shown_says_why(tmp_path: Path) -> None:
    shown = comparison(tmp_path, ["umbrella.png", NASTY, "bench.png"], "no person")
    (tmp_path / "umbrella.png").unlink()
    (tmp_path / NASTY).write_bytes(b"no picture")
    page = render_report([shown])
    assert page.count("This picture could not be shown: there is no such file") == 2
    assert page.count("This picture could not be shown: not a picture in a known format") == 2
    assert page.count("<img ") == 2
    assert page.count("</b> umbrella.png") == 2
    assert "<script" not in page


def test_notes_and_parser_errors_are_shown(tmp_path: Path) -> None:
    assert "contradiction" in render_report([comparison(tmp_path, ["umbrella.png"], "umbrella and no umbrella")])


def test_an_empty_ranking_says_so(tmp_path: Path) -> None:
    full = comparison(tmp_path, ["umbrella.png", "person.png"], "no person")
    nothing = Ranking([], parse=full.logical.parse, mode=full.logical.mode, exact=True)
    plain, logical = render_report([Comparison(plain=full.plain, logical=nothing)]).split("<h3>With logic</h3>")
    assert plain.count("<li ") == 2
    assert 'class="moved' not in plain
    assert "no picture satisfies the query far enough" in logical
    assert "<ol>" not in logical
