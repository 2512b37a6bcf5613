"""A ranking in words and as JSON values: what the command line prints and the page is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from lcse_plugins.hosts.payloads import read_payload
from lcse_plugins.images.keys import holds_picture, picture_in
from lcse_plugins.images.locations import ImageLocation
from lcse_plugins.query import And, Concept, Not, Or, Query
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.logic import probability
from lcse_plugins.scoring.results import Candidate, ConceptEvidence, Ranked, Ranking


def count_satisfying(encoded: EncodedQuery, pool: VectorPool, min_truth: float | None = None) -> int:
    """How many pictures of the whole pool satisfy the query."""
    similarities = pool.similarities(encoded, slice(None))
    _, logits = encoded.score_similarities(similarities)
    return int(encoded.satisfied(similarities, probability(logits), min_truth=min_truth).sum())


def summary_of(ranking: Ranking, satisfying: int | None) -> str:
    """Where the answer ends, in a sentence; `satisfying` counts the whole collection, where that is known."""
    if satisfying is None or satisfying <= ranking.satisfied:
        return ranking.summary
    return f"{satisfying:,} pictures satisfy this; {ranking.satisfied} of them are shown."


def answer_of(ranking: Ranking, encoded: EncodedQuery, satisfying: int | None = None) -> dict[str, Any]:
    """A ranking as the page takes it: `Ranking.to_json` with names, paths, lines for people and the arithmetic."""
    results = [_result(result, encoded) for result in ranking]
    told = {"satisfying": satisfying, "summary": summary_of(ranking, satisfying), "results": results}
    return {**ranking.to_json(), **told}


def browse_answer(candidates: Iterable[tuple[Candidate, float | None]], summary: str) -> dict[str, Any]:
    """Pictures without a query: in their own order, or by how alike they are to an example."""
    results = []
    for candidate, alike in candidates:
        line = "" if alike is None else f"alike: {alike:.2f}"
        named = _names(candidate)
        results.append(
            {**named, "line": line, "alt": f"{named['name']} {line}".strip(), "evidence": [], "score": alike}
        )
    return {"query": "", "tree": None, "notes": [], "summary": summary, "results": results}


def _result(result: Ranked, encoded: EncodedQuery) -> dict[str, Any]:
    names = _names(result.candidate)
    shows = ", ".join(f"{item.concept} {item.word}" for item in result.evidence)
    return {
        **result.to_json(),
        **names,
        "line": result.reason,
        "alt": f"{names['name']}: {shows}",
        "evidence": [_evidence(item) for item in result.evidence],
        "arithmetic": arithmetic(encoded, result),
    }


def _evidence(item: ConceptEvidence) -> dict[str, Any]:
    return {**item.to_json(), "label": item.label, "text": item.seen, "fits": item.fits}


def _names(candidate: Candidate) -> dict[str, Any]:
    place = location_of(candidate)
    path = None if place is None or holds_picture(place) else str(place)
    return {
        "id": str(candidate.id),
        "name": PurePath(path or str(candidate.id)).name or str(candidate.id),
        "path": path,
    }


def location_of(candidate: Candidate) -> ImageLocation | None:
    """Where a picture is: its payload is a path, or a record that names one."""
    if isinstance(candidate.payload, Mapping):
        stored = read_payload(candidate.payload)
        return picture_in({**stored.metadata, **stored.image})
    path: ImageLocation | None = candidate.payload
    return path


def arithmetic(encoded: EncodedQuery, result: Ranked) -> list[str]:
    """How the score of a result came about, in lines that can be checked by hand."""
    mu, beta, config = encoded.calibration.mu, encoded.calibration.beta, encoded.config
    if encoded.edits_nothing:
        seen = [_row(item.label, f"similarity {item.similarity:.4f}") for item in result.evidence]
        return [*seen, _row("score", f"{result.score:.4f}, the plain similarity: no logic changes it")]
    lines = [f"μ = {mu:g}, β = {beta:g}, mode {config.mode}", ""]
    if (config.mode, config.aggregator) != ("anchored", "minmax"):
        for item in result.evidence:
            chance = 1 - item.probability if item.negated else item.probability
            logit = beta * (item.similarity - mu)
            lines.append(_row(item.label, f"s = {item.similarity:.4f}, β(s - μ) = {logit:.3f}, counts as {chance:.4f}"))
        return [
            *lines,
            _row("truth", f"{result.truth:.4f}, of all concepts together"),
            _row("similarity", f"{result.holistic:.4f}, of the whole text"),
            _row("correction", f"{result.correction:+.4f}, what the logic adds"),
            _row("score", f"{result.holistic:.4f} {result.correction:+.4f} = {result.score:.4f}"),
        ]
    for item in result.evidence:
        counts = f"2μ - s = {2 * mu - item.similarity:.4f}" if item.negated else f"{item.similarity:.4f}"
        lines.append(_row(item.label, f"s = {item.similarity:.4f}, counts as {counts}"))
    logic = _combined(encoded.tree, {item.concept: item.similarity for item in result.evidence}, mu)
    lines.append(_row("logic", f"{logic:.4f}: AND takes the smallest, OR the largest"))
    plain = 2 * result.score - logic
    wanted = abs(plain - result.holistic) < 1e-4
    meaning = "similarity to what is wanted" if wanted else "mean of what the concepts count"
    return [
        *lines,
        _row("plain", f"{plain:.4f}: {meaning}"),
        _row("score", f"({logic:.4f} + {plain:.4f}) / 2 = {result.score:.4f}"),
    ]


def _row(name: str, text: str) -> str:
    return f"{name:<12} {text}"


def _combined(tree: Query, similarities: dict[str, float], mu: float) -> float:
    """What a tree counts where AND takes the smallest and OR the largest."""
    match tree:
        case Concept(text):
            return similarities[text]
        case Not(child):
            return 2 * mu - _combined(child, similarities, mu)
    values = [_combined(child, similarities, mu) for child in tree.children]
    match tree:
        case And():
            return min(values)
        case Or():
            return max(values)
        case _:  # concepts side by side, without an operator
            return sum(values) / len(values)
