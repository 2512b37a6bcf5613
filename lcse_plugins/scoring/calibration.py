"""Calibration: the two numbers that turn a cosine into evidence, and the encoder they belong to."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from lcse_plugins.errors import CalibrationError, CalibrationMismatch

__all__ = ["CLIP_PRESET", "SIGLIP2_PRESET", "Calibration", "load_calibration"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Evidence of a concept is sigmoid(β (cosine - μ)).

    Attributes:
        mu: The cosine at which an image is as likely to show the concept as not.
        beta: How fast evidence grows around it.
        encoder_id: The encoder it was fitted for; None for a preset of a whole family.
    """

    mu: float
    beta: float
    encoder_id: str | None = None

    def __post_init__(self) -> None:
        for name in ("mu", "beta"):
            value = getattr(self, name)
            if not isinstance(value, Real):
                raise CalibrationError(f"mu and beta are numbers, not {name}={value!r:.80}")
            object.__setattr__(self, name, float(value))  # numpy's cannot be written as JSON
        if not (math.isfinite(self.mu) and math.isfinite(self.beta) and self.beta > 0):
            raise CalibrationError(f"mu must be finite and beta positive, not mu={self.mu}, beta={self.beta}")
        if not isinstance(self.encoder_id, str | None):
            raise CalibrationError(f"encoder_id is a text or None, not {self.encoder_id!r:.80}")

    def check(self, encoder_id: str) -> None:
        """Refuse to serve another encoder than the one it was fitted for.

        Raises:
            CalibrationMismatch: `encoder_id` is another encoder's.
        """
        if self.encoder_id is not None and self.encoder_id != encoder_id:
            raise CalibrationMismatch(self.encoder_id, encoder_id)

    def to_json(self) -> dict[str, Any]:
        """The calibration as JSON values."""
        return {"mu": self.mu, "beta": self.beta, "encoder_id": self.encoder_id}

    def save(self, path: str | Path) -> None:
        """Write it as a JSON file."""
        Path(path).write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")


CLIP_PRESET = Calibration(mu=0.22, beta=30.0)
"""The paper's values for CLIP-family backbones."""

SIGLIP2_PRESET = Calibration(mu=0.05, beta=30.0)
"""The paper's values for SigLIP 2."""


def load_calibration(path: str | Path) -> Calibration:
    """Read a calibration that `Calibration.save` wrote.

    Raises:
        CalibrationError: the file is missing or is not one.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        return Calibration(mu=float(data["mu"]), beta=float(data["beta"]), encoder_id=data.get("encoder_id"))
    except OSError as error:
        raise CalibrationError(f"the calibration {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else error
        raise CalibrationError(
            f"{path} is not a calibration file, which is JSON with the numbers mu and beta: {reason}"
        ) from error
