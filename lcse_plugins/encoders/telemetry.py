"""Nothing leaves the machine: libraries that report on their use are told not to, before they are first imported."""

from __future__ import annotations

import os

__all__ = ["switch_off_telemetry"]

_SWITCHES = ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY")
"""onnxruntime (from 1.31 on) keeps a device id in the cache folder and sends events; huggingface_hub counts uses."""


def switch_off_telemetry() -> None:
    """Call it before onnxruntime, open_clip or transformers is imported; what the user has set stays."""
    for name in _SWITCHES:
        os.environ.setdefault(name, "1")
