"""Pictures into a collection: resumable, broken ones listed, other encoders refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_lcse import LogicSearch, index_images
from qdrant_lcse.embedded import EmbeddedClient

from lcse_plugins import LogicScorer
from lcse_plugins.errors import CollectionError, ImageError, InvalidOption, UnknownEncoder
from lcse_plugins.testing import ToyEncoder

ENCODER = ToyEncoder(dimension=16)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pictures = tmp_path / "pictures"
    (pictures / "more").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(7):
        pixels = rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(pictures / ("more" if i > 4 else ".") / f"{i}.png")
    (pictures / "0 again.png").write_bytes((pictures / "0.png").read_bytes())
    (pictures / "broken.png").write_bytes(b"not a picture")
    return pictures


def test_a_folder_is_indexed_and_searched(folder: Path) -> None:
    client = QdrantClient(":memory:")
    report = index_images(
        client, "photos", folder, ENCODER, payload=lambda path: {"name": path.name}, batch_size=3, progress=False
    )
    assert (report.indexed, report.present) == (7, 1)
    assert [Path(fault.source).name for fault in report.broken] == ["broken.png"]
    assert report.images_per_second > 0
    assert client.count("photos").count == 7
    hits = LogicSearch(client, "photos", LogicScorer(ENCODER)).query("dog and no cat", limit=3)
    payload = hits.points[0].payload or {}
    assert Path(payload["path"]).name == payload["name"]
    assert hits.explain().startswith(f"{payload['name']}: score")
    assert payload["encoder_id"] == ENCODER.encoder_id


def test_an_encoder_may_be_named(folder: Path) -> None:
    client = QdrantClient(":memory:")
    assert index_images(client, "photos", folder, "starter", progress=False).indexed == 7
    with pytest.raises(UnknownEncoder):
        index_images(client, "photos", folder, "stater", progress=False)


def test_a_client_that_must_be_awaited_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidOption, match="stored with a QdrantClient, not AsyncQdrantClient"):
        index_images(AsyncQdrantClient(":memory:"), "photos", folder, ENCODER)  # type: ignore[arg-type]


def test_a_mistake_in_the_program_is_no_outage(folder: Path) -> None:
    client = QdrantClient(":memory:")
    client.get_collection = None  # type: ignore[assignment,method-assign]
    with pytest.raises(TypeError):
        index_images(client, "photos", folder, ENCODER, progress=False)


def test_a_second_run_encodes_only_what_is_new(folder: Path, tmp_path: Path) -> None:
    with EmbeddedClient(tmp_path / "engine") as client:
        half = sorted(folder.glob("*.png"))[:3]
        first = index_images(client, "photos", half, ENCODER, progress=False)
        encoded = ENCODER.images_encoded
        second = index_images(client, "photos", folder, ENCODER, progress=False)
        assert ENCODER.images_encoded - encoded == second.indexed == 7 - first.indexed
        third = index_images(client, "photos", folder, ENCODER, progress=False)
        assert (third.indexed, third.present, len(third.broken)) == (0, 8, 1)


def test_payload_must_be_a_mapping(folder: Path) -> None:
    with pytest.raises(InvalidOption, match="mapping for each picture, not None"):
        index_images(QdrantClient(":memory:"), "photos", folder, ENCODER, payload=lambda path: None, progress=False)  # type: ignore[arg-type,return-value]


def test_paths_may_stand_in_a_payload(folder: Path, tmp_path: Path) -> None:
    with EmbeddedClient(tmp_path / "engine") as client:
        index_images(client, "photos", folder, ENCODER, payload=lambda path: {"folder": path.parent}, progress=False)
        folders = {(record.payload or {})["folder"] for record in client.scroll("photos", limit=100)[0]}
        assert folders == {str(folder), str(folder / "more")}


def test_an_interrupted_run_goes_on(folder: Path) -> None:
    client = QdrantClient(":memory:")

    def stop(path: Path) -> dict[str, object]:
        if path.name == "3.png":
            raise KeyboardInterrupt
        return {}

    with pytest.raises(KeyboardInterrupt):
        index_images(client, "photos", folder, ENCODER, payload=stop, batch_size=2, progress=False)
    stored = client.count("photos").count
    assert 0 < stored < 7
    assert index_images(client, "photos", folder, ENCODER, progress=False).indexed == 7 - stored


def test_collections_of_others_are_refused(folder: Path) -> None:
    client = QdrantClient(":memory:")
    index_images(client, "photos", folder, ENCODER, progress=False)
    other = ToyEncoder({"dog": np.eye(16)[0]})
    with pytest.raises(CollectionError, match="holds vectors of encoder"):
        index_images(client, "photos", folder, other, progress=False)
    Image.new("RGB", (9, 9), "red").save(folder.parent / "another.png")
    with pytest.raises(CollectionError, match="holds vectors of encoder"):
        index_images(client, "photos", [folder.parent / "another.png"], other, progress=False)
    with pytest.raises(CollectionError, match="16 dimensions, the encoder's 8"):
        index_images(client, "photos", folder, ToyEncoder(dimension=8), progress=False)
    euclid = models.VectorParams(size=16, distance=models.Distance.EUCLID)
    client.create_collection("far", vectors_config=euclid)
    with pytest.raises(CollectionError, match="Euclid"):
        index_images(client, "far", folder, ENCODER, progress=False)
    with pytest.raises(InvalidOption):
        index_images(client, "photos", folder, ENCODER, batch_size=0, progress=False)


def test_a_missing_folder_makes_no_collection(tmp_path: Path) -> None:
    client = QdrantClient(":memory:")
    with pytest.raises(ImageError):
        index_images(client, "photos", tmp_path / "nowhere", ENCODER, progress=False)
    assert not client.collection_exists("photos")


@pytest.mark.parametrize("embedded", [False, True])
def test_a_picture_that_moved_gets_its_new_path(folder: Path, tmp_path: Path, embedded: bool) -> None:
    client = EmbeddedClient(tmp_path / "engine") if embedded else QdrantClient(":memory:")
    index_images(client, "photos", folder, ENCODER, payload=lambda path: {"kept": True}, progress=False)
    (folder / "1.png").rename(folder / "renamed.png")
    report = index_images(client, "photos", folder, ENCODER, progress=False)
    assert (report.indexed, report.present) == (0, 8)
    payloads = [record.payload or {} for record in client.scroll("photos", limit=100)[0]]
    assert "renamed.png" in {Path(payload["path"]).name for payload in payloads}
    assert all(Path(payload["path"]).exists() and payload["kept"] for payload in payloads)
    client.close()


def test_a_picture_that_moved_gets_the_payload_of_its_new_path(folder: Path) -> None:
    client = QdrantClient(":memory:")

    def index() -> None:
        index_images(client, "photos", folder, ENCODER, payload=lambda path: {"name": path.stem}, progress=False)

    index()
    (folder / "1.png").rename(folder / "renamed.png")
    index()
    payloads = [record.payload or {} for record in client.scroll("photos", limit=100)[0]]
    assert {payload["name"] for payload in payloads} == {Path(payload["path"]).stem for payload in payloads}


@pytest.mark.parametrize("together", [False, True])
def test_of_equal_pictures_the_first_names_the_path(tmp_path: Path, together: bool) -> None:
    client, paths = QdrantClient(":memory:"), [tmp_path / "a.png", tmp_path / "b.png"]
    for path in paths:
        Image.new("RGB", (9, 9), "red").save(path)
    for batch in [paths] if together else [[path] for path in paths]:
        index_images(client, "photos", batch, ENCODER, progress=False)
    (record,) = client.scroll("photos")[0]
    assert (record.payload or {})["path"] == str(paths[0])


def test_pictures_without_vectors_of_the_name_are_not_called_present(folder: Path) -> None:
    client = QdrantClient(":memory:")
    params = models.VectorParams(size=16, distance=models.Distance.COSINE)
    client.create_collection("photos", vectors_config={"a": params, "b": params})
    index_images(client, "photos", folder, ENCODER, vector_name="a", progress=False)
    with pytest.raises(CollectionError, match="without vectors named 'b'"):
        index_images(client, "photos", folder, ENCODER, vector_name="b", progress=False)


def test_named_vectors_and_a_progress_bar(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    client = QdrantClient(":memory:")
    report = index_images(client, "photos", folder, ENCODER, vector_name="image")
    assert report.indexed == 7
    assert "9/9" in capsys.readouterr().err
    index_images(client, "photos", sorted(folder.glob("*.png"))[:4], ENCODER, vector_name="image")
    assert "4/4" in capsys.readouterr().err
    index_images(client, "photos", folder.glob("*.png"), ENCODER, vector_name="image")
    assert "7/?" in capsys.readouterr().err
    search = LogicSearch(client, "photos", LogicScorer(ENCODER), vector_name="image")
    assert len(search.query("dog and no cat")) == 7
