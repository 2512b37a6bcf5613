"""The starter encoder: a small real dual encoder that ships with the package and needs no download.

An EfficientNet-Lite2 image tower and a three-layer text tower share one space of 256 dimensions. Both run on
onnxruntime. `starter_model/MODEL_CARD.md` says what they were trained on, how good they are and where they fail.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from lcse_plugins.encoders.protocol import FloatArray, ImageSource, encode_in_batches
from lcse_plugins.encoders.telemetry import switch_off_telemetry
from lcse_plugins.errors import ModelFileError
from lcse_plugins.images.reading import load_image
from lcse_plugins.scoring.arguments import check_count, pictures_of, texts_of
from lcse_plugins.scoring.calibration import Calibration

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from tokenizers import Tokenizer

__all__ = ["StarterEncoder"]

SHIPPED_MODEL = Path(__file__).with_name("starter_model")
IMAGE_FILE, TEXT_FILE, VOCABULARY_FILE = "image.onnx", "text.onnx", "vocab.txt"
PREPROCESSING = "squash260-bicubic-wordpiece48"
"""Changes whenever the same bytes would reach the model as other numbers."""

IMAGE_SIDE = 260
MAX_TOKENS = 48
DEFAULT_BATCH = 4
"""Pictures in one pass: 16 are hardly faster, and take 110 MB more."""

TEXT_BATCH = 32

LONGEST_TEXT = 20_000
"""Characters of a text that are split into words: far more than its first 48 tokens take."""


class StarterEncoder:
    """Texts and photographs to unit vectors of one 256-dimensional space, on the CPU, offline.

    The model files are read and checked against their hashes on first use. One instance may serve many threads.

    Args:
        folder: Where the model files and their `manifest.json` are; the shipped ones by default.
        threads: How many threads onnxruntime may use; as many as there are cores by default.
        batch_size: Pictures in one pass.

    Raises:
        ModelFileError: the manifest or a model file is missing or damaged.
        InvalidOption: a number is not positive.
    """

    def __init__(
        self,
        *,
        folder: str | Path | None = None,
        threads: int | None = None,
        batch_size: int = DEFAULT_BATCH,
    ) -> None:
        if threads is not None:
            check_count("threads", threads)
        check_count("batch_size", batch_size)
        self.batch_size = batch_size
        self.folder = SHIPPED_MODEL if folder is None else Path(folder)
        self._threads = threads
        self._manifest = _read_manifest(self.folder)
        hashes = "".join(self._manifest["files"][name]["sha256"] for name in (IMAGE_FILE, TEXT_FILE, VOCABULARY_FILE))
        self._id = f"starter@{hashlib.sha256(hashes.encode()).hexdigest()[:12]}/{PREPROCESSING}"
        self._begin(inherited=None)

    @property
    def encoder_id(self) -> str:
        """Model, hash of its files, and version of the preprocessing."""
        return self._id

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(self._manifest["dimension"])

    @property
    def calibration(self) -> Calibration:
        """The μ, β and presence curve chosen for this encoder on images outside its training."""
        return Calibration.from_json({**self._manifest["calibration"], "encoder_id": self.encoder_id})

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        """(n_texts, dimension) float32 unit rows; each text is read up to its 48th token."""
        listed = [text.strip()[:LONGEST_TEXT] for text in texts_of(texts)]
        session, tokenizer = self._load_session(TEXT_FILE), self._load_tokenizer()

        def encode(batch: list[int]) -> FloatArray:
            tokens = tokenizer.encode_batch([listed[i] for i in batch])
            ids, mask = ([getattr(t, name) for t in tokens] for name in ("ids", "attention_mask"))
            rows: FloatArray = session.run(["embedding"], {"ids": np.array(ids), "mask": np.array(mask)})[0]
            return rows

        order = sorted(range(len(listed)), key=lambda i: len(listed[i]))  # neighbours in length waste no padding
        rows = encode_in_batches(order, TEXT_BATCH, encode, self.dimension)
        return np.asarray(rows[np.argsort(order)])

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        """(n_images, dimension) float32 unit rows; the images are opened batch by batch."""
        pixels = (_pixels(image) for image in pictures_of(images))  # decoded one by one, however large the batch
        size, session = self.batch_size if batch_size is None else batch_size, self._load_session(IMAGE_FILE)

        def encode(batch: list[FloatArray]) -> FloatArray:
            rows: FloatArray = session.run(["embedding"], {"image": np.stack(batch)})[0]
            return rows

        return encode_in_batches(pixels, size, encode, self.dimension)

    def __repr__(self) -> str:
        return f"StarterEncoder({self.encoder_id!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "threads": self._threads, "batch_size": self.batch_size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def _begin(self, *, inherited: object) -> None:
        """Start with nothing loaded; what a forked process inherits has no threads, and is kept but never used."""
        self._process, self._inherited = os.getpid(), inherited
        self._lock = Lock()
        self._sessions: dict[str, InferenceSession] = {}
        self._tokenizer: Tokenizer | None = None

    def _read(self, name: str) -> bytes:
        """The bytes of one model file, once they are known to be the right ones."""
        path = self.folder / name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ModelFileError(f"cannot read {path}: {error}; install lcse-plugins again") from error
        if hashlib.sha256(data).hexdigest() != self._manifest["files"][name]["sha256"]:
            raise ModelFileError(f"{path} is damaged, by its sha256; install lcse-plugins again")
        return data

    def _load_session(self, name: str) -> InferenceSession:
        if self._process != os.getpid():
            self._begin(inherited=(self._inherited, self._sessions, self._tokenizer))
        with self._lock:
            if name not in self._sessions:
                self._sessions[name] = _open_session(self._read(name), threads=self._threads, name=name)
            return self._sessions[name]

    def _load_tokenizer(self) -> Tokenizer:
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = build_tokenizer(self._read(VOCABULARY_FILE).decode("utf-8").splitlines())
            return self._tokenizer


def build_tokenizer(vocabulary: Sequence[str]) -> Tokenizer:
    """A lower-casing WordPiece tokenizer that cuts at 48 tokens and pads a batch to its longest text."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    ids = {piece: i for i, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.enable_padding(pad_id=ids["[PAD]"], pad_token="[PAD]")
    return tokenizer


def _pixels(image: ImageSource) -> FloatArray:
    """(3, side, side) the picture squashed to a square, about -1 to 1."""
    from PIL.Image import Resampling

    square = load_image(image).resize((IMAGE_SIDE, IMAGE_SIDE), Resampling.BICUBIC)
    pixels = np.asarray(square, dtype=np.float32).transpose(2, 0, 1)
    return np.asarray((pixels - 127) / 128, dtype=np.float32)


def _open_session(model: bytes, *, threads: int | None, name: str) -> InferenceSession:
    switch_off_telemetry()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if threads is not None:
        options.intra_op_num_threads = threads
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions share no public base
        raise ModelFileError(f"onnxruntime {onnxruntime.__version__} cannot open {name}: {error}") from error


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for name in (IMAGE_FILE, TEXT_FILE, VOCABULARY_FILE):
            size, entry = (folder / name).stat().st_size, manifest["files"][name]
            if size != entry["bytes"]:
                raise ModelFileError(
                    f"{folder / name} has {size} bytes, not {entry['bytes']}; install lcse-plugins again"
                )
            str(entry["sha256"])
        Calibration.from_json(manifest["calibration"]), int(manifest["dimension"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{folder} holds no complete starter model ({why}); install lcse-plugins again") from error
    return manifest
