"""What a language model is asked to reply: a flat list of numbered nodes, and its exact translation to a tree.

    {"nodes": [{"id": 0, "op": "and", "text": "", "children": [1, 2]},
               {"id": 1, "op": "concept", "text": "umbrella", "children": []},
               {"id": 2, "op": "not", "text": "", "children": [3]},
               {"id": 3, "op": "concept", "text": "person", "children": []}]}

Nothing refers to itself, every field is required and no other is allowed, so strict JSON-schema modes, function
calling and small servers all accept it, and any tree fits into it without loss. `WireFlat` is the paper's own
`{concepts, operator}` form, which `decode` reads as well. Types are pydantic's business; that the nodes make one
tree is checked here, with words a model can act on.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lcse_plugins.errors import ParserOutputError, QueryError, QueryTooComplex
from lcse_plugins.parsing.service.reply_json import reply_json, reply_text
from lcse_plugins.query import GROUPS, And, Concept, FlatQuery, Not, Operator, Or, Plain, Query, from_flat

__all__ = [
    "MAX_CONCEPT",
    "MAX_WIRE_NODES",
    "SCHEMA_VERSION",
    "WireConcept",
    "WireFlat",
    "WireNode",
    "WireQuery",
    "complaint",
    "decode",
    "encode",
    "from_wire",
    "to_wire",
    "wire_schema",
]

SCHEMA_VERSION = "1"
"""Part of the cache key: raised when the same reply would be read as another tree."""

MAX_WIRE_NODES = 64
"""Nodes in a reply. A query of twenty concepts needs about forty."""

MAX_CONCEPT = 200
"""Characters in one concept of a reply."""

NodeOp = Literal["concept", "not", "and", "or", "plain"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class WireNode(_Strict):
    """One node of the tree, named by its number."""

    id: Annotated[int, Field(description="Number of this node; no two nodes share one.")]
    op: Annotated[NodeOp, Field(description="What the node is.")]
    text: Annotated[str, Field(description="The words of a concept, taken from the query; empty for other nodes.")]
    children: Annotated[
        list[int],
        Field(description="Numbers of the nodes below: none for a concept, one for not, two or more otherwise."),
    ]


class WireQuery(_Strict):
    """The logic of an image search query as a tree of numbered nodes."""

    nodes: Annotated[list[WireNode], Field(description="All nodes; each but the root is the child of exactly one.")]


class WireConcept(_Strict):
    """A concept of the flat form."""

    text: str
    is_negated: bool


class WireFlat(_Strict):
    """The paper's flat form: concepts, each affirmed or negated, under one operator."""

    concepts: list[WireConcept]
    operator: Operator

    def to_query(self) -> Query:
        """The tree of this flat form."""
        flat: FlatQuery = {
            "concepts": [{"text": c.text, "is_negated": c.is_negated} for c in self.concepts],
            "operator": self.operator,
        }
        return from_flat(flat)


def wire_schema(*, bounded: bool = True) -> dict[str, Any]:
    """The JSON schema of `WireQuery`, without references.

    Args:
        bounded: State the size limits in the schema. They keep small models from rambling; OpenAI's strict mode does
            not document all of them and refuses them for fine-tuned models, so it is sent the schema without.
            A reply is held to the limits either way.
    """
    schema = WireQuery.model_json_schema()
    node = schema.pop("$defs")["WireNode"]
    nodes = schema["properties"]["nodes"]
    nodes["items"] = node
    for part in (schema, nodes, node, *node["properties"].values()):
        part.pop("title", None)
    if bounded:
        nodes.update(minItems=1, maxItems=MAX_WIRE_NODES)
        node["properties"]["id"].update(minimum=0, maximum=MAX_WIRE_NODES)
        node["properties"]["text"].update(maxLength=MAX_CONCEPT)
        node["properties"]["children"].update(maxItems=MAX_WIRE_NODES)
    return schema


def to_wire(query: Query) -> WireQuery:
    """The tree as numbered nodes, the root first.

    Raises:
        QueryTooComplex: the tree is larger than a reply may be.
    """
    nodes: list[WireNode] = []

    def add(node: Query) -> int:
        number = len(nodes)
        if number >= MAX_WIRE_NODES:
            raise QueryTooComplex(f"a reply holds at most {MAX_WIRE_NODES} nodes, this query has {query.size}")
        nodes.append(WireNode(id=number, op="concept", text="", children=[]))  # keeps the number
        match node:
            case Concept(text):
                if len(text) > MAX_CONCEPT:
                    raise QueryTooComplex(f"a reply's concept has at most {MAX_CONCEPT} characters, not {len(text)}")
                nodes[number] = WireNode(id=number, op="concept", text=text, children=[])
            case Not(child):
                nodes[number] = WireNode(id=number, op="not", text="", children=[add(child)])
            case And(children):
                nodes[number] = WireNode(id=number, op="and", text="", children=[add(child) for child in children])
            case Or(children):
                nodes[number] = WireNode(id=number, op="or", text="", children=[add(child) for child in children])
            case Plain(children):
                nodes[number] = WireNode(id=number, op="plain", text="", children=[add(child) for child in children])
        return number

    add(query)
    return WireQuery(nodes=nodes)


