"""What a result says about itself in a host's metadata: the same keys in every host."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypedDict, cast

from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import canonical, leaves
from lcse_plugins.scoring.config import Mode
from lcse_plugins.scoring.results import Ranked, Ranking

__all__ = ["METADATA_KEY", "Fetched", "ResultDescriber", "ResultMetadata", "fetched_by", "read_result_metadata"]

METADATA_KEY = "lcse"
"""Metadata key under which a result describes itself."""

Fetched: TypeAlias = Literal["logic", "words"]
"""How candidates were fetched: by the logic of the query, or by its words as any other search does."""


class ResultMetadata(TypedDict, total=False):
    """What a result says about itself, as JSON values; `missing` replaces everything from `score` to `evidence`."""

    id: str | None  # of the document or node; None if its host gave it none
    score: float  # what it was ranked by
    holistic: float  # its ordinary similarity to the query
    correction: float  # what the logic added to that
    truth: float  # how well it satisfies the query, in [0, 1]
    satisfied: bool  # whether it satisfies the query
    evidence: list[dict[str, Any]]  # per concept: concept, negated, similarity, probability, presence and word
    missing: str  # why it could not be ranked
    reason: str  # one plain line, such as "dog: clear · no person: not seen"
    parse: dict[str, Any]  # how the query was read
    sure: bool  # whether that reading is sure
    mode: Mode  # how it was scored
    exact: bool  # whether it is proved that nothing else of the source belongs here; never after a mere reranking
    fetched: Fetched  # how it was found
    summary: str  # how many results of the list satisfy the query, in a sentence
    notes: list[str]  # what a person should know


class ResultDescriber:
    """Describes the results of one ranking; the descriptions share nothing that could be changed."""

    def __init__(self, ranking: Ranking, *, fetched: Fetched) -> None:
        about = {
            "parse": ranking.parse.to_json(),
            "sure": ranking.parse.sure,
            "mode": ranking.mode,
            "exact": ranking.exact,
            "fetched": fetched,
            "summary": ranking.summary,
            "notes": [*ranking.parse.notes, *_warning(ranking.parse, fetched)],
        }
        self._about = json.dumps(about)

    def ranked(self, result: Ranked, result_id: str | None) -> ResultMetadata:
        """The metadata of a result, with the id that its host knows it by."""
        told = {**result.to_json(), "id": result_id, "satisfied": result.satisfies, "reason": result.reason}
        del told["satisfies"]
        return cast(ResultMetadata, {**told, **json.loads(self._about)})

    def missing(self, fault: object, result_id: str | None) -> ResultMetadata:
        """The metadata of what could not be ranked."""
        told = {"id": result_id, "missing": str(fault), "reason": "it could not be ranked"}
        return cast(ResultMetadata, {**told, **json.loads(self._about)})


def read_result_metadata(metadata: Mapping[str, Any]) -> ResultMetadata | None:
    """What a result says about itself; None if it says nothing. A store may have kept it as a JSON text.

    Raises:
        InvalidCandidate: what stands there was not written by this package, or was damaged.
    """
    told = metadata.get(METADATA_KEY)
    if told is None:
        return None
    try:
        told = json.loads(told) if isinstance(told, str) else told
    except ValueError:
        told = None
    match told:
        case {"reason": str(), "parse": {"tree": _}, "notes": [*notes]} if all(isinstance(one, str) for one in notes):
            return cast(ResultMetadata, told)
    raise InvalidCandidate(f"metadata[{METADATA_KEY!r}] was not written by this package; remove it")


def fetched_by(metadata: Iterable[Mapping[str, Any]], query: str) -> Fetched:
    """How candidates were fetched, by what they say themselves: by logic if all were, for the same query."""
    told = [known.get(METADATA_KEY) for known in metadata]
    said = {
        (one.get("fetched"), one.get("parse", {}).get("query")) if isinstance(one, Mapping) else None for one in told
    }
    return "logic" if said == {("logic", query)} else "words"


def _warning(parse: Parse, fetched: Fetched) -> list[str]:
    excluded = dict.fromkeys(leaf.text for leaf, negated in leaves(canonical(parse.query)) if negated)
    if fetched == "logic" or not excluded:
        return []
    return [
        "these candidates were fetched by the words of the query, which favours what it excludes "
        f"({', '.join(excluded)}); LogicRetriever fetches by its logic, from an index that holds vectors of "
        "the same encoder"
    ]
