"""Pictures into a collection: resumable, broken ones listed, other encoders refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_lcse import LogicSearch, NewCollection, aindex_images, index_images

from lcse_plugins import LogicScorer
from lcse_plugins.errors import CollectionError, ImageError, InvalidOption
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
    assert hits.explain().startswith(f"{payload['name']}: ")
    assert payload["encoder_id"] == ENCODER.encoder_id


async def test_the_async_form_does_the_same(folder: Path) -> None:
    client = AsyncQdrantClient(":memory:")
    report = await aindex_images(client, "photos", folder, ENCODER, progress=False)
    assert (report.indexed, report.present, len(report.broken)) == (7, 1, 1)
    (folder / "1.png").unlink()
    assert (await aindex_images(client, "photos", folder, ENCODER, prune=True, progress=False)).removed == 1
    assert (await client.count("photos")).count == 6
    with pytest.raises(ImageError):
        await aindex_images(client, "photos", folder / "nowhere", ENCODER, progress=False)
    with pytest.raises(InvalidOption, match="takes a QdrantClient, not AsyncQdrantClient"):
        index_images(client, "photos", folder, ENCODER)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="use index_images"):
        await aindex_images(QdrantClient(":memory:"), "photos", folder, ENCODER)  # type: ignore[arg-type]


def test_points_of_pictures_that_are_gone_or_changed_go_when_asked(folder: Path, tmp_path: Path) -> None:
    client, elsewhere = QdrantClient(":memory:"), tmp_path / "elsewhere.png"
    Image.new("RGB", (9, 9), "green").save(elsewhere)
    index_images(client, "photos", [elsewhere], ENCODER, progress=False)
    index_images(client, "photos", folder, ENCODER, progress=False)
    (folder / "1.png").unlink()
    Image.new("RGB", (9, 9), "blue").save(folder / "2.png")
    (folder / "3.png").write_bytes(b"damaged")  # what is known of it may still be right
    elsewhere.unlink()
    assert index_images(client, "photos", folder, ENCODER, progress=False).removed == 0
    assert client.count("photos").count == 9
    report = index_images(client, "photos", folder, ENCODER, prune=True, progress=False)
    assert (report.indexed, report.removed) == (0, 2)
    names = {Path((record.payload or {})["path"]).name for record in client.scroll("photos", limit=100)[0]}
    assert names >= {"2.png", "3.png", "elsewhere.png"}
    assert "1.png" not in names
    with pytest.raises(InvalidOption, match="needs a folder"):
        index_images(client, "photos", [elsewhere], ENCODER, prune=True, progress=False)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_devices_and_odd_names_are_listed_and_never_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.jpg")
    (folder / "zero.jpg").symlink_to("/dev/zero")
    (folder / os.fsdecode(b"caf\xe9.png")).write_bytes((folder / "1.png").read_bytes())
    report = index_images(QdrantClient(":memory:"), "photos", folder, ENCODER, progress=False)
    assert (report.indexed, len(report.broken)) == (7, 4)


def test_how_a_new_collection_is_made(folder: Path) -> None:
    made: list[dict[str, object]] = []

    client = QdrantClient(":memory:")
    make = client.create_collection

    def noting(collection_name: str, **options: Any) -> bool:
        made.append(options)
        return make(collection_name, vectors_config=options["vectors_config"])

    client.create_collection = noting  # type: ignore[assignment, method-assign]
    client.create_payload_index = lambda collection_name, **options: made.append(options)  # type: ignore[assignment, method-assign]
    int8 = models.ScalarQuantization(scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8))
    create = NewCollection(
        shards=6,
        replicas=2,
        on_disk=True,
        quantization=int8,
        payload_indexes={"tenant": models.PayloadSchemaType.KEYWORD},
    )
    index_images(client, "photos", folder, ENCODER, create=create, progress=False)
    collection, index = made
    assert (collection["shard_number"], collection["replication_factor"]) == (6, 2)
    assert (collection["quantization_config"], collection["vectors_config"].on_disk) == (int8, True)  # type: ignore[attr-defined]
    assert index == {"field_name": "tenant", "field_schema": "keyword"}


def test_a_second_run_encodes_only_what_is_new(folder: Path) -> None:
    client = QdrantClient(":memory:")
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


def test_a_picture_that_moved_gets_its_new_path_and_the_payload_for_it(folder: Path) -> None:
    client = QdrantClient(":memory:")
    for _ in range(2):
        index_images(client, "photos", folder, ENCODER, payload=lambda path: {"name": path.stem}, progress=False)
        (folder / "1.png").rename(folder / "renamed.png") if (folder / "1.png").exists() else None
    payloads = [record.payload or {} for record in client.scroll("photos", limit=100)[0]]
    assert "renamed" in {payload["name"] for payload in payloads}
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
