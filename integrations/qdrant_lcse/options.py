"""The options of a query, checked once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from typing import Any, TypeAlias, TypedDict, TypeVar

from qdrant_client import models

from lcse_plugins.errors import InvalidOption
from lcse_plugins.scoring.arguments import check_count, check_limits, is_whole

__all__ = ["Options", "QueryOptions", "with_options"]

WithPayload: TypeAlias = bool | list[str] | models.PayloadSelectorInclude | models.PayloadSelectorExclude
WithVectors: TypeAlias = bool | list[str]
MethodT = TypeVar("MethodT", bound=Callable[..., Any])

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "timeout": ((int, float), "a number of seconds"),
    "score_threshold": ((int, float), "a number"),
    "query_filter": ((models.Filter,), "a qdrant_client.models.Filter"),
    "search_params": ((models.SearchParams,), "a qdrant_client.models.SearchParams"),
    "with_payload": (
        (bool, list, tuple, models.PayloadSelectorInclude, models.PayloadSelectorExclude),
        "True, False or a list of keys",
    ),
    "with_vectors": ((bool, list, tuple), "True, False or a list of names"),
}


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

    limit: int
    min_truth: float | None
    using: str | None
    query_filter: models.Filter | None = None
    exact: bool = False
    candidates: int | None = None
    offset: int = 0
    score_threshold: float | None = None
    with_payload: WithPayload = True
    with_vectors: WithVectors = False
    search_params: models.SearchParams | None = None
    shard_key_selector: Any = None
    consistency: Any = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        check_limits(self.limit, self.min_truth)
        if self.candidates is not None:
            check_count("candidates", self.candidates)
        if not is_whole(self.offset) or self.offset < 0:
            raise InvalidOption(f"offset is a whole number from 0 on, not {self.offset!r}")
        for name, (kinds, said) in _KINDS.items():
            value = getattr(self, name)
            fits = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
            if isinstance(value, list | tuple):
                fits = fits and all(isinstance(part, str) for part in value)
            if value is not None and not fits:
                raise InvalidOption(f"{name} is {said}, not {value!r:.80}")
        if self.timeout is not None and not self.timeout > 0:
            raise InvalidOption(f"timeout is a positive number of seconds, not {self.timeout!r}")

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
        if isinstance(level := given.get("consistency"), str):
            given["consistency"] = models.ReadConsistencyType(level)  # gRPC takes no text
        return cls(**{**defaults, **given})

    @property
    def end(self) -> int:
        """Place after the last one to be returned."""
        return self.offset + self.limit


def with_options(method: MethodT) -> MethodT:
    """Name the options of a method in its signature, where `**options` hides them from those who inspect it."""
    own = signature(method)
    named = [
        Parameter(
            option.name,
            Parameter.KEYWORD_ONLY,
            default=None if option.name in ("limit", "min_truth", "using") else option.default,
            annotation=option.type,
        )
        for option in fields(Options)
    ]
    kept = [parameter for parameter in own.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
    method.__signature__ = own.replace(parameters=[*kept, *named])  # type: ignore[attr-defined]
    return method
