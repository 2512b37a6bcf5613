"""FACTOR-Bench: one image and two captions with the same concepts and different logic; which one is true?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lcse_plugins.bench.factor_file import FactorFile, FactorSample
from lcse_plugins.bench.metrics import finite
from lcse_plugins.bench.photographs import Progress
from lcse_plugins.bench.phrasing import OPERATORS
from lcse_plugins.bench.reports import aligned, number_text
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.result import Parse, affirmative_text
from lcse_plugins.query import Query, concepts
from lcse_plugins.scorer import LogicScorer

__all__ = ["FactorReport", "Parses", "factor_text", "measure_factor"]

VIOLATION = 0.001
"""Equivalent captions whose scores differ by more than this violate the equivalence."""

Parses = Literal["oracle", "own"]


@dataclass(frozen=True)
class FactorReport:
    """What one way of scoring reached; all shares in percent.

    Attributes:
        accuracy: operator → share of true captions preferred; ties count half.
        overall: the same over all samples of the operator split.
        violations: kind of equivalence → share of pairs scored apart, and `all`.
        compound: number of concepts → accuracy.
        nested: accuracy on nested queries; None when there are none.
        samples: how many were scored.
    """

    accuracy: dict[str, float]
    overall: float | None
    violations: dict[str, float]
    compound: dict[str, float]
    nested: float | None
    samples: int

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "accuracy": self.accuracy,
            "overall": self.overall,
            "violations": self.violations,
            "compound": self.compound,
            "nested": self.nested,
            "samples": self.samples,
        }


def measure_factor(
    samples: Sequence[FactorSample],
    scorer: LogicScorer,
    vectors: Mapping[str, FloatArray],
    *,
    parses: Parses = "oracle",
    progress: Progress | None = None,
) -> FactorReport:
    """Score both captions of every sample and compare.

    Args:
        samples: What to decide.
        scorer: Encoder, calibration and mode.
        vectors: Image of a sample → (d,) its vector.
        parses: `oracle` takes the logic from the file, `own` from the scorer's parser.
        progress: Called with (done, total).
    """
    right: dict[tuple[str, str], list[float]] = defaultdict(list)
    for done, sample in enumerate(samples, start=1):
        if sample.image not in vectors:
            raise InvalidOption(f"no vector for image {sample.image!r} of sample {sample.sample_id}")
        first, second = (
            _score(scorer, caption, tree, vectors[sample.image], parses)
            for caption, tree in ((sample.caption_a, sample.parse_a), (sample.caption_b, sample.parse_b))
        )
        if sample.correct == "both":
            right["equivalence", _equivalence(sample)].append(float(abs(first - second) > VIOLATION))
        else:
            margin = first - second if sample.correct == "a" else second - first
            kind = str(len(concepts(sample.parse_a & sample.parse_b))) if sample.test_type == "compound" else None
            right[sample.test_type, kind or sample.operator].append(0.5 + 0.5 * float(np.sign(margin)))
        if progress is not None:
            progress(done, len(samples))
    return _report(right, len(samples))


def factor_text(reports: Mapping[str, FactorReport], file: FactorFile) -> str:
    """Accuracy by operator, on compound and nested queries, and how often equivalents were scored apart."""
    known = "the published file, v1.0" if file.official else f"NOT the published file (sha256 {file.sha256[:12]}…)"
    some = next(iter(reports.values()))
    scored = str(some.samples) if some.samples == len(file.samples) else f"{some.samples} of {len(file.samples)}"
    operators = dict.fromkeys((*OPERATORS, *some.accuracy))
    rows = [["", *operators, "overall", "nested", *(f"{n} concepts" for n in some.compound), "equivalents apart"]]
    for name, report in reports.items():
        values = [*(report.accuracy.get(operator) for operator in operators), report.overall, report.nested]
        rows.append([name, *map(number_text, [*values, *report.compound.values(), report.violations.get("all")])])
    return f"{scored} samples; {known}; percent\n{aligned(rows)}"


def _report(right: Mapping[tuple[str, str], list[float]], samples: int) -> FactorReport:
    def shares(test: str) -> dict[str, float]:
        return {name: 100.0 * float(np.mean(values)) for (kind, name), values in right.items() if kind == test}

    def overall(test: str) -> float | None:
        values = [value for (kind, _), part in right.items() if kind == test for value in part]
        return 100.0 * float(np.mean(values)) if values else None

    violations = shares("equivalence")
    if violations:
        violations["all"] = overall("equivalence") or 0.0
    return FactorReport(
        accuracy=shares("operator"),
        overall=overall("operator"),
        violations=violations,
        compound=dict(sorted(shares("compound").items(), key=lambda part: int(part[0]))),
        nested=overall("nested"),
        samples=samples,
    )


def _score(scorer: LogicScorer, caption: str, tree: Query, vector: FloatArray, parses: Parses) -> float:
    if parses == "own":
        encoded = scorer.encode(caption)
    else:
        affirmed = affirmative_text(tree, caption)
        encoded = scorer.encode(Parse(text=caption, query=tree, affirmative=affirmed, parser="oracle"))
    scores, _ = encoded.score_similarities((vector @ encoded.matrix.T)[None, :])
    return float(finite(scores)[0])


def _equivalence(sample: FactorSample) -> str:
    return str(sample.meta.get("equivalence_type") or sample.operator)
