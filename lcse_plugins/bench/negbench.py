"""NegBench: choose the true caption of four, and find images by captions that negate.

The multiple-choice file is a table with the columns `image_path`, `caption_0` … `caption_3`, `correct_answer` (the
number of the true caption) and `correct_answer_template` (its kind). The retrieval file has `filepath` or `image_path`
and `captions` (a list, written as JSON or Python, or one) or `caption`.
"""

from __future__ import annotations

import ast
import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from lcse_plugins.bench.metrics import finite, standing_before
from lcse_plugins.bench.photographs import Progress, tracked
from lcse_plugins.bench.reports import aligned, number_text
from lcse_plugins.bench.rivals import score_all
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.scorer import LogicScorer

__all__ = ["Choice", "choices_text", "measure_choices", "measure_recall", "read_choices", "read_retrieval_captions"]

OPTIONS = 4
DEPTH = 5


@dataclass(frozen=True)
class Choice:
    """One question: an image's path, four captions, the position of the true one, and its kind, such as `negative`."""

    image: str
    captions: tuple[str, ...]
    correct: int
    kind: str


def read_choices(path: Path) -> list[Choice]:
    """Read the multiple-choice file.

    Raises:
        InvalidOption: a column is missing, a row is damaged or there is none; the message names the line.
    """
    numbers = {form: n for n in range(OPTIONS) for form in (str(n), f"{n}.0")}  # some tools write 2.0
    choices = []
    for line, row in _rows(path, "image_path", "correct_answer", *(f"caption_{i}" for i in range(OPTIONS))):
        if (correct := numbers.get(row["correct_answer"].strip())) is None:
            raise InvalidOption(f"{path}, line {line}: correct_answer is 0 to 3, not {row['correct_answer']!r}")
        captions = tuple(row[f"caption_{i}"] for i in range(OPTIONS))
        if not all(map(str.strip, captions)):
            raise InvalidOption(f"{path}, line {line}: a caption is blank; each question has {OPTIONS}")
        choices.append(Choice(row["image_path"], captions, correct, row.get("correct_answer_template") or "all"))
    if not choices:
        raise InvalidOption(f"{path} holds no questions")
    return choices


def read_retrieval_captions(path: Path) -> list[tuple[str, str]]:
    """Read the retrieval file as pairs of image path and caption.

    Raises:
        InvalidOption: captions cannot be read or there are none; the message names the line.
    """
    pairs: list[tuple[str, str]] = []
    for line, row in _rows(path):
        image = row.get("filepath") or row.get("image_path")
        said = row.get("captions") or row.get("caption", "")
        captions = _listed(said) if row.get("captions", "").lstrip().startswith("[") else [said]
        if not image or not captions or not all(isinstance(text, str) and text.strip() for text in captions):
            raise InvalidOption(
                f"{path}, line {line}: a row has `filepath` and `captions`, a text or a list of texts, none of them "
                f"blank; this one has {image or ''!r} and {said!r:.80}"
            )
        pairs += [(image, caption) for caption in captions]
    if not pairs:
        raise InvalidOption(f"{path} holds no captions")
    return pairs


def _listed(written: str) -> list[Any]:
    """A list as JSON or Python writes it; an empty one where it is neither."""
    for read in (json.loads, ast.literal_eval):
        try:
            return list(read(written))
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return []


def _rows(path: Path, *columns: str) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
                raise InvalidOption(f"{path} lacks the columns {', '.join(missing)}")
            for row in reader:
                if None in row or None in row.values():
                    raise InvalidOption(f"{path}, line {reader.line_num}: not as many cells as there are columns")
                yield reader.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidOption(f"cannot read {path}: {error}") from error


def measure_choices(
    choices: Sequence[Choice],
    scorer: LogicScorer,
    vectors: Mapping[str, FloatArray],
    *,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Let the scorer choose the caption that scores highest for the image; the first of equals.

    Returns:
        `accuracy`, the same `per_kind` of true caption, both in percent, and the number of `questions`.
    """
    right: dict[str, list[bool]] = defaultdict(list)
    for choice in tracked(choices, progress):
        image = vectors[choice.image][None, :]
        scores = [float(score_all(scorer, caption, image)[0]) for caption in choice.captions]
        right[choice.kind].append(int(np.argmax(finite(scores))) == choice.correct)
    return {
        "accuracy": 100.0 * float(np.mean([*chain.from_iterable(right.values())])),
        "per_kind": {kind: 100.0 * float(np.mean(values)) for kind, values in sorted(right.items())},
        "questions": len(choices),
    }


def measure_recall(
    captions: Sequence[tuple[int, str]],
    scorer: LogicScorer,
    vectors: FloatArray,
    *,
    depth: int = DEPTH,
    progress: Progress | None = None,
) -> float:
    """Percent of captions whose image (a row of `vectors`) is among the first `depth`."""
    before = [
        standing_before(score_all(scorer, caption, vectors), image) for image, caption in tracked(captions, progress)
    ]
    return 100.0 * float(np.mean(np.array(before) < depth))


def choices_text(result: Mapping[str, Any]) -> str:
    """Multiple-choice accuracy by kind, and recall where it was measured, for a terminal."""
    choices, recall = result["choices"], result["recall_at_5"]
    kinds = list(next(iter(choices.values()))["per_kind"])
    rows = [["percent", "all", *kinds, *([f"R@{DEPTH}"] if recall else [])]]
    for mode, report in choices.items():
        values = [report["accuracy"], *(report["per_kind"][kind] for kind in kinds)]
        rows.append([mode, *map(number_text, values + ([recall[mode]] if recall else []))])
    return aligned(rows)
