"""The account that a result gives of itself in a host's metadata: the same keys in every host."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypedDict, cast

from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import canonical, leaves
from lcse_plugins.scoring.config import Mode
from lcse_plugins.scoring.results import Ranked, Ranking

__all__ = ["METADATA_KEY", "Account", "Accounts", "Fetched", "fetched_by"]

METADATA_KEY = "lcse"
"""Metadata key of the account."""

Fetched: TypeAlias = Literal["logic", "words"]
"""How candidates were fetched: by the logic of the query, or by its words as any other search does."""


class Account(TypedDict, total=False):
    """What a result says of itself, as JSON values; `missing` stands instead of all from `score` to `reason`.

    Attributes:
        id: identity of the document or node; None if its host gave it none.
        score: what it was ranked by.
        holistic: its ordinary similarity to the query.
        correction: what the logic added to that.
        truth: how far the query holds for it, in [0, 1].
        evidence: per concept `concept`, `negated`, `similarity` and `probability`.
        reason: all this in words.
        missing: why it could not be ranked.
        parse: how the query was read.
        mode: how it was scored.
        exact: whether it is proved that nothing else of the source belongs here; never so after a mere reranking.
        fetched: how it was found, or the list it was ranked in.
        notes: what a person should know.
    """

    id: str | None
    score: float
    holistic: float
    correction: float
    truth: float
    evidence: list[dict[str, Any]]
    reason: str
    missing: str
    parse: dict[str, Any]
    mode: Mode
    exact: bool
    fetched: Fetched
    notes: list[str]


class Accounts:
    """Writes the accounts of one ranking, which share nothing that could be changed.

    Args:
        ranking: The ranking.
        fetched: How its candidates were found.
    """

    def __init__(self, ranking: Ranking, *, fetched: Fetched) -> None:
        about = {
            "parse": ranking.parse.to_json(),
            "mode": ranking.mode,
            "exact": ranking.exact,
            "fetched": fetched,
            "notes": [*ranking.parse.notes, *_warning(ranking.parse, fetched)],
        }
        self._about = json.dumps(about)

    def of(self, result: Ranked, result_id: str | None) -> Account:
        """The account of a result, by the id that its host knows it by."""
        told = {**result.to_json(), "id": result_id, "reason": result.reason}
        return cast(Account, {**told, **json.loads(self._about)})

    def of_missing(self, reason: object, result_id: str | None) -> Account:
        """The account of what could not be ranked."""
        return cast(Account, {"id": result_id, "missing": str(reason), **json.loads(self._about)})


def fetched_by(metadata: Iterable[Mapping[str, Any]], query: str) -> Fetched:
    """How candidates were fetched, by the accounts in their metadata: by logic if all were, for the same query."""
    accounts = [known.get(METADATA_KEY) for known in metadata]
    return "logic" if accounts and all(_says_logic(account, query) for account in accounts) else "words"


def _says_logic(account: Any, query: str) -> bool:
    match account:
        case {"fetched": "logic", "parse": {"query": asked}}:
            return bool(asked == query)
    return False


def _warning(parse: Parse, fetched: Fetched) -> list[str]:
    excluded = dict.fromkeys(leaf.text for leaf, negated in leaves(canonical(parse.query)) if negated)
    if fetched == "logic" or not excluded:
        return []
    return [
        "these candidates were fetched by the words of the query, which favours what it excludes "
        f"({', '.join(excluded)}); LogicRetriever fetches by its logic, from an index known to hold vectors of "
        "the same encoder"
    ]
