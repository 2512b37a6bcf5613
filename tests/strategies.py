"""Generators for query trees and evidence, used by every property test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from lcse_plugins import And, Concept, Not, Or, Query
from lcse_plugins.query import Plain

NAMES = ("dog", "cat", "red car", "person", "umbrella")


def concept_nodes(names: Sequence[str] = NAMES) -> st.SearchStrategy[Query]:
    return st.sampled_from(names).map(Concept)


def trees(names: Sequence[str] = NAMES, *, max_leaves: int = 8, plain: bool = True) -> st.SearchStrategy[Query]:
    """Any tree over a few concept names."""

    def grow(children: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
        several = st.lists(children, min_size=1, max_size=4).map(tuple)
        kinds = [children.map(Not), several.map(And), several.map(Or)]
        return st.one_of(*kinds, several.map(Plain)) if plain else st.one_of(*kinds)

    return st.recursive(concept_nodes(names), grow, max_leaves=max_leaves)


def cosines(n: int, *, low: float = -1.0, high: float = 1.0) -> st.SearchStrategy[NDArray[np.float64]]:
    """(n,) similarities."""
    number = st.floats(float(np.float32(low)), float(np.float32(high)), allow_nan=False, width=32)
    return st.lists(number, min_size=n, max_size=n).map(lambda values: np.array(values, dtype=np.float64))


def evidence(n: int = 4, *, low: float = -1.0, high: float = 1.0) -> st.SearchStrategy[dict[str, NDArray[np.float64]]]:
    """Similarities of n images for every concept name."""
    return st.fixed_dictionaries({name: cosines(n, low=low, high=high) for name in NAMES})