def from_wire(wire: WireQuery) -> Query:
    """The tree that the nodes make.

    Raises:
        ParserOutputError: they do not make one tree, or it is too large.
    """
    if not 1 <= len(wire.nodes) <= MAX_WIRE_NODES:
        raise ParserOutputError(f"the reply has {len(wire.nodes)} nodes; it needs 1 to {MAX_WIRE_NODES}")
    by_id = {node.id: node for node in wire.nodes}
    if len(by_id) != len(wire.nodes):
        raise ParserOutputError("two nodes share a number; give every node its own id")
    parents: dict[int, int] = {}
    for node in wire.nodes:
        _check_node(node)
        for child in node.children:
            if child not in by_id:
                raise ParserOutputError(f"node {node.id} has a child {child} that is not in the list")
            if child in parents:
                raise ParserOutputError(f"node {child} has more than one parent; repeat it as a node of its own")
            parents[child] = node.id
    roots = [node for node in wire.nodes if node.id not in parents]
    if len(roots) != 1:
        what = "the nodes form a circle" if not roots else f"{len(roots)} nodes have no parent"
        raise ParserOutputError(f"{what}; exactly one node, the root, is nobody's child")
    built = 0

    def build(node: WireNode) -> Query:
        nonlocal built
        built += 1
        if node.op == "concept":
            return Concept(node.text)
        children = tuple(build(by_id[child]) for child in node.children)
        return Not(children[0]) if node.op == "not" else GROUPS[node.op](children)

    query = build(roots[0])  # ends: every node has one parent, so no circle can hang below the root
    if built != len(wire.nodes):
        raise ParserOutputError(f"{len(wire.nodes) - built} nodes form a circle apart from the root")
    return query


def _check_node(node: WireNode) -> None:
    if node.op == "concept":
        if node.children:
            raise ParserOutputError(f"node {node.id} is a concept and cannot have children")
        if not node.text.strip():
            raise ParserOutputError(f"node {node.id} is a concept without text")
        if len(node.text) > MAX_CONCEPT:
            raise ParserOutputError(f"the text of node {node.id} is longer than {MAX_CONCEPT} characters")
        return
    if node.text.strip():
        raise ParserOutputError(f"node {node.id} is {node.op!r} and cannot have text; only concepts have")
    if node.op == "not" and len(node.children) != 1:
        raise ParserOutputError(f"node {node.id} is 'not' and needs exactly one child, not {len(node.children)}")
    if not node.children:
        raise ParserOutputError(f"node {node.id} is {node.op!r} and needs children")


def encode(query: Query) -> str:
    """The reply that means `query`, as compact JSON."""
    return to_wire(query).model_dump_json()


def decode(reply: str | WireQuery) -> Query:
    """The tree of a model's reply: its nodes, or JSON text in the node form or the flat form.

    Raises:
        ParserOutputError: the reply is no JSON, not of either form, or not a tree; it carries the reply.
    """
    try:
        return _from_text(reply) if isinstance(reply, str) else from_wire(reply)
    except ValidationError as error:
        raise ParserOutputError(complaint(error), reply=reply_text(reply)) from error
    except QueryError as error:
        raise ParserOutputError(str(error), reply=reply_text(reply)) from error
    except ParserOutputError as error:
        raise ParserOutputError(error.reason, reply=reply_text(reply)) from error
    except ValueError as error:
        raise ParserOutputError("the reply is not JSON", reply=reply_text(reply)) from error


def complaint(error: Exception) -> str:
    """What was wrong with a reply that a client library could not take, in a few words a model can act on."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the reply"
        return f"{where}: {first['msg']}"
    return " ".join(str(error).split())[:300] or type(error).__name__


def _from_text(text: str) -> Query:
    data = reply_json(text)
    if isinstance(data, dict) and "nodes" not in data and "concepts" in data:
        return _from_flat(WireFlat.model_validate(data))
    return from_wire(WireQuery.model_validate(data))


def _from_flat(flat: WireFlat) -> Query:
    if len(flat.concepts) > MAX_WIRE_NODES or any(len(concept.text) > MAX_CONCEPT for concept in flat.concepts):
        raise ParserOutputError(f"at most {MAX_WIRE_NODES} concepts of {MAX_CONCEPT} characters are read")
    return flat.to_query()
