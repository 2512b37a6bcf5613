"""What a user sees: the first ten images of a logical query, over labelled photographs.

For pairs of classes (a, b) each operator asks one query in English; the labels say which images answer it. Precision of
the first ten, the area under the curve, and how many of the first ten show what was excluded are averaged over queries.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.bench.metrics import area_under_curve, best_first, precision_at
from lcse_plugins.bench.photographs import Progress
from lcse_plugins.bench.phrasing import OPERATORS, PHRASINGS, operator_answers, operator_tree, phrase
from lcse_plugins.bench.rivals import Ranker
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.grammar import parse as parse_offline
from lcse_plugins.parsing.result import Parse, Parser, read_with
from lcse_plugins.query import Query, canonical, ordered

__all__ = ["Figures", "Question", "RetrievalReport", "draw_questions", "measure_retrieval"]

FIRST = 10


@dataclass(frozen=True, eq=False)
class Question:
    """One query and its answer.

    Attributes:
        operator: which logic it states.
        text: the query in English.
        tree: what it means.
        relevant: (n,) whether an image answers it.
        excluded: (n,) whether an image shows something the query excludes.
    """

    operator: str
    text: str
    tree: Query
    relevant: NDArray[np.bool_]
    excluded: NDArray[np.bool_]


@dataclass(frozen=True)
class Figures:
    """Means over queries, in percent.

    Attributes:
        precision: of the first ten.
        auc: chance that an answer ranks above another image.
        violations: of the first ten, how many show what was excluded; None where nothing is.
    """

    precision: float
    auc: float
    violations: float | None


@dataclass(frozen=True)
class RetrievalReport:
    """The comparison.

    Attributes:
        figures: ranker → operator, or `mean` over operators → figures.
        questions: operator → number of queries.
        misread: queries that the parser read otherwise than they were meant.
        images: size of the collection.
    """

    figures: Mapping[str, Mapping[str, Figures]]
    questions: Mapping[str, int]
    misread: tuple[str, ...]
    images: int

    def rows(self) -> list[dict[str, Any]]:
        """One flat row for each ranker and operator, for a table."""
        return [
            {"ranker": ranker, "operator": operator, "p_at_10": f.precision, "auc": f.auc, "violations": f.violations}
            for ranker, per_operator in self.figures.items()
            for operator, f in per_operator.items()
        ]

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "images": self.images,
            "questions": dict(self.questions),
            "misread": list(self.misread),
            "rows": self.rows(),
        }


def draw_questions(images: LabelledImages, *, pairs: int = 250, fewest: int = 5, seed: int = 0) -> list[Question]:
    """Queries over pairs of classes, the same for the same seed.

    Args:
        images: Labelled images.
        pairs: At most this many pairs, drawn at random.
        fewest: Every query has at least this many answers and as many other images.
        seed: Of the draw and of the phrasings.

    Raises:
        InvalidOption: no pair of classes has enough images of every kind.
    """
    shown = images.labels.T
    fitting = [
        (a, b)
        for a, b in itertools.permutations(range(len(images.classes)), 2)
        if all(
            fewest <= int(answer.sum()) <= len(images) - fewest
            for answer in operator_answers(shown[a], shown[b]).values()
        )
    ]
    if not fitting:
        raise InvalidOption(f"no two classes have {fewest} images of every kind (both, one, none); label more images")
    rng = np.random.default_rng(seed)
    chosen = [fitting[i] for i in sorted(rng.permutation(len(fitting))[:pairs])]
    questions = []
    for operator in OPERATORS:
        for a, b in chosen:
            one, other = images.classes[a], images.classes[b]
            pattern = PHRASINGS[operator][int(rng.integers(len(PHRASINGS[operator])))]
            questions.append(
                Question(
                    operator=operator,
                    text=phrase(pattern, one, other),
                    tree=operator_tree(operator, one, other),
                    relevant=operator_answers(shown[a], shown[b])[operator],
                    excluded=_excluded(shown[a], shown[b])[operator],
                )
            )
    return questions


def measure_retrieval(
    questions: Sequence[Question],
    rankers: Mapping[str, Ranker],
    *,
    parser: Parser = parse_offline,
    progress: Progress | None = None,
) -> RetrievalReport:
    """Ask every question of every ranker.

    Args:
        questions: What to ask.
        rankers: Name → (n,) scores for a query.
        parser: Reads the English of the questions.
        progress: Called with (done, total).
    """
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    misread = []
    for done, question in enumerate(questions, start=1):
        parse = read_with(parser, question.text)
        if ordered(canonical(parse.query)) != ordered(canonical(question.tree)):
            misread.append(question.text)
        for name, rank in rankers.items():
            found[name, question.operator].append(_judge(rank, parse, question))
        if progress is not None:
            progress(done, len(questions))
    counts = {op: sum(q.operator == op for q in questions) for op in dict.fromkeys(q.operator for q in questions)}
    figures = {name: _figures({op: found[name, op] for op in counts}, questions) for name in rankers}
    return RetrievalReport(figures, counts, tuple(misread), len(questions[0].relevant))


def _judge(
    rank: Callable[[Parse], NDArray[np.floating]], parse: Parse, question: Question
) -> tuple[float, float, float]:
    scores = rank(parse)
    return (
        precision_at(scores, question.relevant, FIRST),
        area_under_curve(scores, question.relevant),
        float(question.excluded[best_first(scores)[:FIRST]].sum()) / FIRST,
    )


def _figures(
    found: Mapping[str, Sequence[tuple[float, float, float]]], questions: Sequence[Question]
) -> dict[str, Figures]:
    excluding = {question.operator for question in questions if question.excluded.any()}
    figures = {}
    for operator, values in found.items():
        precision, auc, violations = (100.0 * float(x) for x in np.mean(values, axis=0))
        figures[operator] = Figures(precision, auc, violations if operator in excluding else None)
    strict = [f.violations for f in figures.values() if f.violations is not None]
    figures["mean"] = Figures(
        float(np.mean([f.precision for f in figures.values()])),
        float(np.mean([f.auc for f in figures.values()])),
        float(np.mean(strict)) if strict else None,
    )
    return figures


def _excluded(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    nothing = np.zeros_like(a)
    return {"NOT": a, "AND": nothing, "OR": nothing, "BUT_NOT": b, "NEITHER": a | b}
