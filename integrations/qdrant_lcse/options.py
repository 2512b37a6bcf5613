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
    """The keyword arguments of `LogicSearch.query`, for `query_batch`."""

    limit: int
    query_filter: models.Filter | None
    candidates: int
    exact: bool
    min_truth: float | None
    offset: int
    with_payload: WithPayload
    with_vectors: WithVectors
    search_params: models.SearchParams | None
    timeout: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What `LogicSearch.query` was asked for.

    Raises:
        InvalidOption: a number is out of its range.
    """

    limit: int = 10
    query_filter: models.Filter | None = None
    candidates: int = 1000
    exact: bool = False
    min_truth: float | None = None
    offset: int = 0
    with_payload: WithPayload = True
    with_vectors: WithVectors = False
    search_params: models.SearchParams | None = None
    timeout: int | None = None

    def __post_init__(self) -> None:
        check_count("limit", self.limit)
        check_limits(None, self.min_truth)
        if not is_whole(self.offset) or self.offset < 0:
            raise InvalidOption(f"offset is a whole number from 0 on, not {self.offset!r}")
        check_count("candidates", self.candidates)
        if self.timeout is not None and (not is_whole(self.timeout) or self.timeout <= 0):
            raise InvalidOption(f"timeout is a positive whole number of seconds, not {self.timeout!r}")
        for name, kind in (("query_filter", models.Filter), ("search_params", models.SearchParams)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidOption(f"{name} is a qdrant_client.models.{kind.__name__}, not {value!r:.80}")
        _check_choice("with_payload", self.with_payload, "keys", _SELECTORS)
        _check_choice("with_vectors", self.with_vectors, "names")

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Options:
        """The options of a call, by their names.

        Raises:
            InvalidOption: there is no such option, or its value is out of range.
        """
        known = [option.name for option in fields(cls)]
        if unknown := sorted(set(options) - set(known)):
            raise InvalidOption(f"a query has no option {', '.join(unknown)}; it has {', '.join(known)}")
        return cls(**options)

    def depth(self, searches: int) -> int:
        """How many points each of several candidate searches fetches.

        It does not depend on `offset`, so that all pages are cut from the same candidates. A page of an `exact` query
        is proved by itself instead, which takes at least as many points as lie before its end.
        """
        return max(self.end if self.exact else self.limit, -(-self.candidates // searches))

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
