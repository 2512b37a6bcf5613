"""Calibration: the numbers that turn a cosine into evidence, and the encoder they belong to."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from lcse_plugins.errors import CalibrationError, CalibrationMismatch

__all__ = ["CLIP_PRESET", "SIGLIP2_PRESET", "Calibration", "PresenceCurve"]

LARGEST_SLOPE = 1e5
"""β and the slope of a presence curve lie below it: steeper evidence leaves the precision of float32."""


@dataclass(frozen=True, slots=True)
class PresenceCurve:
    """How often a concept really is in an image of this cosine: sigmoid(intercept + slope · cosine).

    Fitted on labelled images of one encoder. Ranking does not use it; everything a person reads does.
    """

    intercept: float
    slope: float

    def __post_init__(self) -> None:
        _make_floats(self, "intercept", "slope")
        if not (abs(self.intercept) <= LARGEST_SLOPE and 0 < self.slope <= LARGEST_SLOPE):
            raise CalibrationError(f"a presence curve rises from a finite intercept, not {self}")

    def probability(self, similarity: float) -> float:
        """The chance that an image of this cosine shows the concept."""
        logit = self.intercept + self.slope * similarity
        small = math.exp(-abs(logit))
        return (1.0 if logit >= 0 else small) / (1.0 + small)


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Evidence of a concept is sigmoid(β (cosine - μ)).

    Attributes:
        mu: The cosine from which on a concept counts as seen.
        beta: How fast evidence grows around it.
        encoder_id: The encoder it was fitted for; None for a preset of a whole family.
        presence: How often a concept really is there; None where nobody could fit it.
    """

    mu: float
    beta: float
    encoder_id: str | None = None
    presence: PresenceCurve | None = None

    def __post_init__(self) -> None:
        _make_floats(self, "mu", "beta")
        if not (abs(self.mu) <= LARGEST_SLOPE and 1.0 / LARGEST_SLOPE <= self.beta <= LARGEST_SLOPE):
            raise CalibrationError(
                f"mu must be finite and beta between {1 / LARGEST_SLOPE:g} and {LARGEST_SLOPE:g}, "
                f"not mu={self.mu}, beta={self.beta}"
            )
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
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Calibration:
        """The calibration that `to_json` wrote.

        Raises:
            CalibrationError: a number is missing, or is none.
        """
        try:
            curve = data.get("presence")
            presence = None if curve is None else PresenceCurve(curve["intercept"], curve["slope"])
            return cls(mu=data["mu"], beta=data["beta"], encoder_id=data.get("encoder_id"), presence=presence)
        except (TypeError, KeyError, AttributeError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else error
            raise CalibrationError(f"a calibration has the numbers mu and beta: {reason}") from error

    def save(self, path: str | Path) -> None:
        """Write it as a JSON file, which `load` reads."""
        Path(path).write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read a calibration that `save` wrote.

        Raises:
            CalibrationError: the file is missing or is not one.
        """
        try:
            return cls.from_json(json.loads(Path(path).read_text(encoding="utf-8")))
        except OSError as error:
            raise CalibrationError(f"the calibration {path} cannot be read: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise CalibrationError(f"{path} is not a calibration file: {error}") from error


def _make_floats(values: Any, *names: str) -> None:
    """Turn the fields into floats, for numpy's numbers cannot be written as JSON."""
    for name in names:
        value = getattr(values, name)
        if not isinstance(value, Real) or isinstance(value, bool):
            raise CalibrationError(f"{' and '.join(names)} are numbers, not {name}={value!r:.80}")
        try:
            object.__setattr__(values, name, float(value))
        except OverflowError as error:
            raise CalibrationError(f"{name} is too large") from error


CLIP_PRESET = Calibration(mu=0.22, beta=30.0)
"""The paper's values for CLIP-family backbones."""

SIGLIP2_PRESET = Calibration(mu=0.05, beta=30.0)
"""The paper's values for SigLIP 2."""
