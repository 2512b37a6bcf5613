"""The starter encoder through its public face: what ships works, repeats itself, and says when its files are broken."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import pickle
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
from lcse_plugins.errors import ImageError, InvalidOption, ModelFileError
from tests.encoders.contract import refuses_what_is_no_list

PICTURES = {"cat": "chelsea", "person": "astronaut", "cup": "coffee", "rocket": "rocket"}
TEXTS = ["a cat", "a photo of two dogs on a beach", "no umbrella", "", "ünïcode ☂ 傘", "a very small dog " * 100]
LIMIT_MB = 16.0


@pytest.fixture(scope="module")
def encoder() -> StarterEncoder:
    return StarterEncoder()


@pytest.fixture(scope="module")
def pictures() -> list[Image.Image]:
    data = pytest.importorskip("skimage.data")
    return [Image.fromarray(getattr(data, name)()) for name in PICTURES.values()]


def test_no_text_is_read_far_beyond_its_last_token(encoder: StarterEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    split: list[int] = []
    tokenizer = encoder._load_tokenizer()

    class Counting:
        def encode_batch(self, texts: list[str]) -> object:
            split.extend(map(len, texts))
            return tokenizer.encode_batch(texts)

    monkeypatch.setattr(encoder, "_load_tokenizer", Counting)
    short, long = encoder.encode_texts(["a cat " * 100, "a cat " * 1_000_000])
    np.testing.assert_allclose(short, long, atol=1e-6)
    assert max(split) < 100_000


@pytest.fixture
def copied_model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED_MODEL, tmp_path / "model"))


def test_it_is_an_encoder_with_its_own_preset(encoder: StarterEncoder) -> None:
    assert isinstance(encoder, Encoder)
    assert encoder.dimension == 256
    assert encoder.encoder_id.startswith("starter@")
    encoder.calibration.check(encoder.encoder_id)


def test_rows_are_float32_of_length_one(encoder: StarterEncoder, pictures: list[Image.Image]) -> None:
    for rows, count in ((encoder.encode_texts(TEXTS), len(TEXTS)), (encoder.encode_images(pictures), len(pictures))):
        assert rows.shape == (count, 256)
        assert rows.dtype == np.float32
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-6)


def test_photographs_go_to_the_words_that_name_them(encoder: StarterEncoder, pictures: list[Image.Image]) -> None:
    similarities = concept_vectors(encoder, list(PICTURES)) @ encoder.encode_images(pictures).T
    assert similarities.argmax(axis=1).tolist() == [0, 1, 2, 3]  # the best photograph of each word
    assert similarities.argmax(axis=0).tolist() == [0, 1, 2, 3]  # the best word of each photograph


def test_a_batch_changes_nothing(encoder: StarterEncoder, pictures: list[Image.Image]) -> None:
    texts, images = encoder.encode_texts(TEXTS), encoder.encode_images(pictures)
    for size in (1, 2, 3, 64):
        assert np.abs(StarterEncoder(batch_size=size).encode_texts(TEXTS) - texts).max() <= 1e-5
        assert np.abs(encoder.encode_images(pictures, batch_size=size) - images).max() <= 1e-5
    assert np.abs(encoder.encode_texts(TEXTS[::-1])[::-1] - texts).max() <= 1e-5


def test_another_process_gives_the_same_vectors(
    encoder: StarterEncoder, pictures: list[Image.Image], tmp_path: Path
) -> None:
    pictures[0].save(tmp_path / "cat.png")
    script = """
import sys
import numpy as np
from lcse_plugins.encoders.starter import StarterEncoder
encoder, folder = StarterEncoder(threads=1), sys.argv[1]
rows = [encoder.encode_images([folder + "/cat.png"]), encoder.encode_texts(["a cat"])]
np.save(folder + "/rows.npy", np.vstack(rows))
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    here = np.vstack([encoder.encode_images(pictures[:1]), encoder.encode_texts(["a cat"])])
    assert np.abs(np.load(tmp_path / "rows.npy") - here).max() <= 1e-5


def test_paths_bytes_and_images_are_one(encoder: StarterEncoder, pictures: list[Image.Image], tmp_path: Path) -> None:
    path = tmp_path / "cup.png"
    pictures[2].save(path)
    rows = encoder.encode_images([path, str(path), path.read_bytes(), pictures[2]])
    assert np.abs(rows - rows[0]).max() <= 1e-6


def test_threads_share_one_instance(pictures: list[Image.Image]) -> None:
    fresh = StarterEncoder(threads=1)

    def work(i: int) -> NDArray[np.float32]:
        return np.vstack([fresh.encode_texts([f"{i % 3} cats"]), fresh.encode_images([pictures[i % 2]])])

    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(work, range(12)))
    for i, row in enumerate(rows):
        assert np.abs(row - work(i)).max() <= 1e-5


def test_nothing_in_nothing_out(encoder: StarterEncoder) -> None:
    assert encoder.encode_texts([]).shape == (0, 256)
    assert encoder.encode_images(iter(())).shape == (0, 256)


