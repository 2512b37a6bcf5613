"""The query tree and all that is done with it, in one place to import from.

`tree` has the nodes and their canonical form, `exchange` the forms in which trees travel.
"""

from lcse_plugins.exchange import FlatConcept, FlatQuery, Operator, from_flat, from_json, to_flat, to_json
from lcse_plugins.tree import (
    MAX_DEPTH,
    MAX_NODES,
    MAX_TEXT,
    And,
    Concept,
    Not,
    Or,
    Plain,
    Query,
    canonical,
    concepts,
    contradictions,
    describe,
    draw,
    format_query,
    has_logic,
    is_constrained,
    is_tree,
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
    "canonical",
    "concepts",
    "contradictions",
    "describe",
    "draw",
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
