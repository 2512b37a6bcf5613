"""Reports as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from lcse_plugins.bench.factor import FactorFile, FactorReport
from lcse_plugins.bench.negbench import ChoiceReport
from lcse_plugins.bench.phrasing import OPERATORS
from lcse_plugins.bench.retention import Retention
from lcse_plugins.bench.retrieval import RetrievalReport

__all__ = ["choices_text", "factor_text", "number_text", "retention_text", "retrieval_text"]

NAME = 28


def retrieval_text(report: RetrievalReport) -> str:
    """P@10 / AUC by operator, and violations."""
    columns = [*report.questions, "mean"]
    lines = [
        f"{report.images} images, {sum(report.questions.values())} queries; P@10 / AUC in percent; "
        "violations: of the first ten, how many show what was excluded",
        f"{'':<{NAME}}" + "".join(f"{column:>13}" for column in columns) + f"{'violations':>12}",
    ]
    for ranker, per in report.figures.items():
        cells = "".join(f"{per[c].precision:>7.1f}/{per[c].auc:>5.1f}" for c in columns)
        wrong = per["mean"].violations
        lines.append(f"{ranker:<{NAME}}{cells}" + ("" if wrong is None else f"{wrong:>11.1f}%"))
    if report.misread:
        lines.append(f"the parser read {len(report.misread)} queries otherwise: {'; '.join(report.misread[:5])}")
    return "\n".join(lines)


def factor_text(reports: Mapping[str, FactorReport], file: FactorFile) -> str:
    """Accuracy by operator, violations of equivalences, compound and nested queries."""
    known = "the published file, v1.0" if file.official else f"NOT the published file (sha256 {file.sha256[:12]}…)"
    count = next((report.samples for report in reports.values()), 0)
    scored = str(count) if count == len(file.samples) else f"{count} of {len(file.samples)}"
    lines = [
        f"{scored} samples; {known}; percent",
        f"{'':<{NAME}}"
        + "".join(f"{op:>9}" for op in OPERATORS)
        + f"{'overall':>9}{'violate':>9}{'nested':>8}  compound",
    ]
    for name, report in reports.items():
        cells = "".join(f"{number_text(report.accuracy.get(op)):>9}" for op in OPERATORS)
        compound = "  ".join(f"{count}: {value:.1f}" for count, value in report.compound.items())
        lines.append(
            f"{name:<{NAME}}{cells}{number_text(report.overall):>9}{number_text(report.violations.get('all')):>9}"
            f"{number_text(report.nested):>8}  {compound}"
        )
    return "\n".join(lines)


def retention_text(report: Retention) -> str:
    """Recall and rank correlation by mode."""
    lines = [
        f"{report.captions} captions, {report.constrained} of them with logic; percent, and ρ with plain similarity",
        f"{'':<{NAME}}{'R@1':>7}{'R@5':>7}{'R@10':>7}{'ρ without logic':>17}{'ρ all':>8}",
    ]
    for mode, recall in report.recall.items():
        lines.append(
            f"{mode:<{NAME}}"
            + "".join(f"{value:>7.1f}" for value in recall.values())
            + f"{number_text(report.correlation[mode], '.4f'):>17}{report.correlation_all[mode]:>8.4f}"
        )
    return "\n".join(lines)


def choices_text(reports: Mapping[str, ChoiceReport], recall: Mapping[str, float]) -> str:
    """Multiple-choice accuracy by kind, and recall where it was measured."""
    kinds = list(next(iter(reports.values())).per_kind) if reports else []
    lines = [f"{'':<{NAME}}{'all':>8}" + "".join(f"{kind:>12}" for kind in kinds) + (f"{'R@5':>8}" if recall else "")]
    for name in reports or recall:
        report = reports.get(name)
        cells = (
            ""
            if report is None
            else f"{report.accuracy:>8.1f}" + "".join(f"{report.per_kind[kind]:>12.1f}" for kind in kinds)
        )
        lines.append(f"{name:<{NAME}}{cells}" + (f"{recall[name]:>8.1f}" if name in recall else ""))
    return "\n".join(lines)


def number_text(value: float | None, form: str = ".1f") -> str:
    """The number, or a dash where there is none."""
    return "–" if value is None else f"{value:{form}}"
