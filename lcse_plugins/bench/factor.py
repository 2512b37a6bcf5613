"""FACTOR-Bench: one image and two captions with the same concepts and different logic; which one is true?

Reads the published `factor_bench.jsonl` and files in the same form. A caption's parse is the flat form of the paper or,
for nested logic, a tree as `query.to_json` writes it.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lcse_plugins.bench.metrics import finite
from lcse_plugins.bench.photographs import Progress, tracked
from lcse_plugins.bench.phrasing import OPERATORS
from lcse_plugins.bench.reports import Rows, aligned, number_text
from lcse_plugins.bench.rivals import score_all
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption, QueryError, QueryNotFlat
from lcse_plugins.parsing.result import Parse, affirmative_text
from lcse_plugins.query import Query, concepts, from_flat, from_json, to_flat, to_json
from lcse_plugins.scorer import LogicScorer

__all__ = [
    "FactorFile",
    "FactorSample",
    "Parses",
    "factor_rows",
    "factor_text",
    "measure_factor",
    "read_factor",
    "write_factor",
]

OFFICIAL_SHA256 = "37f179a66913d2fbf55bf4f9a852273e894d53683dda0c7a8a7fff6c7b7d387d"
"""Of `factor_bench.jsonl`, version 1.0."""

VIOLATION = 0.001
"""Equivalent captions whose scores differ by more than this violate the equivalence."""

Parses = Literal["oracle", "own"]

_TEST_TYPES = ("operator", "equivalence", "compound", "nested")
_TEXTS = ("sample_id", "test_type", "operator", "image", "caption_a", "caption_b")
_TREES = ("parse_a", "parse_b")


@dataclass(frozen=True, kw_only=True)
class FactorSample:
    """One forced choice, in the words of the file; `image` is relative to the folder of all pictures.

    `test_type` is operator, equivalence, compound or nested (ours); `operator` what is tested, such as `BUT_NOT` or
    `DE_MORGAN`; `meta` whatever else the file says.
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


@dataclass(frozen=True)
class FactorFile:
    """A benchmark file: its samples in order, and the hash of its bytes."""

    samples: tuple[FactorSample, ...]
    sha256: str

    @property
    def official(self) -> bool:
        """Whether it holds the published samples, byte for byte."""
        return self.sha256 == OFFICIAL_SHA256


def read_factor(path: str | Path) -> FactorFile:
    """Read a benchmark file, a sample a line.

    Raises:
        InvalidOption: it cannot be read, or holds something that is not a sample; the message names the line.
    """
    try:
        data = Path(path).read_bytes()
        lines = data.decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOption(f"cannot read {path}: {error}") from error
    samples = []
    for number, line in enumerate(lines, start=1):
        try:
            samples += [_sample(json.loads(line))] if line.strip() else []
        except (ValueError, KeyError, TypeError, RecursionError, QueryError) as error:
            raise InvalidOption(f"{path}, line {number} is not a FACTOR-Bench sample: {error!r}") from error
    if not samples:
        raise InvalidOption(f"{path} holds no samples")
    return FactorFile(tuple(samples), hashlib.sha256(data).hexdigest())


def _sample(data: Mapping[str, Any]) -> FactorSample:
    for name in _TEXTS:
        if not isinstance(data[name], str) or not data[name].strip():
            raise ValueError(f"{name} is a text, not {data[name]!r}")
    if data["test_type"] not in _TEST_TYPES:
        raise ValueError(f"test_type is one of {', '.join(_TEST_TYPES)}, not {data['test_type']!r}")
    answers = ("both",) if data["test_type"] == "equivalence" else ("a", "b")
    if data["correct"] not in answers:
        raise ValueError(f"correct is {' or '.join(answers)} for {data['test_type']}, not {data['correct']!r}")
    trees: dict[str, Any] = {
        name: from_json(data[name]) if "op" in data[name] else from_flat(data[name]) for name in _TREES
    }
    texts = {name: data[name] for name in (*_TEXTS, "correct")}
    return FactorSample(**texts, **trees, meta=dict(data.get("meta") or {}))


