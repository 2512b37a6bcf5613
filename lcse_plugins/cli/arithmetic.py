"""The arithmetic of one score, in lines that can be checked by hand."""

from __future__ import annotations

from lcse_plugins.query import And, Concept, Not, Or, Query
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Ranked

__all__ = ["arithmetic"]


def arithmetic(encoded: EncodedQuery, result: Ranked) -> list[str]:
    """How the score of a result came about, step by step."""
    mu, beta, config = encoded.calibration.mu, encoded.calibration.beta, encoded.config
    if encoded.edits_nothing:
        seen = [f"{item.label:<12} similarity {item.similarity:.4f}" for item in result.evidence]
        return [*seen, f"{'score':<12} {result.score:.4f}, the plain similarity: no logic changes it"]
    in_order = config.aggregator == "minmax" and config.mode in ("anchored", "factored")
    lines = [f"μ = {mu:g}, β = {beta:g}, mode {config.mode}", ""]
    counted: dict[str, float] = {}
    for item in result.evidence:
        value = 2 * mu - item.similarity if item.negated else item.similarity
        counted[item.concept] = item.similarity
        said = f"{item.label:<12} s = {item.similarity:.4f}"
        if in_order:
            lines.append(f"{said}, counts as {'2μ - s = ' if item.negated else ''}{value:.4f}")
        else:
            chance = 1 - item.probability if item.negated else item.probability
            lines.append(f"{said}, β(s - μ) = {beta * (item.similarity - mu):.3f}, counts as {chance:.4f}")
    if not in_order:
        return [
            *lines,
            f"{'truth':<12} {result.truth:.4f}, of all concepts together",
            f"{'plain similarity':<12} {result.holistic:.4f}",
            f"{'correction':<12} {result.correction:+.4f}, what the logic adds",
            f"{'score':<12} {result.holistic:.4f} {result.correction:+.4f} = {result.score:.4f}",
        ]
    logic = _combined(encoded.tree, counted, mu)
    lines.append(f"{'logic':<12} {logic:.4f}: AND takes the smallest, OR the largest")
    if config.mode == "factored":
        return [*lines, f"{'score':<12} {result.score:.4f}, the logic alone"]
    plain = 2 * result.score - logic
    meaning = (
        "similarity to what is wanted" if abs(plain - result.holistic) < 1e-4 else "mean of what the concepts count"
    )
    return [
        *lines,
        f"{'plain':<12} {plain:.4f}: {meaning}",
        f"{'score':<12} ({logic:.4f} + {plain:.4f}) / 2 = {result.score:.4f}",
    ]


def _combined(tree: Query, similarities: dict[str, float], mu: float) -> float:
    match tree:
        case Concept(text):
            return similarities[text]
        case Not(child):
            return 2 * mu - _combined(child, similarities, mu)
        case And(children):
            return min(_combined(child, similarities, mu) for child in children)
        case Or(children):
            return max(_combined(child, similarities, mu) for child in children)
        case _:  # concepts side by side, without an operator
            values = [_combined(child, similarities, mu) for child in tree.children]
            return sum(values) / len(values)