def test_images_are_drawn_batch_by_batch(encoder: StarterEncoder, pictures: list[Image.Image]) -> None:
    drawn = 0

    def stream() -> Iterator[Image.Image]:
        nonlocal drawn
        while drawn < 100:
            drawn += 1
            yield pictures[0]
        raise AssertionError("the whole stream was drawn before the error")

    def broken() -> Iterator[Image.Image | bytes]:
        source = stream()
        yield next(source)
        yield b"not a picture"
        yield from source

    with pytest.raises(ImageError):
        encoder.encode_images(broken(), batch_size=2)
    assert drawn == 1


def test_a_long_text_is_read_up_to_its_limit(encoder: StarterEncoder) -> None:
    words = ["dog", "on", "a", "red", "boat"] * 20
    long, cut, short = encoder.encode_texts([" ".join(words), " ".join(words[:46]), " ".join(words[:45])])
    assert np.abs(long - cut).max() <= 1e-6  # 46 words and the two marks that frame them
    assert np.abs(long - short).max() > 1e-4


def test_case_and_accents_do_not_matter(encoder: StarterEncoder) -> None:
    rows = encoder.encode_texts(["a café table", "A CAFÉ  Table", "a cafe table"])
    assert np.abs(rows - rows[0]).max() <= 1e-6


def test_a_picture_of_one_pixel_is_refused(encoder: StarterEncoder) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (1, 1)).save(buffer, "PNG")
    with pytest.raises(ImageError):
        encoder.encode_images([buffer.getvalue()])


def test_one_string_is_not_a_list(encoder: StarterEncoder) -> None:
    with pytest.raises(InvalidOption, match=r"\[text\]"):
        encoder.encode_texts("a cat")
    with pytest.raises(InvalidOption, match=r"\[image\]"):
        encoder.encode_images("cat.jpg")
    with pytest.raises(InvalidOption, match="batch_size"):
        encoder.encode_images(["cat.jpg"], batch_size=0)
    for option in ("threads", "batch_size"):
        for number in (0, 2.5, "2"):
            with pytest.raises(InvalidOption, match=option):
                StarterEncoder(**{option: number})  # type: ignore[arg-type]


def test_a_copy_keeps_its_batch_size() -> None:
    assert copy.copy(StarterEncoder(batch_size=3)).batch_size == 3


def test_what_is_no_text_or_list_of_pictures_is_refused(encoder: StarterEncoder) -> None:
    refuses_what_is_no_list(encoder)
    assert encoder.encode_texts(text for text in ["a", "b"]).shape == (2, 256)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["image.onnx", "text.onnx", "vocab.txt", "manifest.json"])
def test_a_missing_file_is_named(copied_model: Path, name: str) -> None:
    (copied_model / name).unlink()
    with pytest.raises(ModelFileError, match=name.replace(".", r"\.")):
        StarterEncoder(folder=copied_model)


@pytest.mark.parametrize("name", ["image.onnx", "text.onnx", "vocab.txt"])
def test_a_damaged_file_is_refused(copied_model: Path, name: str, pictures: list[Image.Image]) -> None:
    data = bytearray((copied_model / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copied_model / name).write_bytes(data)
    damaged = StarterEncoder(folder=copied_model)
    with pytest.raises(ModelFileError, match="damaged"):
        damaged.encode_images(pictures[:1]) if name == "image.onnx" else damaged.encode_texts(["a cat"])


def test_a_shortened_file_is_refused_at_once(copied_model: Path) -> None:
    data = (copied_model / "text.onnx").read_bytes()
    (copied_model / "text.onnx").write_bytes(data[:1000])
    with pytest.raises(ModelFileError, match="has 1000 bytes"):
        StarterEncoder(folder=copied_model)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": {}}', "not json"])
def test_a_manifest_that_says_nothing_is_refused(copied_model: Path, text: str) -> None:
    (copied_model / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelFileError, match="no complete starter model"):
        StarterEncoder(folder=copied_model)


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


def test_what_ships_is_small_and_has_a_card() -> None:
    assert sum(path.stat().st_size for path in SHIPPED_MODEL.iterdir()) <= LIMIT_MB * 1e6
    assert "Not good for" in (SHIPPED_MODEL / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_real_photographs_are_told_apart(encoder: StarterEncoder, shared_data: Path) -> None:
    folder = shared_data / "photos"
    rows = [json.loads(line) for line in (folder / "photos.jsonl").read_text(encoding="utf-8").splitlines()]
    images = encoder.encode_images(folder / row["file"] for row in rows)
    names = sorted({name for row in rows for name in row["classes"]})
    labels = np.array([[name in row["classes"] for name in names] for row in rows])
    similarities = images @ concept_vectors(encoder, names).T
    areas = [_area(similarities[:, j], labels[:, j]) for j in range(len(names)) if labels[:, j].sum() < len(rows)]
    assert np.mean(areas) >= 0.93
    captions = encoder.encode_texts([caption for row in rows for caption in row["captions"]])
    owners = np.array([i for i, row in enumerate(rows) for _ in row["captions"]])
    against = captions @ images.T
    ranks = (against > against[np.arange(len(owners)), owners][:, None]).sum(axis=1)
    assert (ranks < 10).mean() >= 0.60


def _area(scores: NDArray[np.float32], truth: NDArray[np.bool_]) -> float:
    """AUC by counting pairs."""
    positive, negative = scores[truth], np.sort(scores[~truth])
    below = np.searchsorted(negative, positive, side="left")
    equal = np.searchsorted(negative, positive, side="right") - below
    return float((below + equal / 2).mean() / len(negative))
