"""Files of FACTOR-Bench: the published `factor_bench.jsonl`, and those in the same form.

A caption's parse is the flat form of the paper or, for nested logic, a tree as `query.to_json` writes it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lcse_plugins.errors import InvalidOption, QueryError, QueryNotFlat
from lcse_plugins.query import Query, from_flat, from_json, to_flat, to_json

__all__ = ["OFFICIAL_SHA256", "FactorFile", "FactorSample", "draw_samples", "read_factor", "write_factor"]

OFFICIAL_SHA256 = "37f179a66913d2fbf55bf4f9a852273e894d53683dda0c7a8a7fff6c7b7d387d"
"""Of `factor_bench.jsonl`, version 1.0."""

TEST_TYPES = ("operator", "equivalence", "compound", "nested")
TEXT_FIELDS = ("sample_id", "test_type", "operator", "image", "caption_a", "caption_b")


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
        """Whether it holds the published samples, byte for byte."""
        return self.sha256 == OFFICIAL_SHA256


def read_factor(path: str | Path) -> FactorFile:
    """Read a benchmark file, a sample a line.

    Raises:
        InvalidOption: it cannot be read, or holds something that is not a sample.
    """
    try:
        data = Path(path).read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise InvalidOption(f"cannot read {path}: {error}") from error
    except UnicodeDecodeError as error:
        raise InvalidOption(f"{path} is not UTF-8 text") from error
    written = {f"line {n}": line for n, line in enumerate(text.split("\n"), start=1) if line.strip()}
    samples = []
    for place, line in written.items():
        try:
            samples.append(_sample(json.loads(line)))
        except (ValueError, KeyError, TypeError, RecursionError, QueryError) as error:
            raise InvalidOption(f"{path}, {place} is not a FACTOR-Bench sample: {error!r}") from error
    if not samples:
        raise InvalidOption(f"{path} holds no samples")
    return FactorFile(tuple(samples), hashlib.sha256(data).hexdigest())


def write_factor(samples: Sequence[FactorSample], path: str | Path) -> None:
    """Write samples, one a line."""
    lines = (json.dumps(sample.to_json(), ensure_ascii=False) for sample in samples)
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def draw_samples(samples: Sequence[FactorSample], limit: int | None, *, seed: int = 0) -> tuple[FactorSample, ...]:
    """At most `limit` samples, the same share of every operator, in their order."""
    if limit is None or limit >= len(samples):
        return tuple(samples)
    shuffled = np.random.default_rng(seed).permutation(len(samples)).tolist()
    seen: Counter[tuple[str, str]] = Counter()
    turns = []
    for place in shuffled:
        kind = (samples[place].test_type, samples[place].operator)
        turns.append((seen[kind], place))
        seen[kind] += 1
    return tuple(samples[place] for place in sorted(place for _, place in sorted(turns)[:limit]))


def _sample(data: Mapping[str, Any]) -> FactorSample:
    for name in TEXT_FIELDS:
        if not isinstance(data[name], str) or not data[name].strip():
            raise ValueError(f"{name} is a text, not {data[name]!r}")
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
        **{name: data[name] for name in TEXT_FIELDS},
        correct=data["correct"],
        parse_a=_parse_from_json(data["parse_a"]),
        parse_b=_parse_from_json(data["parse_b"]),
        meta=meta,
    )


def _parse_from_json(data: Mapping[str, Any]) -> Query:
    return from_json(data) if "op" in data else from_flat(data)


def _parse_to_json(tree: Query) -> Any:
    try:
        return to_flat(tree)
    except QueryNotFlat:
        return to_json(tree)
