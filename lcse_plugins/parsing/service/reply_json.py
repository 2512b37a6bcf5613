"""A model's reply as text, and the JSON in it: some think aloud before it, fence it, or add a sentence."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lcse_plugins.parsing.llm.schema import WireQuery

__all__ = ["reply_json", "reply_text"]

_FENCE = re.compile(r"```(?:json)?(.*?)```", re.DOTALL | re.IGNORECASE)


def reply_text(reply: str | WireQuery) -> str:
    """The reply as text, to be shown to whoever gave it."""
    return reply if isinstance(reply, str) else reply.model_dump_json()


def reply_json(reply: str) -> Any:
    """The one JSON value of a reply.

    Raises:
        ValueError: there is none, or more than one.
    """
    text = reply.strip("\ufeff \t\r\n")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError:
        return _within(text.rpartition("</think>")[2])


def _within(text: str) -> Any:
    """The JSON object among other words: the only one fenced, else the only one there is."""
    fenced = _FENCE.findall(text)
    if len(fenced) == 1:
        text = fenced[0]
    try:
        value, end = json.JSONDecoder().raw_decode(text, text.index("{"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if "{" in text[end:]:
        raise ValueError("more than one object")
    return value
