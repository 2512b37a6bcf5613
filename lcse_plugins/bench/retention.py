"""Retention: captions without logic must still find their images, exactly as before.

Recall of captions over images for the plain encoder and for each mode, and the rank correlation between the two. A
caption in which the parser finds logic is counted apart: it is meant to rank otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lcse_plugins.bench.metrics import spearman, standing_before
from lcse_plugins.bench.photographs import Progress, tracked
from lcse_plugins.bench.reports import Rows, aligned, number_text
from lcse_plugins.bench.rivals import MODES, score_all
from lcse_plugins.encoders.protocol import Encoder, FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.grammar import parse as parse_offline
from lcse_plugins.scorer import LogicScorer
from lcse_plugins.scoring.calibration import Calibration

__all__ = ["measure_retention", "retention_rows", "retention_text"]

DEPTHS = (1, 5, 10)


def measure_retention(
    encoder: Encoder,
    vectors: FloatArray,
    captions: Sequence[tuple[str, int]],
    *,
    calibration: Calibration | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Ask for (n, d) image vectors by captions, each with the position of the image it was written about.

    Returns:
        How many `captions`, and how many of them `constrained`; by mode `recall` at each depth, in percent, and the
        mean rank `correlation` with plain similarity, over captions without logic (None where there are none) and
        over all.
    """
    if not captions:
        raise InvalidOption("retention needs captions; give JSON lines with `file` and `captions`")
    scorers = {name: LogicScorer(encoder, calibration=calibration, config=config) for name, config in MODES.items()}
    before: dict[str, list[int]] = defaultdict(list)
    alike: dict[str, list[float]] = defaultdict(list)
    logic: list[bool] = []
    for caption, image in tracked(captions, progress):
        parse = parse_offline.read(caption)
        logic.append(parse.constrained)
        scores = {name: score_all(scorer, parse, vectors) for name, scorer in scorers.items()}
        for name in scorers:
            before[name].append(standing_before(scores[name], image))
            alike[name].append(spearman(scores["holistic"], scores[name]))
    plain = np.flatnonzero(~np.array(logic))
    return {
        "captions": len(captions),
        "constrained": sum(logic),
        "recall": {
            name: {str(k): 100.0 * float(np.mean(np.array(places) < k)) for k in DEPTHS}
            for name, places in before.items()
        },
        "correlation": {
            name: float(np.array(values)[plain].mean()) if len(plain) else None for name, values in alike.items()
        },
        "correlation_all": {name: float(np.mean(values)) for name, values in alike.items()},
    }


def retention_rows(result: Mapping[str, Any]) -> Rows:
    """Recall and rank correlation, a row for each mode."""
    rows = [["captions", *(f"R@{depth}" for depth in DEPTHS), "ρ without logic", "ρ all"]]
    for mode, recall in result["recall"].items():
        alike = (number_text(result[name][mode], ".4f") for name in ("correlation", "correlation_all"))
        rows.append([mode, *map(number_text, recall.values()), *alike])
    return rows


def retention_text(result: Mapping[str, Any]) -> str:
    """The table for a terminal."""
    head = f"{result['captions']} captions, {result['constrained']} of them with logic; ρ with plain similarity"
    return f"{head}\n{aligned(retention_rows(result))}"
