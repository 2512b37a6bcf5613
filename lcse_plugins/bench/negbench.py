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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lcse_plugins.bench.metrics import finite, standing_before
from lcse_plugins.bench.photographs import Progress
from lcse_plugins.bench.reports import aligned, number_text
from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.errors import InvalidOption
from lcse_plugins.scorer import LogicScorer

__all__ = [
    "Choice",
    "ChoiceReport",
    "choices_text",
    "measure_choices",
    "measure_recall",
    "read_choices",
    "read_retrieval_captions",
]

OPTIONS = 4


@dataclass(frozen=True)
class Choice:
    """One question with four captions.

    Attributes:
        image: path as the file writes it.
        captions: the four.
        correct: position of the true one.
        kind: template of the true one, such as `negative`.
    """

    image: str
    captions: tuple[str, ...]
    correct: int
    kind: str


@dataclass(frozen=True)
class ChoiceReport:
    """Shares of right answers, in percent.

    Attributes:
        accuracy: over all questions.
        per_kind: by the template of the true caption.
        questions: how many.
    """

    accuracy: float
    per_kind: Mapping[str, float]
    questions: int

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {"accuracy": self.accuracy, "per_kind": dict(self.per_kind), "questions": self.questions}


def read_choices(path: str | Path) -> list[Choice]:
    """Read the multiple-choice file.

    Raises:
        InvalidOption: a column is missing, a row is damaged or there is none; the message names the line.
    """
    choices = []
    for line, row in _rows(path, "image_path", "correct_answer", *(f"caption_{i}" for i in range(OPTIONS))):
        correct = _whole_number(row["correct_answer"])
        if correct is None or not 0 <= correct < OPTIONS:
            raise InvalidOption(f"{path}, line {line}: correct_answer is 0 to 3, not {row['correct_answer']!r}")
        captions = tuple(row[f"caption_{i}"] for i in range(OPTIONS))
        if not all(map(str.strip, captions)):
            raise InvalidOption(f"{path}, line {line}: a caption is blank; each question has {OPTIONS}")
        choices.append(Choice(row["image_path"], captions, correct, row.get("correct_answer_template") or "all"))
    if not choices:
        raise InvalidOption(f"{path} holds no questions")
    return choices


def read_retrieval_captions(path: str | Path) -> list[tuple[str, str]]:
    """Read the retrieval file as pairs of image path and caption.

    Raises:
        InvalidOption: a column is missing, captions cannot be read or there are none; the message names the line.
    """
    pairs: list[tuple[str, str]] = []
    for line, row in _rows(path):
        image = row.get("filepath") or row.get("image_path")
        listed = row.get("captions", "")
        captions = _listed(listed) if listed.lstrip().startswith("[") else [listed or row.get("caption", "")]
        if not image or not captions or not all(isinstance(text, str) and text.strip() for text in captions):
            raise InvalidOption(
                f"{path}, line {line}: a row has `filepath` and `captions`, a text or a list of texts, none of them "
                f"blank; this one has {image or ''!r} and {listed or row.get('caption', '')!r:.80}"
            )
        pairs += [(image, caption) for caption in captions]
    if not pairs:
        raise InvalidOption(f"{path} holds no captions")
    return pairs


def measure_choices(
    choices: Sequence[Choice],
    scorer: LogicScorer,
    vectors: Mapping[str, FloatArray],
    *,
    progress: Progress | None = None,
) -> ChoiceReport:
    """Let the scorer choose: the caption that scores highest for the image; the first of equals."""
    right: dict[str, list[bool]] = defaultdict(list)
    for done, choice in enumerate(choices, start=1):
        scores = [_score(scorer, caption, vectors[choice.image]) for caption in choice.captions]
        right[choice.kind].append(int(np.argmax(finite(scores))) == choice.correct)
        if progress is not None:
            progress(done, len(choices))
    if not right:
        raise InvalidOption("there are no questions to answer")
    everything = [value for values in right.values() for value in values]
    return ChoiceReport(
        accuracy=100.0 * float(np.mean(everything)),
        per_kind={kind: 100.0 * float(np.mean(values)) for kind, values in sorted(right.items())},
        questions=len(everything),
    )


def measure_recall(
    captions: Sequence[tuple[int, str]],
    scorer: LogicScorer,
    vectors: FloatArray,
    *,
    depth: int = 5,
    progress: Progress | None = None,
) -> float:
    """Percent of captions whose image (a row of `vectors`) is among the first `depth`."""
    if not captions:
        raise InvalidOption("there are no captions to ask with")
    found = 0
    for done, (image, caption) in enumerate(captions, start=1):
        encoded = scorer.encode(caption)
        scores = encoded.score_similarities(vectors @ encoded.matrix.T)[0]
        found += standing_before(scores, image) < depth
        if progress is not None:
            progress(done, len(captions))
    return 100.0 * found / len(captions)


def choices_text(reports: Mapping[str, ChoiceReport], recall: Mapping[str, float]) -> str:
    """Multiple-choice accuracy by kind, and recall where it was measured, for a terminal."""
    kinds = list(next(iter(reports.values())).per_kind)
    rows = [["", "all", *kinds, *(["R@5"] if recall else [])]]
    for name, report in reports.items():
        found = [recall[name]] if recall else []
        rows.append([name, *map(number_text, [report.accuracy, *(report.per_kind[kind] for kind in kinds), *found])])
    return aligned(rows)


def _score(scorer: LogicScorer, caption: str, vector: FloatArray) -> float:
    encoded = scorer.encode(caption)
    return float(encoded.score_similarities((vector @ encoded.matrix.T)[None, :])[0][0])


def _listed(written: str) -> list[Any]:
    """A list as JSON or Python writes it; an empty one where it is neither."""
    for read in (json.loads, ast.literal_eval):
        try:
            return list(read(written))
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return []


def _whole_number(written: str) -> int | None:
    """The number, which some tools write as `2.0`; None if it is not a whole number."""
    try:
        number = float(written)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _rows(path: str | Path, *columns: str) -> list[tuple[int, dict[str, str]]]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise InvalidOption(f"{path} lacks the columns {', '.join(missing)}")
            rows = []
            for row in reader:
                if None in row or None in row.values():
                    raise InvalidOption(f"{path}, line {reader.line_num}: not as many cells as there are columns")
                rows.append((reader.line_num, row))
            return rows
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidOption(f"cannot read {path}: {error}") from error
