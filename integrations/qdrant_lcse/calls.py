"""Calls of a client, waited for or awaited, and their faults in the two kinds a caller can act on.

What is to be called is said by a generator, without input or output: it yields calls, is sent their answers, has their
faults thrown into it, and returns the result. `run` and `arun` do the rest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse

from lcse_plugins.errors import CollectionError, LcseError, SearchUnavailable
from lcse_plugins.hosts.logic_queries import is_refusal

__all__ = ["Call", "Steps", "arun", "run", "translate_fault"]

ResultT = TypeVar("ResultT")


class Call(NamedTuple):
    """A method of a client to call, and what with besides the name of the collection."""

    method: str
    arguments: dict[str, Any]


Steps: TypeAlias = Generator[Call, Any, ResultT]

_GRPC_REFUSALS = {
    "FAILED_PRECONDITION", "INVALID_ARGUMENT", "NOT_FOUND", "OUT_OF_RANGE", "PERMISSION_DENIED", "UNAUTHENTICATED",
    "UNIMPLEMENTED",
}  # fmt: skip
"""Status codes of gRPC that stand for a wrong request, as 4xx do over REST."""


def run(client: QdrantClient, collection: str, steps: Steps[ResultT]) -> ResultT:
    """Make the calls, and give the result."""
    step = _advance(steps, None)
    while isinstance(step, Call):
        try:
            answer = getattr(client, step.method)(collection_name=collection, **step.arguments)
        except Exception as error:
            answer = translate_fault(error, collection=collection)
        step = _advance(steps, answer)
    return step


async def arun(client: AsyncQdrantClient, collection: str, steps: Steps[ResultT]) -> ResultT:
    """Await the calls; what is done between them is done off the event loop."""
    step = await asyncio.to_thread(_advance, steps, None)
    while isinstance(step, Call):
        try:
            answer = await getattr(client, step.method)(collection_name=collection, **step.arguments)
        except Exception as error:
            answer = translate_fault(error, collection=collection)
        step = await asyncio.to_thread(_advance, steps, answer)
    return step


def _advance(steps: Steps[ResultT], answer: Any) -> Call | ResultT:
    try:
        return steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
    except StopIteration as end:
        result: ResultT = end.value
        return result


def translate_fault(error: Exception, *, collection: str) -> Exception:
    """The error of this package that says what happened when Qdrant raised `error`, with it as the cause.

    Errors of this package, and mistakes in a program, are given back as they are.
    """
    if isinstance(error, LcseError | AttributeError | TypeError | NameError):
        return error
    refused, said = _meaning(error)
    fault: LcseError
    if refused:
        fault = CollectionError(collection, f"Qdrant refused the request ({said})")
    else:
        fault = SearchUnavailable(f"Qdrant did not answer on collection {collection!r} ({said})")
    fault.__cause__ = error
    return fault


def _meaning(error: Exception) -> tuple[bool, str]:
    """Whether Qdrant refused the request, rather than failed on it, and what it said."""
    if isinstance(error, UnexpectedResponse):
        status = error.status_code or 0
        return is_refusal(status), f"{status}: {_line(_told(error.content))}"
    code = getattr(error, "code", None)  # a gRPC call's error; the grpc package itself may not be installed
    name = getattr(code(), "name", "") if callable(code) else ""
    if name:
        details = getattr(error, "details", None)
        return name in _GRPC_REFUSALS, f"{name}: {_line(details() if callable(details) else error)}"
    return isinstance(error, ValueError), _line(str(error) or repr(error))  # local mode raises ValueErrors


def _told(content: bytes) -> str:
    """What an answer says: Qdrant's own words, where it holds them."""
    text = content.decode("utf-8", errors="replace")
    try:
        status = json.loads(text)["status"]
        return str(status["error"] if isinstance(status, dict) else status)
    except (ValueError, KeyError, TypeError):
        return text


def _line(said: object) -> str:
    """In one line, not too long."""
    words = " ".join(str(said).split())
    return words if len(words) <= 300 else f"{words[:299]}…"
