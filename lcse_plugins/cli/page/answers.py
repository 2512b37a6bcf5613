"""What the page is told, as JSON values: the query as read, the results, and the reason for each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from lcse_plugins.cli.arithmetic import arithmetic
from lcse_plugins.cli.page.collections import location_of
from lcse_plugins.images.keys import holds_picture
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate, ConceptEvidence, Ranked, Ranking

__all__ = ["answer_of", "browse_answer"]


def answer_of(ranking: Ranking, encoded: EncodedQuery) -> dict[str, Any]:
    """A ranking: `Ranking.to_json` with names, paths, lines for people and the arithmetic."""
    answer = ranking.to_json()
    answer["summary"] = ranking.summary
    answer["results"] = [_result(result, encoded) for result in ranking]
    return answer


def browse_answer(candidates: Iterable[tuple[Candidate, float | None]], summary: str) -> dict[str, Any]:
    """Pictures without a query: in their own order, or by how alike they are to an example."""
    results = []
    for candidate, alike in candidates:
        line = "" if alike is None else f"alike: {alike:.2f}"
        about: dict[str, Any] = {
            "line": line,
            "evidence": [],
            "arithmetic": [],
            "score": alike,
            "truth": None,
            "satisfies": None,
        }
        results.append({**_names(candidate), **about, "alt": f"{_name(candidate)} {line}".strip()})
    return {"query": "", "tree": None, "notes": [], "sure": True, "error": None, "summary": summary, "results": results}


def _result(result: Ranked, encoded: EncodedQuery) -> dict[str, Any]:
    shows = ", ".join(f"{item.concept} {item.word}" for item in result.evidence)
    return {
        **result.to_json(),
        **_names(result.candidate),
        "line": result.reason,
        "alt": f"{_name(result.candidate)}: {shows}",
        "evidence": [_evidence(item) for item in result.evidence],
        "arithmetic": arithmetic(encoded, result),
    }


def _evidence(item: ConceptEvidence) -> dict[str, Any]:
    share = item.probability if item.presence is None else item.presence
    return {**item.to_json(), "label": item.label, "text": item.seen, "fits": item.fits, "share": share}


def _names(candidate: Candidate) -> dict[str, Any]:
    place = location_of(candidate)
    path = None if place is None or holds_picture(place) else str(place)
    return {"id": str(candidate.id), "name": _name(candidate), "path": path}


def _name(candidate: Candidate) -> str:
    place = location_of(candidate)
    named = candidate.id if place is None or holds_picture(place) else place
    return PurePath(str(named)).name or str(candidate.id)
