"""What a user sees: the first ten images of a logical query, over labelled photographs.

For pairs of classes (a, b) each operator asks one query in English; the labels say which images answer it. Precision of
the first ten, the area under the curve, and how many of the first ten show what was excluded are averaged over queries.
The default mode's lead over each rival comes with a paired bootstrap interval: queries are drawn anew, operator by
operator, and both sides are judged on the same draw.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.bench.metrics import area_under_curve, best_first, precision_at
from lcse_plugins.bench.photographs import Progress
from lcse_plugins.bench.phrasing import OPERATORS, PHRASINGS, operator_answers, operator_tree, phrase
from lcse_plugins.bench.reports import aligned
from lcse_plugins.bench.rivals import Ranker
from lcse_plugins.calibrating.labelled import LabelledImages
from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.grammar import parse as parse_offline
from lcse_plugins.parsing.result import Parse, Parser, read_with
from lcse_plugins.query import Query, canonical, ordered

__all__ = ["Figures", "Lead", "Question", "RetrievalReport", "draw_questions", "measure_retrieval"]

FIRST = 10
DRAWS = 2_000
"""Bootstrap draws behind an interval."""

OURS = "anchored"


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
class Lead:
    """How far the default mode is ahead of a rival, in points, with the 95 % interval of a paired bootstrap."""

    precision: float
    precision_interval: tuple[float, float]
    auc: float
    auc_interval: tuple[float, float]


@dataclass(frozen=True)
class RetrievalReport:
    """The comparison.

    Attributes:
        figures: ranker → operator, or `mean` over operators → figures.
        leads: rival → the default mode's lead over it.
        questions: operator → number of queries.
        misread: queries that the parser read otherwise than they were meant.
        images: size of the collection.
    """

    figures: Mapping[str, Mapping[str, Figures]]
    leads: Mapping[str, Lead]
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
            "leads": {rival: asdict(lead) for rival, lead in self.leads.items()},
        }

    def to_text(self) -> str:
        """P@10 / AUC by operator, violations, and the leads, for a terminal."""
        columns = [*self.questions, "mean"]
        rows = [["", *columns, "violations"]]
        for ranker, per in self.figures.items():
            cells = [f"{per[c].precision:.1f}/{per[c].auc:>5.1f}" for c in columns]
            wrong = per["mean"].violations
            rows.append([ranker, *cells, "" if wrong is None else f"{wrong:.1f}%"])
        lines = [
            f"{self.images} images, {sum(self.questions.values())} queries; P@10 / AUC in percent; "
            "violations: of the first ten, how many show what was excluded",
            aligned(rows),
        ]
        if self.leads:
            lines += ["", f"lead of {OURS}, in points, with 95 % intervals"]
            lines.append(
                aligned([["over", "P@10", "AUC"], *([rival, *_told(lead)] for rival, lead in self.leads.items())])
            )
        if self.misread:
            lines.append(f"the parser read {len(self.misread)} queries otherwise: {'; '.join(self.misread[:5])}")
        return "\n".join(lines)


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
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    misread = []
    for done, question in enumerate(questions, start=1):
        parse = read_with(parser, question.text)
        if ordered(canonical(parse.query)) != ordered(canonical(question.tree)):
            misread.append(question.text)
        for name, rank in rankers.items():
            found[name].append(_judge(rank, parse, question))
        if progress is not None:
            progress(done, len(questions))
    operators = np.array([question.operator for question in questions])
    counts = {operator: int((operators == operator).sum()) for operator in dict.fromkeys(operators.tolist())}
    tables = {name: 100.0 * np.array(values) for name, values in found.items()}
    excluding = {question.operator for question in questions if question.excluded.any()}
    figures = {name: _figures(table, operators, excluding) for name, table in tables.items()}
    leads = {
        rival: _lead(tables[OURS] - table, operators)
        for rival, table in tables.items()
        if OURS in tables and not rival.startswith(OURS)
    }
    return RetrievalReport(figures, leads, counts, tuple(misread), len(questions[0].relevant))


def _judge(
    rank: Callable[[Parse], NDArray[np.floating]], parse: Parse, question: Question
) -> tuple[float, float, float]:
    scores = rank(parse)
    return (
        precision_at(scores, question.relevant, FIRST),
        area_under_curve(scores, question.relevant),
        float(question.excluded[best_first(scores)[:FIRST]].sum()) / FIRST,
    )


def _figures(table: NDArray[np.float64], operators: NDArray[np.str_], excluding: set[str]) -> dict[str, Figures]:
    """Operator → the means of its (n, 3) rows, and `mean`, in which every operator weighs the same."""
    figures = {}
    for operator in dict.fromkeys(operators.tolist()):
        precision, auc, violations = map(float, table[operators == operator].mean(axis=0))
        figures[operator] = Figures(precision, auc, violations if operator in excluding else None)
    strict = [f.violations for f in figures.values() if f.violations is not None]
    figures["mean"] = Figures(
        float(np.mean([f.precision for f in figures.values()])),
        float(np.mean([f.auc for f in figures.values()])),
        float(np.mean(strict)) if strict else None,
    )
    return figures


def _lead(differences: NDArray[np.float64], operators: NDArray[np.str_]) -> Lead:
    """The mean lead over operators of (n, 3) paired differences, and where 95 % of the draws lie."""
    rng = np.random.default_rng(0)
    draws, centre = np.zeros((DRAWS, 2)), np.zeros(2)
    names = list(dict.fromkeys(operators.tolist()))
    for operator in names:
        rows = differences[operators == operator, :2]
        chosen = rng.integers(0, len(rows), (DRAWS, len(rows)))
        draws += rows[chosen].mean(axis=1) / len(names)
        centre += rows.mean(axis=0) / len(names)
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    return Lead(float(centre[0]), (float(low[0]), float(high[0])), float(centre[1]), (float(low[1]), float(high[1])))


def _told(lead: Lead) -> list[str]:
    return [
        f"{value:+.1f} ({low:+.1f} to {high:+.1f})"
        for value, (low, high) in ((lead.precision, lead.precision_interval), (lead.auc, lead.auc_interval))
    ]


def _excluded(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    nothing = np.zeros_like(a)
    return {"NOT": a, "AND": nothing, "OR": nothing, "BUT_NOT": b, "NEITHER": a | b}
