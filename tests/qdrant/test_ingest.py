"""Pictures into a collection: resumable, broken ones listed, other encoders refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_lcse import IngestReport, LogicSearch, aindex_images, index_images

from lcse_plugins import LogicScorer
from lcse_plugins.errors import CollectionError, ImageError, InvalidOption
from lcse_plugins.testing import ToyEncoder

ENCODER = ToyEncoder(dimension=16)


@pytest.fixture
def client() -> QdrantClient:
    return QdrantClient(":memory:")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Seven pictures, two of them in a folder of their own, a copy of one, and a broken one."""
    pictures = tmp_path / "pictures"
    (pictures / "more").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(7):
        pixels = rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(pictures / ("more" if i > 4 else ".") / f"{i}.png")
    (pictures / "0 again.png").write_bytes((pictures / "0.png").read_bytes())
    (pictures / "broken.png").write_bytes(b"not a picture")
    return pictures


def index(client: QdrantClient, paths: Any, encoder: Any = ENCODER, **options: Any) -> IngestReport:
    return index_images(client, "photos", paths, encoder, progress=False, **options)


def payloads(client: QdrantClient) -> list[dict[str, Any]]:
    return [record.payload or {} for record in client.scroll("photos", limit=100)[0]]


def test_a_folder_is_indexed_and_searched(client: QdrantClient, folder: Path) -> None:
    report = index(client, folder, payload=lambda path: {"name": path.name}, batch_size=3)
    assert (report.indexed, report.present) == (7, 1)
    assert [Path(fault.source).name for fault in report.broken] == ["broken.png"]
    assert report.images_per_second > 0
    assert client.count("photos").count == 7
    hits = LogicSearch(client, "photos", LogicScorer(ENCODER)).query("dog and no cat", limit=3)
    payload = hits.points[0].payload or {}
    assert Path(payload["path"]).name == payload["name"]
    assert hits.explain().startswith(f"{payload['name']}: ")
    assert payload["encoder_id"] == ENCODER.encoder_id


async def test_the_async_form_does_the_same(folder: Path) -> None:
    client = AsyncQdrantClient(":memory:")
    report = await aindex_images(client, "photos", folder, ENCODER, progress=False)
    assert (report.indexed, report.present, len(report.broken)) == (7, 1, 1)
    (folder / "1.png").unlink()
    assert (await aindex_images(client, "photos", folder, ENCODER, prune=True, progress=False)).removed == 1
    with pytest.raises(InvalidOption, match="takes a QdrantClient, not AsyncQdrantClient"):
        index_images(client, "photos", folder, ENCODER)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="use index_images"):
        await aindex_images(QdrantClient(":memory:"), "photos", folder, ENCODER)  # type: ignore[arg-type]


def test_points_of_pictures_that_are_gone_or_changed_go_when_asked(
    client: QdrantClient, folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.png"
    Image.new("RGB", (9, 9), "green").save(elsewhere)
    index(client, [elsewhere])
    index(client, folder)
    (folder / "1.png").unlink()
    Image.new("RGB", (9, 9), "blue").save(folder / "2.png")
    (folder / "3.png").write_bytes(b"damaged")  # what is known of it may still be right
    elsewhere.unlink()
    assert index(client, folder).removed == 0
    assert client.count("photos").count == 9
    report = index(client, folder, prune=True)
    assert (report.indexed, report.removed) == (0, 2)
    names = {Path(payload["path"]).name for payload in payloads(client)}
    assert names >= {"2.png", "3.png", "elsewhere.png"}
    assert "1.png" not in names


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_devices_and_odd_names_are_listed_and_never_waited_for(client: QdrantClient, folder: Path) -> None:
    os.mkfifo(folder / "pipe.jpg")
    (folder / "zero.jpg").symlink_to("/dev/zero")
    (folder / os.fsdecode(b"caf\xe9.png")).write_bytes((folder / "1.png").read_bytes())
    report = index(client, folder)
    assert (report.indexed, len(report.broken)) == (7, 4)


def test_a_second_run_encodes_only_what_is_new(client: QdrantClient, folder: Path) -> None:
    def stop(path: Path) -> dict[str, object]:
        if path.name == "3.png":
            raise KeyboardInterrupt
        return {}

    with pytest.raises(KeyboardInterrupt):
        index(client, folder, payload=stop, batch_size=2)
    stored, encoded = client.count("photos").count, ENCODER.images_encoded
    assert 0 < stored < 7
    assert index(client, folder).indexed == ENCODER.images_encoded - encoded == 7 - stored
    again = index(client, folder)
    assert (again.indexed, again.present, len(again.broken)) == (0, 8, 1)


def test_mistakes_are_told_before_anything_is_made(client: QdrantClient, folder: Path) -> None:
    with pytest.raises(ImageError):
        index(client, folder / "nowhere")
    with pytest.raises(InvalidOption, match="batch_size"):
        index(client, folder, batch_size=0)
    with pytest.raises(InvalidOption, match="needs a folder"):
        index(client, [folder / "0.png"], prune=True)
    assert not client.collection_exists("photos")
    with pytest.raises(InvalidOption, match="mapping for each picture, not None"):
        index(client, folder, payload=lambda path: None)


def test_collections_of_others_are_refused(client: QdrantClient, folder: Path) -> None:
    index(client, folder)
    with pytest.raises(CollectionError, match="holds vectors of encoder"):
        index(client, folder, ToyEncoder({"dog": np.eye(16)[0]}))
    with pytest.raises(CollectionError, match="16 dimensions, the encoder's 8"):
        index(client, folder, ToyEncoder(dimension=8))


def test_a_picture_that_moved_gets_its_new_path_and_the_payload_for_it(client: QdrantClient, folder: Path) -> None:
    index(client, folder, payload=lambda path: {"name": path.stem})
    (folder / "1.png").rename(folder / "renamed.png")
    index(client, folder, payload=lambda path: {"name": path.stem})
    names = {payload["name"] for payload in payloads(client)}
    assert "renamed" in names
    assert names == {Path(payload["path"]).stem for payload in payloads(client)}


@pytest.mark.parametrize("together", [False, True])
def test_of_equal_pictures_the_first_names_the_path(client: QdrantClient, tmp_path: Path, together: bool) -> None:
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    for path in paths:
        Image.new("RGB", (9, 9), "red").save(path)
    for batch in [paths] if together else [[path] for path in paths]:
        index(client, batch)
    assert [payload["path"] for payload in payloads(client)] == [str(paths[0])]


def test_pictures_without_vectors_of_the_name_are_not_called_present(client: QdrantClient, folder: Path) -> None:
    params = models.VectorParams(size=16, distance=models.Distance.COSINE)
    client.create_collection("photos", vectors_config={"a": params, "b": params})
    index(client, folder, vector_name="a")
    with pytest.raises(CollectionError, match="without vectors named 'b'"):
        index(client, folder, vector_name="b")


def test_named_vectors_and_a_progress_bar(
    client: QdrantClient, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    listed = sorted(folder.glob("*.png"))[:4]
    for paths, told in ((folder, "9/9"), (listed, "4/4"), (iter(listed), "4/?")):
        index_images(client, "photos", paths, ENCODER, vector_name="image")
        assert told in capsys.readouterr().err
    search = LogicSearch(client, "photos", LogicScorer(ENCODER), vector_name="image")
    assert len(search.query("dog and no cat")) == 7
