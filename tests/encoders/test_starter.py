"""The starter encoder through its public face: what ships works, repeats itself, and says when its files are broken."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lcse_plugins.encoders.protocol import Encoder, concept_vectors
from lcse_plugins.encoders.starter import SHIPPED_MODEL, StarterEncoder
from lcse_plugins.errors import ImageError, InvalidOption, ModelFileError, QueryError
from lcse_plugins.images.gallery import demo_photos

PICTURES = {"cat": "tabby-on-chair", "pizza": "pizza-with-fork", "train": "blue-train", "giraffe": "giraffes"}
TEXTS = ["a cat", "a photo of two dogs on a beach", "no umbrella", "", "ünïcode ☂ 傘", "a very small dog " * 100]


@pytest.fixture(scope="module")
def encoder() -> StarterEncoder:
    return StarterEncoder()


@pytest.fixture(scope="module")
def pictures() -> list[Image.Image]:
    return [Image.open(demo_photos()[0].with_name(f"{name}.jpg")).convert("RGB") for name in PICTURES.values()]


@pytest.fixture
def copied_model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED_MODEL, tmp_path / "model"))


def test_it_is_an_encoder_of_unit_rows_with_its_own_preset(
    encoder: StarterEncoder, pictures: list[Image.Image]
) -> None:
    assert isinstance(encoder, Encoder)
    assert encoder.encoder_id.startswith("starter@")
    encoder.calibration.check(encoder.encoder_id)
    for rows, count in ((encoder.encode_texts(TEXTS), len(TEXTS)), (encoder.encode_images(pictures), len(pictures))):
        assert rows.shape == (count, encoder.dimension)
        assert rows.dtype == np.float32
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-6)
    stream: Iterator[Image.Image | bytes] = iter([pictures[0], b"not a picture", *pictures])
    with pytest.raises(ImageError):
        encoder.encode_images(stream, batch_size=2)
    assert len(list(stream)) == len(pictures)  # drawn batch by batch
    assert encoder.encode_texts([]).shape == encoder.encode_images(iter(())).shape == (0, 256)


def test_photographs_go_to_the_words_that_name_them(encoder: StarterEncoder, pictures: list[Image.Image]) -> None:
    similarities = concept_vectors(encoder, list(PICTURES)) @ encoder.encode_images(pictures).T
    assert similarities.argmax(axis=1).tolist() == [0, 1, 2, 3]  # the best photograph of each word
    assert similarities.argmax(axis=0).tolist() == [0, 1, 2, 3]  # the best word of each photograph


def test_a_batch_changes_nothing(encoder: StarterEncoder, pictures: list[Image.Image]) -> None:
    texts, images = encoder.encode_texts(TEXTS), encoder.encode_images(pictures)
    for size in (1, 3):
        assert np.abs(encoder.encode_images(pictures, batch_size=size) - images).max() <= 1e-5
    assert np.abs(encoder.encode_texts(TEXTS[::-1] * 9)[: -len(TEXTS) - 1 : -1] - texts).max() <= 1e-5


def test_threads_share_one_instance(pictures: list[Image.Image]) -> None:
    fresh = StarterEncoder(threads=1)

    def work(i: int) -> NDArray[np.float32]:
        return np.vstack([fresh.encode_texts([f"{i % 3} cats"]), fresh.encode_images([pictures[i % 2]])])

    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(work, range(6)))
    for i, row in enumerate(rows):
        assert np.abs(row - work(i)).max() <= 1e-5


FORK = """
import os, signal, threading, time
import numpy as np
from PIL import Image
from lcse_plugins.encoders.starter import StarterEncoder
encoder = StarterEncoder()
expected = encoder.encode_texts(["a cat"])
picture = Image.new("RGB", (300, 300))
stop = threading.Event()
def work():
    while not stop.is_set():
        encoder.encode_images([picture])
        encoder.encode_texts(["a dog"])
threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
for _ in range(2):
    time.sleep(0.2)
    child = os.fork()
    if not child:
        signal.alarm(60)
        same = np.allclose(encoder.encode_texts(["a cat"]), expected, atol=1e-5)
        os._exit(0 if same and len(encoder.encode_images([picture])) else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        print("child ended with", code)
stop.set()
"""


@pytest.mark.faults
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_while_encoding_can_encode() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=240, check=True
    )
    assert done.stdout == ""


def refuses_what_is_no_list(encoder: Encoder) -> None:
    with pytest.raises(InvalidOption, match=r"\[image\]"):
        encoder.encode_images(Image.new("RGB", (30, 30)))  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"\[text\]"):
        encoder.encode_texts("a cat")
    with pytest.raises(InvalidOption, match="batch_size"):
        encoder.encode_images(["cat.jpg"], batch_size=0)
    with pytest.raises(InvalidOption, match="texts holds strings"):
        encoder.encode_texts([None])  # type: ignore[list-item]
    with pytest.raises(QueryError, match="UTF-8"):
        encoder.encode_texts(["\ud800"])


def test_what_is_no_text_picture_or_number_is_refused(encoder: StarterEncoder) -> None:
    refuses_what_is_no_list(encoder)
    assert encoder.encode_texts(text for text in ["a", "b"]).shape == (2, 256)  # type: ignore[arg-type]
    for option in ("threads", "batch_size"):
        with pytest.raises(InvalidOption, match=option):
            StarterEncoder(**{option: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("image.onnx", None, "image.onnx"),
        ("text.onnx", "short", "has 5 bytes"),
        *(("manifest.json", text, "no complete starter model") for text in ("[]", '{"files": {}}', "not json")),
    ],
)
def test_a_folder_that_is_no_model_is_refused_at_once(
    copied_model: Path, name: str, content: str | None, message: str
) -> None:
    (copied_model / name).unlink()
    if content is not None:
        (copied_model / name).write_text(content)
    with pytest.raises(ModelFileError, match=re.escape(message)):
        StarterEncoder(folder=copied_model)


@pytest.mark.parametrize("name", ["image.onnx", "vocab.txt"])
def test_a_damaged_file_is_refused(copied_model: Path, name: str, pictures: list[Image.Image]) -> None:
    data = bytearray((copied_model / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copied_model / name).write_bytes(data)
    damaged = StarterEncoder(folder=copied_model)
    with pytest.raises(ModelFileError, match="damaged"):
        damaged.encode_images(pictures[:1]) if name == "image.onnx" else damaged.encode_texts(["a cat"])


def test_a_file_that_is_no_model_is_refused_even_with_the_right_hash(copied_model: Path) -> None:
    junk = b"junk" * 10
    (copied_model / "text.onnx").write_bytes(junk)
    manifest = json.loads((copied_model / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"]["text.onnx"] = {"bytes": len(junk), "sha256": hashlib.sha256(junk).hexdigest()}
    (copied_model / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(ModelFileError, match=r"cannot open text\.onnx"):
        StarterEncoder(folder=copied_model).encode_texts(["a cat"])


def test_other_weights_are_another_encoder_but_another_preset_is_not(copied_model: Path) -> None:
    manifest = json.loads((copied_model / "manifest.json").read_text(encoding="utf-8"))
    manifest["calibration"] = {"mu": 0.5, "beta": 7.0}
    (copied_model / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    recalibrated = StarterEncoder(folder=copied_model)
    assert recalibrated.encoder_id == StarterEncoder().encoder_id
    assert (recalibrated.calibration.mu, recalibrated.calibration.beta) == (0.5, 7.0)
    manifest["files"]["text.onnx"]["sha256"] = "0" * 64
    (copied_model / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert StarterEncoder(folder=copied_model).encoder_id != recalibrated.encoder_id


def test_it_travels_between_processes(encoder: StarterEncoder) -> None:
    twin = pickle.loads(pickle.dumps(encoder))
    assert twin.encoder_id == encoder.encoder_id
    assert np.array_equal(twin.encode_texts(["a cat"]), encoder.encode_texts(["a cat"]))
