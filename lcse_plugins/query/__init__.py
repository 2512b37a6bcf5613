"""The query tree and all that is done with it, in one place to import from.

`nodes` has what trees are made of, `tree` what they mean, `exchange` the forms in which they travel.
"""

from lcse_plugins.query.exchange import FlatConcept, FlatQuery, Operator, from_flat, from_json, to_flat, to_json
from lcse_plugins.query.nodes import MAX_DEPTH, MAX_NODES, MAX_TEXT, And, Concept, Not, Or, Plain, Query, is_tree
from lcse_plugins.query.tree import (
    affirms_nothing,
    canonical,
    concepts,
    contradictions,
    describe,
    draw,
    excludes,
    format_query,
    has_logic,
    is_constrained,
    leaves,
    ordered,
)

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "MAX_TEXT",
    "And",
    "Concept",
    "FlatConcept",
    "FlatQuery",
    "Not",
    "Operator",
    "Or",
    "Plain",
    "Query",
    "affirms_nothing",
    "canonical",
    "concepts",
    "contradictions",
    "describe",
    "draw",
    "excludes",
    "format_query",
    "from_flat",
    "from_json",
    "has_logic",
    "is_constrained",
    "is_tree",
    "leaves",
    "ordered",
    "to_flat",
    "to_json",
]