def write_factor(samples: Sequence[FactorSample], path: Path) -> None:
    """Write samples, one a line."""

    def told(tree: Query) -> Any:
        try:
            return to_flat(tree)
        except QueryNotFlat:
            return to_json(tree)

    lines = []
    for sample in samples:
        trees = {name: told(getattr(sample, name)) for name in _TREES}
        lines.append(json.dumps({**vars(sample), **trees}, ensure_ascii=False) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


def measure_factor(
    samples: Sequence[FactorSample],
    scorer: LogicScorer,
    vectors: Mapping[str, FloatArray],
    *,
    parses: Parses = "oracle",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Score both captions of every sample and compare; all shares in percent, ties count half.

    `vectors` holds the (d,) vector of each image. `parses`: `oracle` takes the logic from the file, `own` from the
    scorer's parser.

    Returns:
        `accuracy` by operator and `overall`; `violations`: by kind of equivalence, and for `all`, the share scored
        apart; `compound`: accuracy by number of concepts; `nested`; the number of `samples`.
    """
    found: dict[str, dict[str, list[float]]] = {test: defaultdict(list) for test in _TEST_TYPES}
    for sample in tracked(samples, progress):
        first, second = (
            _score(scorer, caption, tree, vectors[sample.image], parses)
            for caption, tree in ((sample.caption_a, sample.parse_a), (sample.caption_b, sample.parse_b))
        )
        kind = sample.operator
        if sample.correct == "both":
            kind = str(sample.meta.get("equivalence_type") or kind)
            outcome = float(abs(first - second) > VIOLATION)
        else:
            margin = first - second if sample.correct == "a" else second - first
            outcome = 0.5 + 0.5 * float(np.sign(margin))
        if sample.test_type == "compound":
            kind = str(len(concepts(sample.parse_a & sample.parse_b)))
        found[sample.test_type][kind].append(outcome)
    shares = {test: {kind: _percent(part) for kind, part in kinds.items()} for test, kinds in found.items()}
    overall = {test: _percent([*chain.from_iterable(kinds.values())]) for test, kinds in found.items() if kinds}
    everything = {"all": overall["equivalence"]} if found["equivalence"] else {}
    return {
        "accuracy": shares["operator"],
        "overall": overall.get("operator"),
        "violations": {**shares["equivalence"], **everything},
        "compound": dict(sorted(shares["compound"].items(), key=lambda part: int(part[0]))),
        "nested": overall.get("nested"),
        "samples": len(samples),
    }


def _percent(outcomes: Sequence[float]) -> float:
    return 100.0 * float(np.mean(outcomes))


def _score(scorer: LogicScorer, caption: str, tree: Query, vector: FloatArray, parses: Parses) -> float:
    query: Parse | str = caption
    if parses == "oracle":
        query = Parse(text=caption, query=tree, affirmative=affirmative_text(tree, caption), parser="oracle")
    return float(finite(score_all(scorer, query, vector[None, :]))[0])


def factor_rows(result: Mapping[str, Any]) -> Rows:
    """Accuracy by operator, on nested and compound queries, and how often equivalents were scored apart."""
    modes: Mapping[str, Any] = result["modes"]
    counts = list(next(iter(modes.values()))["compound"])
    rows = [
        ["accuracy, %", *OPERATORS, "all", "nested", *(f"{n} concepts" for n in counts), "equivalents scored apart"]
    ]
    for mode, report in modes.items():
        values = [*(report["accuracy"].get(operator) for operator in OPERATORS), report["overall"], report["nested"]]
        values += [*(report["compound"][n] for n in counts), report["violations"].get("all")]
        rows.append([mode, *map(number_text, values)])
    return rows


def factor_text(result: Mapping[str, Any]) -> str:
    """The table for a terminal."""
    known = (
        "the published file, v1.0" if result["official"] else f"NOT the published file (sha256 {result['sha256']:.12}…)"
    )
    scored = next(iter(result["modes"].values()))["samples"]
    return f"{scored} samples; {known}\n{aligned(factor_rows(result))}"
