"""The query tree and all that is done with it, in one place to import from.

`tree` has its nodes and what they mean, `exchange` the forms in which it travels.
"""

from lcse_plugins.query.exchange import from_flat, from_json, to_flat, to_json
from lcse_plugins.query.tree import (
    MAX_DEPTH,
    MAX_NODES,
    MAX_TEXT,
    And,
    Concept,
    Group,
    Not,
    Or,
    Plain,
    Query,
    affirms_nothing,
    canonical,
    concepts,
    contradictions,
    describe,
    draw,
    excludes,
    fold,
    format_query,
    has_logic,
    is_constrained,
    is_tree,
    leaves,
    ordered,
    shape_of,
)

__all__ = [
    "MAX_DEPTH", "MAX_NODES", "MAX_TEXT", "And", "Concept", "Group", "Not", "Or", "Plain", "Query", "affirms_nothing",
    "canonical", "concepts", "contradictions", "describe", "draw", "excludes", "fold", "format_query", "from_flat",
    "from_json", "has_logic", "is_constrained", "is_tree", "leaves", "ordered", "shape_of", "to_flat", "to_json",
]  # fmt: skip
