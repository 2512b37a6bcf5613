"""What an agent's search tool says in every host: its description, the heading over the results, a line for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from lcse_plugins.errors import InvalidCandidate, LcseError
from lcse_plugins.hosts.result_metadata import ResultMetadata
from lcse_plugins.query import format_query, from_json

__all__ = ["MAX_RESULTS", "TOOL_DESCRIPTION", "heading", "nothing_found", "result_line"]

MAX_RESULTS = 20
"""The most pictures that a model may ask for in one call."""

TOOL_DESCRIPTION = """\
Search the picture collection by what the pictures show and do not show. Returns the best pictures, each with the \
reason for its place.

Write what must be seen as short noun phrases, joined by logic:
- plain English: "a street without cars", "a dog and a cat", "a beach or a pool", "neither people nor cars"
- or explicitly: AND, OR, NOT, parentheses, quotes around phrases: "street AND NOT (car OR truck)", "dog -leash"
Name things that can be seen; avoid moods, counts and instructions. Never rephrase an exclusion into its opposite: \
say what is not wanted."""


def nothing_found(query: str) -> str:
    """What is said when there are no results."""
    return f"No picture was found for {query!r}. Ask for less, or for something else."


def heading(query: str, told: Sequence[ResultMetadata | None]) -> str:
    """How many pictures there are, how the query was read, how many satisfy it; `told` is what each says of itself."""
    found = f"{len(told)} picture{'s' * (len(told) != 1)} for {query!r}"
    first = told[0] if told else None
    if not first:
        return f"{found}:"
    try:
        read = format_query(from_json(first["parse"]["tree"]))
    except LcseError as error:
        raise InvalidCandidate(f"the reading in the first result's metadata is damaged: {error}") from error
    notes = "".join(f" ({note})" for note in first["notes"])
    satisfied = sum(bool(one and one.get("satisfied")) for one in told)
    return f"{found}, read as {read}{notes}; {satisfied or 'none'} of them satisfy this:"


def result_line(place: int, title: str, told: ResultMetadata | None, fault: str = "") -> str:
    """The place of a result, its name, the reason, and why its picture is not shown."""
    text = " ".join(title.split())
    name = PurePath(text).name or text if text and len(text) <= 200 else "untitled"
    return " — ".join(part for part in (f"{place}. {name}", told["reason"] if told else "", fault) if part)
