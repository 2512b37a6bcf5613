"""The page's server, asked as the page asks it, and the page as one file; `tests/browser` looks at both."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from qdrant_client import QdrantClient, models
from qdrant_lcse import index_images
from starlette.testclient import TestClient

from lcse_plugins import Candidate, ImageIndex, LogicScorer
from lcse_plugins.cli.page.app import PageState, make_app
from lcse_plugins.cli.page.collections import FolderCollection, QdrantCollection
from lcse_plugins.cli.page.report import Comparison, write_report
from lcse_plugins.images.gallery import demo_photos
from lcse_plugins.testing import ToyEncoder

TOKEN = "secret-token"
NASTY = "<img src=x onerror=alert(1)>&\"'.png"
DOG = {"op": "concept", "text": "dog"}
PERSON = {"op": "concept", "text": "person"}


@pytest.fixture(scope="module")
def scorer() -> LogicScorer:
    return LogicScorer("starter")


@pytest.fixture(scope="module")
def state(scorer: LogicScorer, tmp_path_factory: pytest.TempPathFactory) -> PageState:
    place = tmp_path_factory.mktemp("page") / "index"
    ImageIndex.build(demo_photos()[0].parent, place, encoder=scorer.encoder)
    state = PageState(title="photographs")
    state.put(FolderCollection(ImageIndex.open(place)))
    return state


@pytest.fixture(scope="module")
def page(state: PageState, scorer: LogicScorer) -> Iterator[TestClient]:
    with client_of(state, scorer) as client:
        yield client


def client_of(state: PageState, scorer: LogicScorer) -> TestClient:
    return TestClient(make_app(state, scorer, token=TOKEN), base_url=f"http://127.0.0.1:8765/{TOKEN}/")


def search(page: TestClient, **asked: Any) -> Any:
    return page.post("search", json={"limit": 6, **asked}).json()


def ids(results: list[Any]) -> list[str]:
    return [result["id"] for result in results]


def test_logic_is_obeyed_and_compared(page: TestClient) -> None:
    answer = search(page, text="a dog and no person", compare=True, limit=12)
    assert answer["plain"][0]["id"] == "skier-with-dog.jpg"
    first = answer["results"][0]
    assert first["line"] == "dog: clear · no person: not seen"
    assert first["alt"] == f"{first['name']}: dog clear, person not seen"
    assert first["satisfies"]
    assert Path(first["path"]).is_file()
    assert answer["tree"] == {"op": "and", "children": [DOG, {"op": "not", "child": PERSON}]}
    assert answer["summary"] == f"{answer['satisfied']} pictures satisfy this; the rest are the nearest."
    fewer = search(page, text="a dog and no person", limit=2)
    assert (fewer["satisfying"], fewer["satisfied"]) == (answer["satisfied"], 2)
    assert fewer["summary"] == f"{answer['satisfied']} pictures satisfy this; 2 of them are shown."
    against = next(result for result in answer["plain"] if not result["satisfies"])
    assert re.search(r"person: (likely|clear)", against["line"])


def test_arithmetic_adds_up(page: TestClient) -> None:
    for text in ("a dog or a cat", "neither a dog nor a person", "(a dog or a cat) and no person"):
        for result in search(page, text=text)["results"]:
            logic, plain, score = map(float, re.findall(r"-?\d+\.\d+", result["arithmetic"][-1]))
            assert (logic + plain) / 2 == pytest.approx(score, abs=2e-4)
            assert score == pytest.approx(result["score"], abs=1e-4)


@pytest.mark.parametrize("mode", ["lcse", "factored", "routed", "holistic"])
def test_every_mode_answers(page: TestClient, mode: str) -> None:
    answer = search(page, text="a dog and no person", mode=mode)
    assert answer["mode"] == mode
    assert all(result["arithmetic"] for result in answer["results"])


def test_a_tree_corrected_by_hand_is_searched_as_it_is(page: TestClient) -> None:
    tree = {"op": "and", "children": [{"op": "not", "child": DOG}, PERSON]}
    answer = search(page, text="a dog and no person", tree=tree)
    assert answer["tree"] == tree
    assert [(item["concept"], item["negated"]) for item in answer["results"][0]["evidence"]] == [
        ("dog", True),
        ("person", False),
    ]
    assert not any("dog" in name for name in ids(answer["results"]))


def test_examples_lead(page: TestClient) -> None:
    assert ids(search(page, text="  ")["results"]) == [photo.name for photo in demo_photos()[:6]]  # without any
    like = {"id": "zebras.jpg"}
    assert search(page, examples=[like])["results"][0]["id"] == "zebras.jpg"
    assert search(page, text="an animal and no dog", examples=[like])["results"][0]["id"] == "zebras.jpg"
    unlike = search(page, text="an animal", examples=[{"id": "zebras.jpg", "negated": True}], limit=10)
    assert "zebras.jpg" not in ids(unlike["results"])


def test_a_dropped_picture_is_searched_by(page: TestClient) -> None:
    zebras = next(photo for photo in demo_photos() if photo.stem == "zebras")
    kept = page.post("drop", content=zebras.read_bytes()).json()
    assert search(page, examples=[kept])["results"][0]["id"] == "zebras.jpg"
    small = page.get("picture", params={"key": kept["key"]})
    assert Image.open(BytesIO(small.content)).format == "JPEG"
    assert "no longer kept" in search(page, examples=[{"key": "drop-0"}])["refused"]
    assert "picture" in page.post("drop", content=b"no picture").json()["refused"]
    assert page.post("drop", content=b"0" * (33 * 1024 * 1024)).json()["refused"] == "that is too large"


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b'{"tree": {"op": "xor"}}',
        b'{"text": "dog", "mode": "magic"}',
        b'{"text": "(a dog AND"}',
        b'{"text": "dog", "min_truth": 7}',
        b'{"text": "dog", "limit": "many"}',
        b'{"examples": [{"id": "../../etc/passwd"}]}',
        b'{"examples": [3]}',
        b'{"tree": ' + b'{"op":"not","child":' * 5000,
        b" " * (257 * 1024),
    ],
)
def test_what_cannot_be_answered_is_said(page: TestClient, body: bytes) -> None:
    reply = page.post("search", content=body)
    assert reply.status_code == 200
    assert reply.json()["refused"]


def test_pictures_of_the_collection_are_served_and_no_others(page: TestClient, tmp_path: Path) -> None:
    found = page.get("picture", params={"id": "horses.jpg", "side": 384})
    assert found.headers["content-type"] == "image/jpeg"
    assert max(Image.open(BytesIO(found.content)).size) <= 384
    Image.new("RGB", (64, 64)).save(tmp_path / "private.jpg")
    refused: list[dict[str, str | int]] = [
        {"id": str(tmp_path / "private.jpg"), "side": 384},
        {"id": "../../../../etc/passwd", "side": 384},
        {"id": "horses.jpg", "side": 100_000},
        {"side": 384},
    ]
    for asked in refused:
        assert page.get("picture", params=asked).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8765"},
        {"host": "127.0.0.1.evil.example:8765"},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_other_sites_get_nothing(page: TestClient, headers: dict[str, str]) -> None:
    for address in ("", "state", "picture?id=horses.jpg&side=384"):
        assert page.get(address, headers=headers).status_code == 404
    assert page.post("search", json={"text": "dog"}, headers=headers).status_code == 404


def test_without_the_token_there_is_nothing(state: PageState, scorer: LogicScorer) -> None:
    client = TestClient(make_app(state, scorer, token=TOKEN), base_url="http://127.0.0.1:8765")
    for address in ("/", "/state", "/page.js", "/wrong/", f"/{TOKEN}x/", "/ü/"):
        reply = client.get(address)
        assert reply.status_code == 404
        assert "default-src 'none'" in reply.headers["content-security-policy"]


def test_the_page_asks_nobody_else(page: TestClient) -> None:
    reply = page.get("")
    assert "default-src 'none'; script-src 'self'" in reply.headers["content-security-policy"]
    assert reply.headers["referrer-policy"] == "no-referrer"
    for name in ("", "page.css", "page.js"):
        assert not re.search(r"https?://|@import|url\(|innerHTML|eval\(|<iframe", page.get(name).text)


def test_progress_is_told(scorer: LogicScorer, state: PageState) -> None:
    waiting = PageState(title="photographs", busy=True, done=3, total=9)
    with client_of(waiting, scorer) as client:
        told = client.get("state").json()
        assert (told["ready"], told["done"], told["total"]) == (False, 3, 9)
        assert "still being indexed" in search(client, text="dog")["refused"]
        assert state.collection is not None
        waiting.put(state.collection)
        assert client.get("state").json()["pictures"] == len(demo_photos())
        assert client.get("state").json()["mode"] == "anchored"


def test_the_same_page_over_qdrant(scorer: LogicScorer) -> None:
    photos = demo_photos()
    client = QdrantClient(":memory:")
    index_images(client, "photos", photos[0].parent, scorer.encoder)
    elsewhere = models.PointStruct(id=900, vector=[1.0] * scorer.encoder.dimension, payload={"path": "/etc/hosts.jpg"})
    client.upsert("photos", [elsewhere])
    state = PageState(title="photos on localhost")
    state.put(QdrantCollection(client, "photos", scorer, pictures=photos[0].parent))
    with client_of(state, scorer) as page:
        answer = search(page, text="a dog and no person", compare=True)
        assert answer["plain"][0]["name"] == "skier-with-dog.jpg"
        first = answer["results"][0]
        assert first["line"] == "dog: clear · no person: not seen"
        assert page.get("picture", params={"id": first["id"], "side": 384}).status_code == 200
        for missing in ("900", "12345"):
            assert page.get("picture", params={"id": missing, "side": 384}).status_code == 404
        zebras = search(page, text="zebra")["results"][0]["id"]
        assert search(page, examples=[{"id": zebras}])["results"][0]["id"] == zebras
        assert search(page, text="an animal and no dog", examples=[{"id": zebras}])["results"][0]["id"] == zebras
        assert search(page, tree={"op": "not", "child": DOG})["tree"] == {"op": "not", "child": DOG}
        assert len(search(page)["results"]) == 6
        assert page.get("state").json()["pictures"] == len(photos) + 1
    client.close()


def test_a_report_is_the_page_with_its_data_inside(tmp_path: Path) -> None:
    encoder, query = ToyEncoder(), 'umbrella AND NOT person AND NOT "</script>"'
    names = ["umbrella person.png", "umbrella.png", "bench.png", NASTY]
    for name in names:
        Image.new("RGB", (600, 400), (40, 90, 120)).save(tmp_path / name)
    rows = zip(names, encoder.encode_images(names), strict=True)
    candidates = [Candidate(id=name, vector=vector, payload=tmp_path / name) for name, vector in rows]
    scorer = LogicScorer(encoder)
    plain = LogicScorer.of(scorer, mode="holistic").rank(query, candidates)
    compared = Comparison(encoded=scorer.encode(query), logical=scorer.rank(query, candidates), plain=plain)
    assert write_report(tmp_path / "r.html", [compared], title="A <title>") == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")

    inside = re.search(r'<script type="application/json" id="report">(.*?)</script>', page, re.DOTALL)
    assert inside is not None
    data = json.loads(inside[1])
    (answer,) = data["answers"]
    assert answer["query"] == query
    assert answer["results"][0]["id"] == "umbrella.png"
    assert answer["plain"][0]["id"] == "umbrella person.png"
    assert answer["results"][0]["href"] == (tmp_path / "umbrella.png").as_uri()
    assert set(data["pictures"]) == set(names)
    assert all(picture.startswith("data:image/jpeg;base64,") for picture in data["pictures"].values())

    assert "<title>A &lt;title&gt;</title>" in page
    assert not re.search(r'src="|<link rel="stylesheet|@import|<iframe|<img src=x', page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert "default-src 'none'; img-src data:" in policy[1]
    for pattern in (r"<script>(.*?)</script>", r"<style>(.*?)</style>"):
        (text,) = re.findall(pattern, page, re.DOTALL)
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy[1]
