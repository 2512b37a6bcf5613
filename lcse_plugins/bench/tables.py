"""Reports as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lcse_plugins.bench.factor import FactorReport
from lcse_plugins.bench.factor_file import FactorFile
from lcse_plugins.bench.negbench import ChoiceReport
from lcse_plugins.bench.phrasing import OPERATORS
from lcse_plugins.bench.retention import Retention
from lcse_plugins.bench.retrieval import RetrievalReport

__all__ = ["choices_text", "factor_text", "number_text", "retention_text", "retrieval_text"]


def retrieval_text(report: RetrievalReport) -> str:
    """P@10 / AUC by operator, and violations."""
    columns = [*report.questions, "mean"]
    rows = [["", *columns, "violations"]]
    for ranker, per in report.figures.items():
        cells = [f"{per[c].precision:.1f}/{per[c].auc:>5.1f}" for c in columns]
        wrong = per["mean"].violations
        rows.append([ranker, *cells, "" if wrong is None else f"{wrong:.1f}%"])
    lines = [
        f"{report.images} images, {sum(report.questions.values())} queries; P@10 / AUC in percent; "
        "violations: of the first ten, how many show what was excluded",
        _aligned(rows),
    ]
    if report.misread:
        lines.append(f"the parser read {len(report.misread)} queries otherwise: {'; '.join(report.misread[:5])}")
    return "\n".join(lines)


def factor_text(reports: Mapping[str, FactorReport], file: FactorFile) -> str:
    """Accuracy by operator, on compound and nested queries, and how often equivalents were scored apart, by kind."""
    known = "the published file, v1.0" if file.official else f"NOT the published file (sha256 {file.sha256[:12]}…)"
    some = next(iter(reports.values()))
    scored = str(some.samples) if some.samples == len(file.samples) else f"{some.samples} of {len(file.samples)}"
    operators = dict.fromkeys((*OPERATORS, *some.accuracy))
    counts = [f"{count} concepts" for count in some.compound]
    rows = [["", *operators, "overall", "nested", *counts]]
    for name, report in reports.items():
        values = [*(report.accuracy.get(operator) for operator in operators), report.overall, report.nested]
        rows.append([name, *map(number_text, [*values, *report.compound.values()])])
    lines = [f"{scored} samples; {known}; percent", _aligned(rows)]
    if some.violations:
        apart = [[name, *map(number_text, report.violations.values())] for name, report in reports.items()]
        lines += ["", "equivalent captions scored apart; percent", _aligned([["", *some.violations], *apart])]
    return "\n".join(lines)


def retention_text(report: Retention) -> str:
    """Recall and rank correlation by mode."""
    rows = [["", "R@1", "R@5", "R@10", "ρ without logic", "ρ all"]]
    for mode, recall in report.recall.items():
        alike = [number_text(report.correlation[mode], ".4f"), f"{report.correlation_all[mode]:.4f}"]
        rows.append([mode, *map(number_text, recall.values()), *alike])
    heading = (
        f"{report.captions} captions, {report.constrained} of them with logic; percent, and ρ with plain similarity"
    )
    return f"{heading}\n{_aligned(rows)}"


def choices_text(reports: Mapping[str, ChoiceReport], recall: Mapping[str, float]) -> str:
    """Multiple-choice accuracy by kind, and recall where it was measured."""
    kinds = list(next(iter(reports.values())).per_kind)
    rows = [["", "all", *kinds, *(["R@5"] if recall else [])]]
    for name, report in reports.items():
        found = [recall[name]] if recall else []
        rows.append([name, *map(number_text, [report.accuracy, *(report.per_kind[kind] for kind in kinds), *found])])
    return _aligned(rows)


def number_text(value: float | None, form: str = ".1f") -> str:
    """The number, or a dash where there is none."""
    return "–" if value is None else f"{value:{form}}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines with columns as wide as their widest cell: the first to the left, the others to the right."""
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(
        f"{row[0]:<{first}}" + "".join(f"{cell:>{width + 2}}" for cell, width in zip(row[1:], others, strict=True))
        for row in rows
    )
