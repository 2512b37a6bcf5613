"""Retention: captions without logic must still find their images, exactly as before.

Recall of captions over images for the plain encoder and for each mode, and the rank correlation between the two. A
caption in which the parser finds logic is counted apart: it is meant to rank otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lcse_plugins.bench.metrics import spearman, standing_before
from lcse_plugins.bench.photographs import Progress
from lcse_plugins.bench.reports import aligned, number_text
from lcse_plugins.bench.rivals import MODES
from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.grammar import parse as parse_offline
from lcse_plugins.parsing.result import read_with
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.calibration import Calibration

__all__ = ["Retention", "measure_retention"]

DEPTHS = (1, 5, 10)


@dataclass(frozen=True)
class Retention:
    """How well captions find their images.

    Attributes:
        recall: mode → depth → percent of captions whose image is among the first.
        correlation: mode → mean rank correlation with the plain encoder, over captions without logic; None when all
            have some.
        correlation_all: the same over all captions.
        captions: how many captions were asked.
        constrained: how many of them the parser found logic in.
    """

    recall: Mapping[str, Mapping[int, float]]
    correlation: Mapping[str, float | None]
    correlation_all: Mapping[str, float]
    captions: int
    constrained: int

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {
            "captions": self.captions,
            "constrained": self.constrained,
            "recall": {mode: {str(k): v for k, v in per.items()} for mode, per in self.recall.items()},
            "correlation": dict(self.correlation),
            "correlation_all": dict(self.correlation_all),
        }

    def to_text(self) -> str:
        """Recall and rank correlation by mode, for a terminal."""
        rows = [["", "R@1", "R@5", "R@10", "ρ without logic", "ρ all"]]
        for mode, recall in self.recall.items():
            alike = [number_text(self.correlation[mode], ".4f"), f"{self.correlation_all[mode]:.4f}"]
            rows.append([mode, *map(number_text, recall.values()), *alike])
        return (
            f"{self.captions} captions, {self.constrained} of them with logic; percent, and ρ with plain similarity\n"
            + aligned(rows)
        )


def measure_retention(
    encoder: Encoder,
    vectors: FloatArray,
    captions: Sequence[tuple[str, int]],
    *,
    calibration: Calibration | None = None,
    progress: Progress | None = None,
) -> Retention:
    """Ask for images by captions.

    Args:
        encoder: The encoder of the vectors.
        vectors: (n, d) unit rows.
        captions: Caption and the position of the image it was written about.
        calibration: μ and β; by default the encoder's preset.
        progress: Called with (done, total).
    """
    if not captions:
        raise InvalidOption("retention needs captions; give a file that has some")
    scorers = {name: LogicScorer(encoder, calibration=calibration, config=config) for name, config in MODES.items()}
    hits: dict[tuple[str, int], int] = defaultdict(int)
    alike: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for done, (caption, image) in enumerate(captions, start=1):
        parse = read_with(parse_offline, caption)
        plain = None
        for name, scorer in scorers.items():  # the plain encoder first
            encoded = scorer.encode(parse)
            scores = encoded.score_similarities(vectors @ encoded.matrix.T)[0]
            plain = scores if plain is None else plain
            better = standing_before(scores, image)
            for depth in DEPTHS:
                hits[name, depth] += better < depth
            alike[name].append((parse.constrained, spearman(plain, scores)))
        if progress is not None:
            progress(done, len(captions))
    return Retention(
        recall={name: {depth: 100.0 * hits[name, depth] / len(captions) for depth in DEPTHS} for name in scorers},
        correlation={name: _mean([rho for logic, rho in values if not logic]) for name, values in alike.items()},
        correlation_all={name: float(np.mean([rho for _, rho in values])) for name, values in alike.items()},
        captions=len(captions),
        constrained=sum(logic for logic, _ in alike["holistic"]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
