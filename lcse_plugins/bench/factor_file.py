"""Files of FACTOR-Bench: the published `factor_bench.jsonl` and `.json`, and those that `factor_builder` makes.

A caption's parse is the flat form of the paper or, for nested logic, a tree as `query.to_json` writes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
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
        image_id: the picture's number, where it has one.
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
    image_id: int | None = None
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
            **{name: getattr(self, name) for name in ("sample_id", "test_type", "operator", "image_id", "image")},
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
        sha256: of its bytes; of its samples as lines where they are one list.
    """

    samples: tuple[FactorSample, ...]
    sha256: str

    @property
    def official(self) -> bool:
        """Whether it holds the published samples, byte for byte."""
        return self.sha256 == OFFICIAL_SHA256


def read_factor(path: str | Path) -> FactorFile:
    """Read a benchmark file: a sample a line, or one object with the list `samples`.

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
    entries = _listed(text)
    if entries is None:
        written = {f"line {n}": line for n, line in enumerate(text.split("\n"), start=1) if line.strip()}
    else:
        written = {f"sample {n}": json.dumps(entry) for n, entry in enumerate(entries, start=1)}
        data = "".join(f"{line}\n" for line in written.values()).encode()
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
    """At most `limit` samples, of all kinds, polarities and answers alike as far as there are some; in their order."""
    if limit is None or limit >= len(samples):
        return tuple(samples)
    keys: list[Callable[[int], Hashable]] = [
        lambda n: (samples[n].test_type, samples[n].operator),
        lambda n: str(samples[n].meta.get("polarity")),
        lambda n: samples[n].correct,
    ]
    shuffled = np.random.default_rng(seed).permutation(len(samples)).tolist()
    return tuple(samples[n] for n in sorted(_in_turn(shuffled, keys)[:limit]))


def _in_turn(places: Iterable[int], keys: Sequence[Callable[[int], Hashable]]) -> list[int]:
    """The places, one of each group after another; the groups of the first key, and within them those of the next."""
    if not keys:
        return list(places)
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place in places:
        groups[keys[0](place)].append(place)
    turns = zip_longest(*(_in_turn(group, keys[1:]) for group in groups.values()))
    return [place for turn in turns for place in turn if place is not None]


def _listed(text: str) -> list[Any] | None:
    """The samples of a file that is one object; None for lines."""
    with contextlib.suppress(ValueError, RecursionError):
        match json.loads(text):
            case {"samples": [*entries]}:
                return entries
    return None


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
        image_id=data.get("image_id"),
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
