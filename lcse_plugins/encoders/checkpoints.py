"""Local checkpoints: read the weights, whatever they are wrapped in, and refuse those that do not fit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from lcse_plugins.errors import ModelFileError

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["load_checkpoint", "read_weights", "weights_hash"]

_WRAPPERS = ("state_dict", "model", "model_state_dict", "module")
_SHOWN = 3


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """The named weights of a `.safetensors` file or of a file `torch.save` wrote.

    Training checkpoints that hold the weights under "state_dict" or "model", and names that begin with "module." as
    parallel training writes them, are unwrapped. Pickled code is never run.

    Raises:
        ModelFileError: the file is missing, damaged, or holds no weights.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"there is no checkpoint {path}")
    try:
        content = _read(path)
    except UnpicklingError as error:
        raise ModelFileError(
            f"{path} is damaged, or holds Python objects beside its weights, which are not run for safety; "
            f"save its state_dict alone, best as .safetensors ({str(error).splitlines()[0]})"
        ) from error
    except Exception as error:  # torch and safetensors raise many types on damaged files
        raise ModelFileError(f"{path} cannot be read as a checkpoint: {error!r}") from error
    while isinstance(content, Mapping) and (inner := next((k for k in _WRAPPERS if _is_wrapper(content, k)), None)):
        content = content[inner]
    weights = {k: v for k, v in content.items() if _is_tensor(v)} if isinstance(content, Mapping) else {}
    if not weights:
        raise ModelFileError(f"{path} holds no weights")
    if all(name.startswith("module.") for name in weights):
        weights = {name.removeprefix("module."): value for name, value in weights.items()}
    return weights


def load_checkpoint(model: Module, path: str | Path, *, name: str) -> None:
    """Fill an open_clip model with the weights of a file: all of them, and nothing but them.

    Raises:
        ModelFileError: the file cannot be read, or says which weights are missing, unknown or of another shape.
    """
    from open_clip.convert import convert_state_dict  # type: ignore[import-untyped]

    weights: dict[str, Tensor] = convert_state_dict(model, read_weights(path))
    own = model.state_dict()
    for scalar in ("logit_scale", "logit_bias"):  # written as a number by some versions, as a list of one by others
        if scalar in weights and scalar in own and weights[scalar].numel() == own[scalar].numel() == 1:
            weights[scalar] = weights[scalar].reshape(own[scalar].shape)
    faults = [
        _fault("missing", [key for key in own if key not in weights]),
        _fault("unknown to the model", [key for key in weights if key not in own]),
        _fault(
            "of another shape",
            [
                f"{key} {tuple(value.shape)} instead of {tuple(own[key].shape)}"
                for key, value in weights.items()
                if key in own and value.shape != own[key].shape
            ],
        ),
    ]
    if any(faults):
        raise ModelFileError(f"{path} does not fit {name}: {'; '.join(filter(None, faults))}")
    model.load_state_dict(weights, strict=True)


def weights_hash(model: Module) -> str:
    """SHA-256 over the names, types, shapes and values of a model's weights."""
    import torch

    digest = hashlib.sha256()
    for key, value in sorted(model.state_dict().items()):
        digest.update(f"{key} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(memoryview(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()


def _read(path: Path) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)


def _is_wrapper(content: Mapping[str, Any], key: str) -> bool:
    return isinstance(content.get(key), Mapping)


def _is_tensor(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _fault(kind: str, keys: Sequence[str]) -> str:
    if not keys:
        return ""
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return f"{len(keys)} weights are {kind} ({', '.join(keys[:_SHOWN])}{more})"
