"""Any open_clip model as an encoder: CLIP, SigLIP, SigLIP 2, NegCLIP and the rest."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from threading import Lock
from typing import Any, Literal, get_args

import numpy as np

from lcse_plugins.encoders.protocol import FloatArray, ImageSource, encode_in_batches
from lcse_plugins.encoders.telemetry import switch_off_telemetry
from lcse_plugins.errors import EncoderError, InvalidOption, MissingExtra, ModelFileError, UnknownEncoder
from lcse_plugins.images.reading import load_image
from lcse_plugins.scoring.arguments import check_count, pictures_of, texts_of
from lcse_plugins.scoring.calibration import CLIP_PRESET, SIGLIP2_PRESET, Calibration

switch_off_telemetry()
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
_TOKENIZING = Lock()


class OpenClipEncoder:
    """A frozen open_clip model: texts and images to unit vectors of one space.

    For tags trained with QuickGELU (OpenAI's among them) that activation is chosen by itself. A checkpoint does not say
    how it was trained: for one that was tuned from OpenAI's weights, as NegCLIP was, name the `…-quickgelu` model.

    The preset calibration is the paper's for models trained with a softmax (the CLIP family) and for SigLIP 2. The
    first SigLIP has none, for nobody has measured it: fit one with `lcse calibrate`. One instance may serve many
    threads.

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
        check_count("batch_size", batch_size)
        self.batch_size = batch_size
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
            close = get_close_matches(model, open_clip.list_models(), n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(close)}?" if close else "see open_clip.list_models()"
            raise UnknownEncoder(f"open_clip has no model {model!r}; {hint}")
        quick_gelu = pretrained is not None and _needs_quick_gelu(model, pretrained)
        self.name = f"{model}-quickgelu" if quick_gelu else model
        self._model, self._preprocess, self._tokenizer = _create(model, pretrained, checkpoint, quick_gelu)
        self._model.eval().requires_grad_(False)
        self._family = _family(self._model)
        self._id = f"open_clip:{self.name}@{_weights_hash(self._model)[:12]}/{self._preprocessing()}"
        self._model.to(self.device)
        self._dimension = 0
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
        """(n_texts, dimension) float32 unit rows; what exceeds the model's context length is cut off."""
        lower = self._family.startswith("siglip")

        def encode(batch: list[str]) -> FloatArray:
            with _TOKENIZING:
                tokens = self._tokenizer(batch)
            return self._run(self._model.encode_text, tokens)

        listed = [text.lower() if lower else text for text in texts_of(texts)]
        return encode_in_batches(listed, self.batch_size, encode, self._dimension)

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        """(n_images, dimension) float32 unit rows; pictures are opened one by one, batch by batch."""
        pixels = (self._preprocess(load_image(image)) for image in pictures_of(images))
        size = self.batch_size if batch_size is None else batch_size
        return encode_in_batches(
            pixels, size, lambda batch: self._run(self._model.encode_image, torch.stack(batch)), self._dimension
        )

    def __repr__(self) -> str:
        return f"OpenClipEncoder({self.encoder_id!r}, device={self.device!r}, precision={self.precision!r})"

    def _run(self, tower: Any, batch: torch.Tensor) -> FloatArray:
        kind = torch.device(self.device).type
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[self.precision]
        with torch.inference_mode(), torch.autocast(kind, dtype=dtype, enabled=self.precision != "fp32"):
            vectors = tower(batch.to(self.device))
        return np.asarray(vectors.float().cpu().numpy(), dtype=np.float32)

    def _preprocessing(self) -> str:
        facts = {
            "version": _PREPROCESSING_VERSION,
            "image": open_clip.get_model_preprocess_cfg(self._model),
            "text": open_clip.get_model_tokenize_cfg(self._model),
            "lower": self._family.startswith("siglip"),
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:8]


def _create(model: str, pretrained: str | None, checkpoint: str | Path | None, quick_gelu: bool) -> tuple[Any, ...]:
    if checkpoint is not None and not Path(checkpoint).is_file():
        raise ModelFileError(f"there is no checkpoint {checkpoint}")
    try:
        if checkpoint is None:
            network, preprocess = open_clip.create_model_from_pretrained(
                model, pretrained=pretrained, force_quick_gelu=quick_gelu
            )
        else:
            logging.getLogger().addFilter(_is_no_false_alarm)
            network, _, preprocess = open_clip.create_model_and_transforms(model, pretrained_hf=False)
        tokenizer = open_clip.get_tokenizer(model)
    except Exception as error:  # downloads, files and tokenizers fail in as many ways as there are libraries below
        raise ModelFileError(
            f"open_clip cannot load {model} with {pretrained or 'its weights'}: {error}. Where there is no network, "
            "fetch it once elsewhere and point the download cache at it, or pass checkpoint="
        ) from error
    finally:
        logging.getLogger().removeFilter(_is_no_false_alarm)
    try:  # all weights, or none; pickled code is never run
        if checkpoint is not None:
            open_clip.load_checkpoint(network, str(checkpoint), strict=True, weights_only=True)
    except Exception as error:  # torch and safetensors raise many types on files that are damaged or do not fit
        raise ModelFileError(
            f"{checkpoint} is no checkpoint of {model}, is damaged, or holds Python objects, which are not run for "
            f"safety; save the model's state_dict alone, best as .safetensors ({str(error)[:500]})"
        ) from error
    return network, preprocess, tokenizer


def _is_no_false_alarm(record: logging.LogRecord) -> bool:
    """open_clip warns that a model is random before the checkpoint fills it."""
    return "No pretrained weights loaded" not in record.getMessage()


def _weights_hash(network: Any) -> str:
    """SHA-256 over the names, types, shapes and values of a model's weights."""
    digest = hashlib.sha256()
    for key, value in sorted(network.state_dict().items()):
        digest.update(f"{key} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(memoryview(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()


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


def _checked_device(device: str | None) -> str:
    if device is None:
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidOption(f"torch cannot use the device {device!r}: {error}") from error
    return device
