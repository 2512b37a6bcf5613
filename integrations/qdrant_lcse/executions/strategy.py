"""How the candidates of one query are searched."""

from __future__ import annotations

from dataclasses import dataclass

from qdrant_client import models

from lcse_plugins.encoders.protocol import FloatArray

__all__ = ["SearchStrategy"]


@dataclass(frozen=True, kw_only=True)
class SearchStrategy:
    """How to search.

    Attributes:
        searches: the candidate searches: (b, d) vectors of each, by the least product with which it ranks.
        params: for candidate searches; None leaves it to the collection.
        rescoring: for scoring candidates that are already chosen: over all of them, with full precision.
        exhaustive: whether candidate searches miss nothing.
        depth: how many points each candidate search fetches.
        verify_schema: whether to compare answers with what was learnt of the collection, and raise `StaleSchema`.
    """

    searches: tuple[FloatArray, ...]
    params: models.SearchParams | None
    rescoring: models.SearchParams | None
    exhaustive: bool
    depth: int
    verify_schema: bool = False
