"""The embedded engine's own face: collections in a folder, which may hold other things, shared between threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from qdrant_client import models
from qdrant_lcse import LogicSearch
from qdrant_lcse.embedded import EmbeddedClient

from lcse_plugins.errors import CollectionError, InvalidOption
from tests.qdrant.data import OPERATORS, SCORER, fill, image_vectors

PARAMS = models.VectorParams(size=4, distance=models.Distance.COSINE)
THREADS = 8


@pytest.mark.parametrize("name", ["holiday", "", ".", "..", "../other", "../store"])
def test_what_is_no_collection_is_not_deleted(tmp_path: Path, name: str) -> None:
    pictures = [tmp_path / "store" / "holiday" / "a.jpg", tmp_path / "other" / "b.jpg"]
    for picture in pictures:
        picture.parent.mkdir(parents=True)
        picture.write_text("precious")
    (tmp_path / "other.json").write_text("{}")
    with EmbeddedClient(tmp_path / "store") as client:
        client.create_collection("photos", PARAMS)
        assert not client.collection_exists(name)
        assert not client.delete_collection(name)
        assert client.collection_exists("photos")
        assert client.get_collection("photos").points_count == 0
    assert all(picture.read_text() == "precious" for picture in pictures)


@pytest.mark.parametrize("name", ["holiday", ".."])
def test_a_folder_of_other_files_does_not_become_a_collection(tmp_path: Path, name: str) -> None:
    (tmp_path / "holiday").mkdir()
    (tmp_path / "holiday" / "a.jpg").write_text("precious")
    with EmbeddedClient(tmp_path) as client, pytest.raises(CollectionError):
        client.create_collection(name, PARAMS)
    assert [path.name for path in (tmp_path / "holiday").iterdir()] == ["a.jpg"]


@pytest.mark.parametrize("names", [("photos", "photos.json"), ("photos.json", "photos")])
def test_a_name_that_is_taken_by_the_settings_of_another(tmp_path: Path, names: tuple[str, str]) -> None:
    with EmbeddedClient(tmp_path) as client:
        client.create_collection(names[0], PARAMS)
        with pytest.raises(CollectionError, match="use another name"):
            client.create_collection(names[1], PARAMS)
        assert [client.collection_exists(name) for name in names] == [True, False]
    with EmbeddedClient(tmp_path) as client:
        assert client.get_collection(names[0]).points_count == 0
        assert client.delete_collection(names[0])
        assert client.create_collection(names[1], PARAMS)


def test_threads_open_a_collection_once(tmp_path: Path) -> None:
    with EmbeddedClient(tmp_path) as client:
        fill(client, "photos", image_vectors(60))
    with EmbeddedClient(tmp_path) as client, ThreadPoolExecutor(THREADS) as pool:
        search, together = LogicSearch(client, "photos", SCORER), Barrier(THREADS)

        def ask(_: int) -> int:
            together.wait(30)
            return len(search.query(OPERATORS["BUT NOT"]))

        assert list(pool.map(ask, range(THREADS))) == [10] * THREADS


@pytest.mark.parametrize(
    "config",
    [
        models.BinaryQuantization(binary=models.BinaryQuantizationConfig()),
        models.ProductQuantization(product=models.ProductQuantizationConfig(compression=models.CompressionRatio.X4)),
    ],
)
def test_other_quantisations_are_refused(tmp_path: Path, config: Any) -> None:
    with EmbeddedClient(tmp_path) as client, pytest.raises(InvalidOption, match="ScalarQuantization"):
        client.create_collection("photos", PARAMS, quantization_config=config)


def test_payloads_travel_as_to_a_server(tmp_path: Path) -> None:
    with EmbeddedClient(tmp_path) as client:
        client.create_collection("photos", PARAMS)
        client.upsert("photos", [models.PointStruct(id=1, vector=[1.0, 0, 0, 0], payload={"at": Path("a.jpg")})])
        client.set_payload("photos", {"moved": Path("b.jpg")}, points=[1])
        assert client.retrieve("photos", [1])[0].payload == {"at": "a.jpg", "moved": "b.jpg"}
