"""What a user sees: the first ten images of a logical query, over labelled photographs.

For pairs of classes (a, b) each operator asks one query in English; the labels say which images answer it. Precision of
the first ten, the area under the curve, and how many of the first ten show what was excluded are averaged over queries.
The default mode's lead over each rival comes with a paired bootstrap interval: queries are drawn anew, operator by
operator, and both sides are judged on the same draw.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.bench.metrics import area_under_curve, best_first
from lcse_plugins.bench.photographs import Progress, tracked
from lcse_plugins.bench.phrasing import OPERATORS, PHRASINGS, class_pairs, operator_answers, operator_tree, phrase
from lcse_plugins.bench.reports import Rows, aligned, number_text
from lcse_plugins.bench.rivals import Ranker
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.parsing.grammar import parse as parse_offline
from lcse_plugins.parsing.result import Parse, Parser, read_with
from lcse_plugins.query import Query, canonical, ordered

__all__ = ["Question", "draw_questions", "lead_rows", "measure_retrieval", "retrieval_rows", "retrieval_text"]

FIRST = 10
DRAWS = 2_000
"""Bootstrap draws behind an interval."""

OURS = "anchored"
"""The default mode, whose lead is measured."""


@dataclass(frozen=True, eq=False)
class Question:
    """One query, its tree, and which of the (n,) images answer it or show something it excludes."""

    operator: str
    text: str
    tree: Query
    relevant: NDArray[np.bool_]
    excluded: NDArray[np.bool_]


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

    def fits(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> bool:
        return all(fewest <= answer.sum() <= len(images) - fewest for answer in operator_answers(a, b).values())

    rng = np.random.default_rng(seed)
    chosen = class_pairs(images, fits, pairs, rng)
    questions = []
    for operator in OPERATORS:
        for first, second in chosen:
            names = images.classes[first], images.classes[second]
            a, b = images.labels[:, first], images.labels[:, second]
            excluded = {"NOT": a, "BUT_NOT": b, "NEITHER": a | b}.get(operator, np.zeros_like(a))
            pattern = PHRASINGS[operator][int(rng.integers(len(PHRASINGS[operator])))]
            tree, relevant = operator_tree(operator, *names), operator_answers(a, b)[operator]
            questions.append(Question(operator, phrase(pattern, *names), tree, relevant, excluded))
    return questions


def measure_retrieval(
    questions: Sequence[Question],
    rankers: Mapping[str, Ranker],
    *,
    parser: Parser = parse_offline,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Ask every question of every ranker; all figures in percent.

    Returns:
        The number of `images`; `questions` by operator; those that were `misread`; `rows`, one for each ranker and
        operator, and for the `mean` in which every operator weighs the same; `leads` of the default mode over others.
    """
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    misread = []
    for question in tracked(questions, progress):
        parse = read_with(parser, question.text)
        if ordered(canonical(parse.query)) != ordered(canonical(question.tree)):
            misread.append(question.text)
        for name, rank in rankers.items():
            found[name].append(_judge(rank, parse, question))
    places = {operator: [i for i, q in enumerate(questions) if q.operator == operator] for operator in OPERATORS}
    places = {operator: where for operator, where in places.items() if where}
    tables = {name: 100.0 * np.array(values) for name, values in found.items()}
    excluding = {question.operator for question in questions if question.excluded.any()}
    return {
        "images": len(questions[0].relevant),
        "questions": {operator: len(where) for operator, where in places.items()},
        "misread": misread,
        "rows": [row for name, table in tables.items() for row in _rows(name, table, places, excluding)],
        "leads": {
            rival: _lead(tables[OURS] - table, places)
            for rival, table in tables.items()
            if OURS in tables and not rival.startswith(OURS)
        },
    }


def _judge(rank: Ranker, parse: Parse, question: Question) -> tuple[float, float, float]:
    scores = rank(parse)
    first = best_first(scores)[:FIRST]
    hits, wrong = float(question.relevant[first].sum()), float(question.excluded[first].sum())
    return hits / FIRST, area_under_curve(scores, question.relevant), wrong / FIRST


def _rows(
    ranker: str, table: NDArray[np.float64], places: Mapping[str, list[int]], excluding: set[str]
) -> list[dict[str, Any]]:
    """A row for each operator, and one for their mean."""
    rows: list[dict[str, Any]] = []
    for operator, where in places.items():
        precision, auc, wrong = map(float, table[where].mean(axis=0))
        violations = wrong if operator in excluding else None
        rows.append(
            {"ranker": ranker, "operator": operator, "p_at_10": precision, "auc": auc, "violations": violations}
        )
    mean: dict[str, Any] = {"ranker": ranker, "operator": "mean"}
    for name in ("p_at_10", "auc", "violations"):
        values = [row[name] for row in rows if row[name] is not None]
        mean[name] = float(np.mean(values)) if values else None
    return [*rows, mean]


def _lead(differences: NDArray[np.float64], places: Mapping[str, list[int]]) -> dict[str, Any]:
    """The mean lead over operators of (n, 3) paired differences, and where 95 % of the draws lie."""
    rng = np.random.default_rng(0)
    draws, centre = np.zeros((DRAWS, 2)), np.zeros(2)
    for where in places.values():
        rows = differences[where, :2]
        chosen = rng.integers(0, len(rows), (DRAWS, len(rows)))
        draws += rows[chosen].mean(axis=1) / len(places)
        centre += rows.mean(axis=0) / len(places)
    (precision, auc), (low, high) = centre.tolist(), np.percentile(draws, [2.5, 97.5], axis=0).tolist()
    return {
        "precision": precision,
        "precision_interval": [low[0], high[0]],
        "auc": auc,
        "auc_interval": [low[1], high[1]],
    }


def retrieval_rows(result: Mapping[str, Any]) -> Rows:
    """P@10 / AUC by operator and violations, a row for each ranker."""
    columns = [*result["questions"], "mean"]
    rankers: dict[str, dict[str, Any]] = {}
    for row in result["rows"]:
        rankers.setdefault(row["ranker"], {})[row["operator"]] = row
    rows = [["P@10 / AUC, %", *columns, "violations"]]
    for name, per in rankers.items():
        cells = [f"{per[c]['p_at_10']:.1f} / {per[c]['auc']:.1f}" for c in columns]
        rows.append([name, *cells, number_text(per["mean"]["violations"])])
    return rows


def lead_rows(result: Mapping[str, Any]) -> Rows:
    """The default mode's lead over each rival, with its interval."""
    rows = [[f"lead of `{OURS}` over", "P@10, points", "AUC, points"]]
    for rival, lead in result["leads"].items():
        told = ((lead[name], *lead[f"{name}_interval"]) for name in ("precision", "auc"))
        rows.append([rival, *(f"{value:+.1f} ({low:+.1f} to {high:+.1f})" for value, low, high in told)])
    return rows


def retrieval_text(result: Mapping[str, Any]) -> str:
    """The comparison for a terminal."""
    asked = f"{result['images']} images, {sum(result['questions'].values())} queries"
    lines = [f"{asked}; violations: of the first ten, how many show what was excluded", aligned(retrieval_rows(result))]
    if result["leads"]:
        lines += ["", aligned(lead_rows(result))]
    if misread := result["misread"]:
        lines.append(f"the parser read {len(misread)} queries otherwise: {'; '.join(misread[:5])}")
    return "\n".join(lines)
