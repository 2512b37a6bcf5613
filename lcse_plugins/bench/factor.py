"""FACTOR-Bench: one image and two captions with the same concepts and different logic; which one is true?

Reads the published `factor_bench.jsonl` and files of the same form, such as `factor_builder` makes. A caption's parse
is the flat form of the paper or, for nested logic, a tree as `query.to_json` writes it.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lcse_plugins.bench.metrics import finite
from lcse_plugins.bench.photographs import Progress
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption, QueryError
from lcse_plugins.parsing.result import Parse, affirmative_text
from lcse_plugins.query import Query, canonical, concepts, from_flat, from_json, to_flat, to_json
from lcse_plugins.scorer import LogicScorer

__all__ = [
    "OFFICIAL_SHA256",
    "FactorFile",
    "FactorReport",
    "FactorSample",
    "Parses",
    "measure_factor",
    "read_factor",
    "write_factor",
]

OFFICIAL_SHA256 = "37f179a66913d2fbf55bf4f9a852273e894d53683dda0c7a8a7fff6c7b7d387d"
"""Of `factor_bench.jsonl`, version 1.0."""

VIOLATION = 0.001
"""Equivalent captions whose scores differ by more than this violate the equivalence."""

TEST_TYPES = ("operator", "equivalence", "compound", "nested")

Parses = Literal["oracle", "own"]


@dataclass(frozen=True, kw_only=True)
class FactorSample:
    """One forced choice.

    Attributes:
        sample_id: its name.
        test_type: `operator`, `equivalence`, `compound`, or `nested` (ours).
        operator: what is tested, such as `BUT_NOT` or `DE_MORGAN`.
        image: path of the picture, relative to the folder of all.
        caption_a: first caption.
        caption_b: second caption.
        correct: which is true: `a`, `b`, or `both` for an equivalence.
        parse_a: tree of the first caption.
        parse_b: tree of the second caption.
        meta: whatever else the file says.
    """

    sample_id: str
    test_type: str
    operator: str
    image: str
    caption_a: str
    caption_b: str
    correct: Literal["a", "b", "both"]
    parse_a: Query
    parse_b: Query
    meta: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The sample as a line of the file."""
        return {
            **{name: getattr(self, name) for name in ("sample_id", "test_type", "operator", "image")},
            **{name: getattr(self, name) for name in ("caption_a", "caption_b", "correct")},
            "parse_a": _parse_to_json(self.parse_a),
            "parse_b": _parse_to_json(self.parse_b),
            "meta": dict(self.meta),
        }


@dataclass(frozen=True)
class FactorFile:
    """A benchmark file.

    Attributes:
        samples: in the order of the file.
        sha256: of its bytes.
    """

    samples: tuple[FactorSample, ...]
    sha256: str

    @property
    def official(self) -> bool:
        """Whether it is the published file, byte for byte."""
        return self.sha256 == OFFICIAL_SHA256


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


def read_factor(path: str | Path) -> FactorFile:
    """Read a benchmark file.

    Raises:
        InvalidOption: it cannot be read, or a line is not a sample.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidOption(f"cannot read {path}: {error}") from error
    samples = []
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            samples.append(_sample(json.loads(line)))
        except (ValueError, KeyError, TypeError, QueryError) as error:
            raise InvalidOption(f"{path}, line {number} is not a FACTOR-Bench sample: {error!r}") from error
    if not samples:
        raise InvalidOption(f"{path} holds no samples")
    return FactorFile(tuple(samples), hashlib.sha256(data).hexdigest())


def write_factor(samples: Sequence[FactorSample], path: str | Path) -> None:
    """Write samples, one a line."""
    lines = (json.dumps(sample.to_json(), ensure_ascii=False) for sample in samples)
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


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
        compound=dict(sorted(shares("compound").items())),
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


def _sample(data: Mapping[str, Any]) -> FactorSample:
    if data["correct"] not in ("a", "b", "both"):
        raise ValueError(f"correct is a, b or both, not {data['correct']!r}")
    if data["test_type"] not in TEST_TYPES:
        raise ValueError(f"test_type is one of {', '.join(TEST_TYPES)}, not {data['test_type']!r}")
    if (data["test_type"] == "equivalence") != (data["correct"] == "both"):
        raise ValueError(f"correct is both for an equivalence and for nothing else, not {data['correct']!r}")
    meta = data.get("meta") or {}
    if not isinstance(meta, Mapping):
        raise ValueError(f"meta is an object, not {meta!r}")
    return FactorSample(
        **{name: str(data[name]) for name in ("sample_id", "test_type", "operator", "image", "caption_a", "caption_b")},
        correct=data["correct"],
        parse_a=_parse_from_json(data["parse_a"]),
        parse_b=_parse_from_json(data["parse_b"]),
        meta=meta,
    )


def _parse_from_json(data: Mapping[str, Any]) -> Query:
    return from_json(data) if "op" in data else from_flat(data)


def _parse_to_json(tree: Query) -> Any:
    nested = canonical(tree).depth > 3 or any(hasattr(c, "children") for c in getattr(canonical(tree), "children", ()))
    return to_json(tree) if nested else to_flat(tree)
