"""The JSON in a model's reply: some think aloud before it, fence it, or add a sentence even when told not to."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["reply_json"]

_FENCE = re.compile(r"```(?:json)?(.*?)```", re.DOTALL | re.IGNORECASE)


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
