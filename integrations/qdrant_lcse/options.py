"""The options of a query, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, TypedDict

from qdrant_client import models

from lcse_plugins.errors import InvalidOption
from lcse_plugins.scoring.arguments import check_count, check_limits, is_whole

__all__ = ["Options", "QueryOptions", "WithPayload", "WithVectors"]

WithPayload: TypeAlias = bool | list[str] | models.PayloadSelectorInclude | models.PayloadSelectorExclude
WithVectors: TypeAlias = bool | list[str]

_SELECTORS = (models.PayloadSelectorInclude, models.PayloadSelectorExclude)


class QueryOptions(TypedDict, total=False):
    """The keyword arguments of `LogicSearch.query`.

    Attributes:
        limit: how many points to return; by default the search's own.
        min_truth: leave out points for which the query holds less than this, in [0, 1].
        query_filter: only points that pass it.
        exact: search deeper until the result is proved complete, or all points have been scored.
        candidates: how many points to score, shared among the candidate searches; by default as many as find
            nearly all of the best, which grows with `limit`.
        offset: skip this many of the best.
        score_threshold: leave out points whose score is lower.
        with_payload: which payload to return.
        with_vectors: which vectors to return.
        search_params: how candidates are searched; replaces the beam that is chosen for the query.
        using: the vectors to search when the collection names them.
        shard_key_selector: the shards to search in a collection with keys of its own.
        consistency: how many replicas must agree.
        timeout: seconds for the whole query, from the moment its vectors are known.
    """

    limit: int | None
    min_truth: float | None
    query_filter: models.Filter | None
    exact: bool
    candidates: int | None
    offset: int
    score_threshold: float | None
    with_payload: WithPayload
    with_vectors: WithVectors
    search_params: models.SearchParams | None
    using: str | None
    shard_key_selector: Any
    consistency: Any
    timeout: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """`QueryOptions`, checked.

    Raises:
        InvalidOption: a value is out of its range.
    """

    limit: int = 10
    min_truth: float | None = None
    query_filter: models.Filter | None = None
    exact: bool = False
    candidates: int | None = None
    offset: int = 0
    score_threshold: float | None = None
    with_payload: WithPayload = True
    with_vectors: WithVectors = False
    search_params: models.SearchParams | None = None
    using: str | None = None
    shard_key_selector: Any = None
    consistency: Any = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        check_limits(self.limit, self.min_truth)
        check_count("limit", self.limit)
        if self.candidates is not None:
            check_count("candidates", self.candidates)
        if not is_whole(self.offset) or self.offset < 0:
            raise InvalidOption(f"offset is a whole number from 0 on, not {self.offset!r}")
        for name in ("timeout", "score_threshold"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise InvalidOption(f"{name} is a number, not {value!r:.80}")
        if self.timeout is not None and not self.timeout > 0:
            raise InvalidOption(f"timeout is a positive number of seconds, not {self.timeout!r}")
        for name, kind in (("query_filter", models.Filter), ("search_params", models.SearchParams)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidOption(f"{name} is a qdrant_client.models.{kind.__name__}, not {value!r:.80}")
        _check_choice("with_payload", self.with_payload, "keys", _SELECTORS)
        _check_choice("with_vectors", self.with_vectors, "names")

    @classmethod
    def read(cls, options: Mapping[str, Any], **defaults: Any) -> Options:
        """The options of a call, by their names; `defaults` stand for those that are missing or None.

        Raises:
            InvalidOption: there is no such option, or its value is out of range.
        """
        known = [option.name for option in fields(cls)]
        if unknown := sorted(set(options) - set(known)):
            raise InvalidOption(f"a query has no option {', '.join(unknown)}; it has {', '.join(known)}")
        given = {name: value for name, value in options.items() if value is not None or name not in defaults}
        return cls(**{**defaults, **given})

    @property
    def end(self) -> int:
        """Place after the last one to be returned."""
        return self.offset + self.limit


def _check_choice(name: str, value: object, parts: str, kinds: tuple[type, ...] = ()) -> None:
    """Refuse what chooses no parts of a point; None chooses none of them."""
    if isinstance(value, list | tuple):
        fits = all(isinstance(part, str) for part in value)
    else:
        fits = value is None or isinstance(value, (bool, *kinds))
    if not fits:
        raise InvalidOption(f"{name} is True, False or a list of {parts}, not {value!r:.80}")
