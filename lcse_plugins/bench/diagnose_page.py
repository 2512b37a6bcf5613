"""The diagnosis as text and as one HTML page."""

from __future__ import annotations

from lcse_plugins.bench.charts import bar_chart, heat_map, html_page, html_table, line_chart
from lcse_plugins.bench.diagnose import QUADRANTS, Diagnosis
from lcse_plugins.bench.tables import number_text

__all__ = ["diagnosis_page", "diagnosis_text"]


def diagnosis_text(found: Diagnosis) -> str:
    """The diagnosis for a terminal."""
    operators = list(found.quadrants)
    lines = [
        f"{found.images} images, {found.pairs} pairs of classes",
        f'"a X" finds images with X        AUC {found.detection_auc:.3f}',
        f'"no X" finds images without X    AUC {found.polarity_auc:.3f}   (0.5 is chance)',
        f'"a X" and "no X" rank alike      ρ   {found.polarity_correlation:.3f}',
        "",
        "where similarity is highest (deviations from the mean)",
        f"  {'':<9}" + "".join(f"{name:>10}" for name in QUADRANTS),
        *(f"  {op:<9}" + "".join(f"{found.quadrants[op][q]:>10.2f}" for q in QUADRANTS) for op in operators),
        "",
        "how far a change of the text moves similarity (deviations)",
        *(f"  {kind:<14} {number_text(value, '.2f')}" for kind, value in found.sensitivity.items()),
        "",
        "text similarity explained by the concepts' (R²)",
        *(
            f"  {op:<9}" + "".join(f"  {name} {value:.2f}" for name, value in found.aggregator_fit[op].items())
            for op in operators
        ),
        "",
        "operator in the text vector:  coefficients of a, b | share explained | gain | alignment",
        *(
            f"  {op:<9} {found.vectors.span[op][0]:+.2f} {found.vectors.span[op][1]:+.2f} | "
            f"{found.vectors.span[op][2]:.2f} | {found.vectors.gain[op]:.2f} | {_aligned(found, op)}"
            for op in operators
        ),
        "",
        "AUC when the operator's displacement is amplified",
        *(
            f"  {op:<9}"
            + "".join(f"  ×{factor:g} {area:.2f}" for factor, area in found.vectors.amplification[op].items())
            for op in operators
        ),
        "",
        "gain in AUC over plain similarity, by how well the weaker concept is detected",
        *(
            f"  {label}  {row['queries']:>4.0f} queries"
            + "".join(f"   {name} {value:+.3f}" for name, value in row.items() if name != "queries")
            for label, row in found.gain_by_quality.items()
        ),
    ]
    return "\n".join(lines)


def diagnosis_page(found: Diagnosis, *, title: str) -> str:
    """The diagnosis as one page with inline charts."""
    operators = list(found.quadrants)
    vectors = found.vectors
    polarity = {
        '"a X" → images with X': found.detection_auc,
        '"no X" → images without X': found.polarity_auc,
        'ρ of "a X" and "no X"': found.polarity_correlation,
    }
    modes = [name for name in next(iter(found.gain_by_quality.values())) if name != "queries"]
    return html_page(
        title,
        [
            (
                "Polarity",
                "An encoder that heard “no” would rank images without the thing first, unlike those of “a X”.",
                bar_chart("area under the curve, and rank correlation", polarity),
            ),
            (
                "Quadrants",
                "Mean similarity of each query to images that show both things, one, or none. A logical scorer is "
                "highest where the query is true; a bag of concepts is highest at “both”, whatever was asked.",
                heat_map(
                    "deviations from the mean over images",
                    operators,
                    QUADRANTS,
                    [[found.quadrants[op][q] for q in QUADRANTS] for op in operators],
                ),
            ),
            (
                "Sensitivity",
                "How far similarity moves when the text changes. An operator swap changes the meaning as much as "
                "anything can, and should not look like a paraphrase.",
                bar_chart(
                    "mean absolute change, in deviations",
                    {kind: value for kind, value in found.sensitivity.items() if value is not None},
                ),
            ),
            (
                "Aggregation",
                "R² of the text's similarity on the mean, minimum and maximum of its concepts' similarities.",
                heat_map(
                    "R²",
                    operators,
                    ["mean", "min", "max"],
                    [list(found.aggregator_fit[op].values()) for op in operators],
                ),
            ),
            (
                "Operators in the text vector",
                "Coefficients of the two concepts in the text vector, the share of it they explain, how long the rest "
                "is (gain), and whether the displacement points where the answers are (alignment), beside three "
                "that do not exclude these concepts: a random one, that of a pair with neither, a paraphrase's.",
                html_table(
                    ["operator", "a", "b", "explained", "gain", "alignment, and of the three"],
                    [
                        [op, *(f"{x:.2f}" for x in vectors.span[op]), f"{vectors.gain[op]:.2f}", _aligned(found, op)]
                        for op in operators
                    ],
                ),
            ),
            (
                "Amplification",
                "If the operator were there but weak, amplifying its displacement would help.",
                line_chart(
                    "AUC by factor",
                    {op: list(vectors.amplification[op].items()) for op in operators},
                    x_label="factor on the operator's displacement",
                    y_label="AUC",
                ),
            ),
            (
                "Gain by quality of evidence",
                "Logic outside the encoder helps where the encoder sees the concepts.",
                html_table(
                    ["AUC of the weaker concept", "queries", *modes],
                    [
                        [label, f"{row['queries']:.0f}", *(f"{row[name]:+.3f}" for name in modes)]
                        for label, row in found.gain_by_quality.items()
                    ],
                ),
            ),
        ],
    )


def _aligned(found: Diagnosis, operator: str) -> str:
    if operator not in found.vectors.alignment:
        return "–"
    nulls = "".join(f"   {name} {number_text(value, '+.2f')}" for name, value in found.vectors.nulls[operator].items())
    return f"{found.vectors.alignment[operator]:+.2f}{nulls}"
