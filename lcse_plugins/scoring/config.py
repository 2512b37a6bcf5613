"""The choices a user may make about scoring, all defaults in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

from lcse_plugins.errors import InvalidOption
from lcse_plugins.scoring.arguments import check_choice

__all__ = ["DEFAULT_CONFIG", "DEFAULT_TEMPLATES", "Aggregator", "Mode", "ScoringConfig"]

Mode = Literal["anchored", "lcse", "factored", "routed", "holistic"]
Aggregator = Literal["minmax", "power", "probabilistic"]

DEFAULT_TEMPLATES = ("a {}", "a photo of a {}", "an image of a {}", "a {} in the image")
"""The paper's prompt ensemble for one concept."""

LARGEST_EXPONENT = 1e6
"""Beyond it float32 cannot hold what an exponent makes of a logarithm; infinite ones are the minimum and maximum."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoringConfig:
    """How evidence becomes a score.

    Attributes:
        mode: `anchored` (the default) averages the logic, as a similarity, with the similarity of what the query
            affirms; `lcse` is the paper's method, which edits the ordinary similarity; `factored` ranks by logic
            alone; `routed` is `factored` for queries with logic and `holistic` for the others; `holistic` is the
            plain encoder.
        aggregator: how children combine: `minmax`, the paper's `power` mean, or `probabilistic` products. None
            takes the mode's own: `minmax` for `anchored`, `power` for the others.
        gamma_and: exponent of the power mean for AND; -1, the harmonic mean, lets one weak concept pull down.
        gamma_or: exponent for OR; 10 is close to the maximum yet still smooth.
        templates: prompts averaged into one concept vector; each holds one `{}`.
    """

    mode: Mode = "anchored"
    aggregator: Aggregator | None = None
    gamma_and: float = -1.0
    gamma_or: float = 10.0
    templates: tuple[str, ...] = DEFAULT_TEMPLATES

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, get_args(Mode))
        if self.aggregator is None:
            object.__setattr__(self, "aggregator", _own_aggregator(self.mode))
        check_choice("aggregator", self.aggregator, get_args(Aggregator))
        for name in ("gamma_and", "gamma_or"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not (abs(value) <= LARGEST_EXPONENT or math.isinf(value)):
                raise InvalidOption(f"{name} is a number up to {LARGEST_EXPONENT:g} or infinite, not {value!r:.80}")
        object.__setattr__(self, "templates", tuple(self.templates))
        if not self.templates or any(template.count("{}") != 1 for template in self.templates):
            raise InvalidOption(f"templates are texts that hold one '{{}}' each, not {self.templates!r}")

    def with_mode(self, mode: Mode) -> ScoringConfig:
        """The same choices in another mode, with that mode's own aggregator unless another was chosen."""
        own = self.aggregator == _own_aggregator(self.mode)
        return replace(self, mode=mode, aggregator=None if own else self.aggregator)


def _own_aggregator(mode: Mode) -> Aggregator:
    return "minmax" if mode == "anchored" else "power"


DEFAULT_CONFIG = ScoringConfig()
