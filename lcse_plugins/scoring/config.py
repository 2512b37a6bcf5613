"""The choices a user may make about scoring, all defaults in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from lcse_plugins.errors import InvalidOption

__all__ = ["DEFAULT_CONFIG", "DEFAULT_TEMPLATES", "Aggregator", "HolisticText", "Mode", "ScoringConfig"]

Mode = Literal["lcse", "anchored", "factored", "routed", "holistic"]
Aggregator = Literal["power", "minmax", "probabilistic"]
HolisticText = Literal["query", "affirmative", "canonical"]

DEFAULT_TEMPLATES = ("a {}", "a photo of a {}", "an image of a {}", "a {} in the image")
"""The paper's prompt ensemble for one concept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoringConfig:
    """How evidence becomes a score.

    Attributes:
        mode: `lcse` edits the ordinary similarity (the paper's method); `factored` ranks by logic alone; `routed`
            is `factored` for queries with logic and `holistic` for the others; `holistic` is the plain encoder;
            `anchored` averages the logic, as a similarity, with the similarity of what the query affirms, or of its
            concepts where that has no text.
        aggregator: how children combine: `power` mean (the paper's), `minmax`, or `probabilistic` products.
        gamma_and: exponent of the power mean for AND; -1, the harmonic mean, lets one weak concept pull down.
        gamma_or: exponent for OR; 10 is close to the maximum yet still smooth.
        holistic: the text that gives the ordinary similarity: the `query` as written (the paper's), its
            `affirmative` part, or its `canonical` form (equivalent queries then score the same).
        templates: prompts averaged into one concept vector; each holds one `{}`.
    """

    mode: Mode = "lcse"
    aggregator: Aggregator = "power"
    gamma_and: float = -1.0
    gamma_or: float = 10.0
    holistic: HolisticText = "query"
    templates: tuple[str, ...] = DEFAULT_TEMPLATES

    def __post_init__(self) -> None:
        _check_choice("mode", self.mode, get_args(Mode))
        _check_choice("aggregator", self.aggregator, get_args(Aggregator))
        _check_choice("holistic", self.holistic, get_args(HolisticText))
        for name in ("gamma_and", "gamma_or"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or math.isnan(value):
                raise InvalidOption(f"{name} is a number, not {value!r}")
        object.__setattr__(self, "templates", tuple(self.templates))
        if not self.templates or any(template.count("{}") != 1 for template in self.templates):
            raise InvalidOption(f"templates are texts that hold one '{{}}' each, not {self.templates!r}")

    def to_json(self) -> dict[str, Any]:
        """All choices as JSON values."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "templates": list(self.templates)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ScoringConfig:
        """The config that `to_json` wrote; unknown names are refused."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise InvalidOption(f"unknown scoring options {unknown}; known are {sorted(known)}")
        return cls(**data)


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidOption(f"unknown {name} {value!r}; choose one of {', '.join(choices)}")


DEFAULT_CONFIG = ScoringConfig()
