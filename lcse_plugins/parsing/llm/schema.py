"""The form of a model's reply: alternatives, each with what must and what must not be there.

    {"alternatives": [{"must": [["bus", "truck"], ["tree"]], "must_not": ["car"]}]}

reads: (a bus or a truck) and a tree and no car. An image fits if it fits any alternative; each entry of `must` is a
list of choices. Two levels are flat enough for function calling and for small models, and any tree can be multiplied
out to them (`reply_of`), up to a bound.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from lcse_plugins.errors import ParserOutputError, QueryTooComplex
from lcse_plugins.query import And, Concept, Not, Or, Plain, Query, canonical

__all__ = ["SCHEMA", "Alternative", "Reply", "decode", "encode", "reply_of", "tree_of", "unbounded"]

MAX_ALTERNATIVES = 8
MAX_ENTRIES = 16
"""Entries of one list, and choices of one entry."""
MAX_WORDS = 200
"""Characters of a concept."""


@dataclass(frozen=True)
class Alternative:
    """One way to satisfy the query: a choice out of every entry of `must`, and none of `must_not`."""

    must: tuple[tuple[str, ...], ...] = ()
    must_not: tuple[str, ...] = ()


Reply = tuple[Alternative, ...]
"""A decoded reply."""


def _list_of(
    items: dict[str, Any], description: str = "", *, least: int = 0, most: int = MAX_ENTRIES
) -> dict[str, Any]:
    told = {"description": description} if description else {}
    return {"type": "array", **told, "minItems": least, "maxItems": most, "items": items}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_CONCEPT = {"type": "string", "maxLength": MAX_WORDS}
_MUST = "What must be seen. Each entry is a list of choices, one of which is enough."
_ALTERNATIVE = _object(
    must=_list_of(_list_of(_CONCEPT, least=1), _MUST), must_not=_list_of(_CONCEPT, "What must not be seen.")
)
SCHEMA: dict[str, Any] = {
    "title": "QueryLogic",
    "description": "The logic of an image search query. An image fits if it fits any of the alternatives.",
    **_object(alternatives=_list_of(_ALTERNATIVE, least=1, most=MAX_ALTERNATIVES)),
}
"""The reply as a JSON schema, with limits on every list and text."""


def unbounded(schema: Any = SCHEMA) -> Any:
    """The schema without its limits, which OpenAI's own service does not take in strict mode."""
    if isinstance(schema, dict):
        limits = ("minItems", "maxItems", "maxLength")
        return {key: unbounded(value) for key, value in schema.items() if key not in limits}
    return schema


def decode(reply: str | Mapping[str, Any]) -> Reply:
    """The reply out of a model's text, or of the arguments of its function call.

    A text may have more around the JSON object, and an entry of `must` may be a bare text.

    Raises:
        ParserOutputError: it is not of the schema's form.
    """
    data = reply if isinstance(reply, Mapping) else _json(reply)
    match data:
        case {"alternatives": [_, *_] as listed} if len(listed) <= MAX_ALTERNATIVES:
            return tuple(_alternative(item) for item in listed)
    raise ParserOutputError(f'the reply is not {{"alternatives": [1 to {MAX_ALTERNATIVES} of them]}}: {data!r:.80}')


def _json(text: str) -> Any:
    try:
        return json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        raise ParserOutputError(f"the reply is not JSON: {text!r:.80}") from None


def _alternative(data: Any) -> Alternative:
    if not isinstance(data, Mapping):
        raise ParserOutputError(f'an alternative is {{"must": […], "must_not": […]}}, not {data!r:.80}')
    must = tuple(_texts([entry] if isinstance(entry, str) else entry) for entry in _listed(data.get("must")))
    alternative = Alternative(tuple(filter(None, must)), _texts(data.get("must_not")))
    if alternative == Alternative():
        raise ParserOutputError("an alternative of the reply is empty")
    return alternative


def _listed(data: Any) -> list[Any]:
    if data is not None and (not isinstance(data, list) or len(data) > MAX_ENTRIES):
        raise ParserOutputError(f"expected a list of at most {MAX_ENTRIES}, not {data!r:.80}")
    return data or []


def _texts(data: Any) -> tuple[str, ...]:
    for text in _listed(data):
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_WORDS:
            raise ParserOutputError(f"a concept is a text of up to {MAX_WORDS} characters, not {text!r:.80}")
    return tuple(" ".join(text.split()) for text in _listed(data))


def encode(reply: Reply) -> str:
    """The reply as JSON text, as a model writes it and the cache keeps it."""
    data = [{"must": [list(entry) for entry in one.must], "must_not": list(one.must_not)} for one in reply]
    return json.dumps({"alternatives": data}, ensure_ascii=False)


def tree_of(reply: Reply) -> Query:
    """The query tree that a reply stands for."""

    def joined(group: type[And] | type[Or], parts: list[Query]) -> Query:
        return parts[0] if len(parts) == 1 else group(tuple(parts))

    def branch(one: Alternative) -> Query:
        wanted = [joined(Or, [Concept(text) for text in entry]) for entry in one.must]
        return joined(And, [*wanted, *(Not(Concept(text)) for text in one.must_not)])

    return canonical(joined(Or, [branch(one) for one in reply]))


def reply_of(query: Query) -> Reply:
    """The reply that stands for a tree; deeper trees are multiplied out.

    Raises:
        QueryTooComplex: that takes more alternatives than a reply may have.
    """
    return _bounded(_alternatives(canonical(query)))


def _alternatives(tree: Query) -> Reply:
    match tree:
        case Not(Concept(text)):
            return (Alternative((), (text,)),)
        case Concept(text):
            return (Alternative(((text,),)),)
        case Or(children):
            choices = tuple(child.text for child in children if isinstance(child, Concept))
            others = [one for child in children if not isinstance(child, Concept) for one in _alternatives(child)]
            return _bounded((*((Alternative((choices,)),) if choices else ()), *others))
        case And(children) | Plain(children):
            combined: Reply = (Alternative(),)
            for child in children:
                pairs = product(combined, _alternatives(child))
                combined = _bounded(tuple(Alternative(a.must + b.must, a.must_not + b.must_not) for a, b in pairs))
            return combined
    raise AssertionError("negation stands at the leaves of a canonical tree")


def _bounded(reply: Reply) -> Reply:
    if len(reply) > MAX_ALTERNATIVES:
        raise QueryTooComplex(f"the query multiplies out to more than {MAX_ALTERNATIVES} alternatives")
    return reply
