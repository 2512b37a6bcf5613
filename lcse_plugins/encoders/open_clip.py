"""Any open_clip model as an encoder: CLIP, SigLIP, SigLIP 2, NegCLIP and the rest."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from threading import Lock
from typing import Any, Literal, get_args

import numpy as np

from lcse_plugins.encoders.batches import batched
from lcse_plugins.encoders.checkpoints import load_checkpoint, weights_hash
from lcse_plugins.encoders.protocol import FloatArray, ImageSource
from lcse_plugins.errors import EncoderError, InvalidOption, MissingExtra, ModelFileError, UnknownEncoder
from lcse_plugins.images.reading import load_image
from lcse_plugins.scoring.arguments import check_count, pictures_of, texts_of
from lcse_plugins.scoring.calibration import CLIP_PRESET, SIGLIP2_PRESET, Calibration

try:
    import open_clip  # type: ignore[import-untyped]
    import torch
except ImportError as error:
    raise MissingExtra("OpenClipEncoder", "open-clip") from error
except RuntimeError as error:  # torchvision registers its operators on import, and fails when torch is of another build
    raise EncoderError(
        f"open_clip cannot be imported: {error}. torch and torchvision are of different builds; install both from one "
        "place, e.g. `pip install --force-reinstall torch torchvision` with the same index for both"
    ) from error

__all__ = ["OpenClipEncoder", "Precision"]

Precision = Literal["fp32", "bf16", "fp16"]

_PREPROCESSING_VERSION = 1  # changes whenever the same bytes or text would reach the model as other numbers
_SIGLIP_VOCABULARIES = {32_000: "siglip", 250_000: "siglip", 256_000: "siglip2"}
_PRESETS = {"clip": CLIP_PRESET, "siglip2": SIGLIP2_PRESET}


class OpenClipEncoder:
    """A frozen open_clip model: texts and images to unit vectors of one space.

    Weights come from a `pretrained` tag (fetched and kept by open_clip), from the source a `hf-hub:` or `local-dir:`
    name stands for, or from a local `checkpoint`. A model without weights is refused. For tags trained with QuickGELU
    (OpenAI's among them) that activation is chosen by itself. A checkpoint does not say how it was trained: for one
    that was tuned from OpenAI's weights, as NegCLIP was, name the `…-quickgelu` model.

    The preset calibration is the paper's for models trained with a softmax (the CLIP family) and for SigLIP 2. The
    first SigLIP has none, for nobody has measured it: `calibration` is None, fit one with `lcse calibrate`.

    One instance may serve many threads: the model is only read, and the tokenizer is guarded by a lock. Under several
    threads on one device torch still runs their batches side by side, so the memory of each counts.

    Args:
        model: A name of `open_clip.list_models()`, `hf-hub:org/repo` or `local-dir:path`.
        pretrained: A tag of `open_clip.list_pretrained()` for that model.
        checkpoint: A `.pt`, `.pth`, `.bin` or `.safetensors` file with the model's weights.
        device: "cpu", "cuda", "cuda:1", "mps" …; the GPU where torch finds one by default.
        precision: That of the arithmetic; "bf16" and "fp16" run under autocast, weights and vectors stay float32.
        batch_size: Pictures or texts in one pass.

    Raises:
        UnknownEncoder: open_clip knows no such model or tag.
        ModelFileError: the weights cannot be had, or do not fit the model.
    """

    def __init__(
        self,
        model: str,
        *,
        pretrained: str | None = None,
        checkpoint: str | Path | None = None,
        device: str | None = None,
        precision: Precision = "fp32",
        batch_size: int = 32,
    ) -> None:
        if precision not in get_args(Precision):
            raise InvalidOption(f"unknown precision {precision!r}; choose one of {', '.join(get_args(Precision))}")
        self.batch_size = _checked_batch(batch_size)
        self.precision = precision
        self.device = _checked_device(device)
        hosted = model.startswith(("hf-hub:", "local-dir:"))
        if hosted and (pretrained or checkpoint):
            raise InvalidOption(f"{model} brings its own weights; leave out pretrained and checkpoint")
        if not hosted and (pretrained is None) == (checkpoint is None):
            raise InvalidOption(
                f"name the weights of {model}: either pretrained (one of {_tags(model)}) or checkpoint (a file)"
            )
        if not hosted and open_clip.get_model_config(model) is None:
            raise UnknownEncoder(f"open_clip has no model {model!r}{_nearest(model, open_clip.list_models())}")
        quick_gelu = pretrained is not None and _needs_quick_gelu(model, pretrained)
        self.name = f"{model}-quickgelu" if quick_gelu else model
        self._model, self._preprocess, self._tokenizer = _create(model, pretrained, checkpoint, quick_gelu)
        self._model.eval().requires_grad_(False)
        self._family = _family(self._model)
        self._tokenizer_lock = Lock()
        self._id = f"open_clip:{self.name}@{weights_hash(self._model)[:12]}/{self._preprocessing()}"
        self._model.to(self.device)
        self._dimension = int(self.encode_texts([""]).shape[1])

    @property
    def encoder_id(self) -> str:
        """Model, hash of its weights, and hash of the preprocessing; the same on every device and precision."""
        return self._id

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._dimension

    @property
    def calibration(self) -> Calibration | None:
        """The paper's preset for this family of models; None when it must be fitted."""
        return _PRESETS.get(self._family)

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        """(n_texts, dimension) float32 unit rows; what exceeds the model's context length is cut off.

        Raises:
            InvalidOption: one string was given where a list of them is due.
            QueryError: a text holds bytes that are no letters.
        """
        lowered = texts_of(texts)
        if self._family.startswith("siglip"):
            lowered = [text.lower() for text in lowered]
        rows = []
        for batch in batched(lowered, self.batch_size):
            with self._tokenizer_lock:
                tokens = self._tokenizer(batch)
            rows.append(self._run(self._model.encode_text, tokens))
        return np.concatenate(rows) if rows else np.empty((0, self.dimension), dtype=np.float32)

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        """(n_images, dimension) float32 unit rows; pictures are opened one by one, batch by batch.

        Raises:
            ImageError: a picture cannot be read.
            InvalidOption: one picture was given where a list of them is due.
        """
        size = self.batch_size if batch_size is None else _checked_batch(batch_size)
        pixels = (self._preprocess(load_image(image)) for image in pictures_of(images))
        rows = [self._run(self._model.encode_image, torch.stack(batch)) for batch in batched(pixels, size)]
        return np.concatenate(rows) if rows else np.empty((0, self.dimension), dtype=np.float32)

    def __repr__(self) -> str:
        return f"OpenClipEncoder({self.encoder_id!r}, device={self.device!r}, precision={self.precision!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_tokenizer_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _tokenizer_lock=Lock())  # a lock cannot be copied or pickled

    def _run(self, tower: Any, batch: torch.Tensor) -> FloatArray:
        kind = torch.device(self.device).type
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[self.precision]
        with torch.inference_mode(), torch.autocast(kind, dtype=dtype, enabled=self.precision != "fp32"):
            vectors = tower(batch.to(self.device))
            unit = torch.nn.functional.normalize(vectors.float(), dim=-1)
        return np.asarray(unit.cpu().numpy(), dtype=np.float32)

    def _preprocessing(self) -> str:
        facts = {
            "version": _PREPROCESSING_VERSION,
            "image": open_clip.get_model_preprocess_cfg(self._model),
            "text": open_clip.get_model_tokenize_cfg(self._model),
            "lower": self._family.startswith("siglip"),
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:8]


def _create(model: str, pretrained: str | None, checkpoint: str | Path | None, quick_gelu: bool) -> tuple[Any, ...]:
    try:
        if checkpoint is None:
            network, preprocess = open_clip.create_model_from_pretrained(
                model, pretrained=pretrained, force_quick_gelu=quick_gelu
            )
        else:
            with _without_random_weights_warning():
                network, _, preprocess = open_clip.create_model_and_transforms(model, pretrained_hf=False)
        tokenizer = open_clip.get_tokenizer(model)
    except Exception as error:  # downloads, files and tokenizers fail in as many ways as there are libraries below
        raise ModelFileError(
            f"open_clip cannot load {model} with {pretrained or 'its weights'}: {error}. Where there is no network, "
            "fetch it once elsewhere and point the download cache at it, or pass checkpoint="
        ) from error
    if checkpoint is not None:
        load_checkpoint(network, checkpoint, name=model)
    return network, preprocess, tokenizer


@contextmanager
def _without_random_weights_warning() -> Iterator[None]:
    """open_clip warns that the model is random before the checkpoint fills it: keep that one line from the log."""

    def keep(record: logging.LogRecord) -> bool:
        return "No pretrained weights loaded" not in record.getMessage()

    root = logging.getLogger()
    root.addFilter(keep)
    try:
        yield
    finally:
        root.removeFilter(keep)


def _needs_quick_gelu(model: str, tag: str) -> bool:
    """Whether the weights of a tag want QuickGELU where the model's own configuration has plain GELU."""
    weights = open_clip.get_pretrained_cfg(model, tag)
    plain = model.removesuffix("-quickgelu")
    if not weights and open_clip.get_pretrained_cfg(plain, tag):
        raise UnknownEncoder(f"the weights {tag!r} were trained with plain GELU: use {plain}, not {model}")
    if not weights:
        raise UnknownEncoder(f"open_clip has no weights {tag!r} for {model}; it has {_tags(model)}")
    return bool(weights.get("quick_gelu")) and not open_clip.get_model_config(model).get("quick_gelu")


def _family(model: Any) -> str:
    """By what the model is, not by its name: a sigmoid loss has a bias, and each SigLIP its own vocabulary."""
    if getattr(model, "logit_bias", None) is None:
        return "clip"
    return _SIGLIP_VOCABULARIES.get(getattr(getattr(model, "text", model), "vocab_size", 0), "sigmoid")


def _tags(model: str) -> str:
    return ", ".join(open_clip.list_pretrained_tags_by_model(model)) or "none"


def _nearest(name: str, names: Sequence[str]) -> str:
    close = get_close_matches(name, names, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else "; see open_clip.list_models()"


def _checked_batch(size: int) -> int:
    check_count("batch_size", size)
    return size


def _checked_device(device: str | None) -> str:
    if device is None:
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidOption(f"torch cannot use the device {device!r}: {error}") from error
    return device
