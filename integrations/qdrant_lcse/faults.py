"""Qdrant's many exceptions, turned into the two kinds a caller can act on."""

from __future__ import annotations

from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from lcse_plugins.errors import CollectionError, LcseError, SearchUnavailable
from lcse_plugins.hosts.refusals import is_refusal

__all__ = ["translate_fault"]

_REFUSALS = frozenset({"NOT_FOUND", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED"})

_ENGINE_REFUSALS = ("Vector dimension error", "Not existing vector name error")
"""How messages of the embedded engine begin, whose errors are all of one kind, when the request does not fit."""


def translate_fault(error: Exception, *, collection: str) -> Exception:
    """The error of this package that says what happened when Qdrant raised `error`, with it as the cause.

    Errors of this package, and mistakes in a program, are given back as they are.
    """
    if isinstance(error, LcseError):
        return error
    fault = _meaning(error, collection)
    if fault is None:
        return error
    fault.__cause__ = error
    return fault


def _meaning(error: Exception, collection: str) -> CollectionError | SearchUnavailable | None:
    if isinstance(error, UnexpectedResponse):
        content = error.content.decode("utf-8", errors="replace")[:500]
        if is_refusal(error.status_code):
            return CollectionError(collection, f"Qdrant refused the request ({error.status_code}): {content}")
        return SearchUnavailable(f"Qdrant failed on collection {collection!r} ({error.status_code}): {content}")
    if isinstance(error, ApiException | QdrantException | OSError | TimeoutError):
        cause = getattr(error, "source", error)
        return SearchUnavailable(f"Qdrant did not answer on collection {collection!r}: {cause!r}")
    code = getattr(error, "code", None)  # a gRPC call's error; the grpc package itself may not be installed
    if callable(code):
        name = getattr(code(), "name", "")
        if name in _REFUSALS:
            return CollectionError(collection, f"Qdrant refused the request ({name}): {error}")
        if name:
            return SearchUnavailable(f"Qdrant did not answer on collection {collection!r} ({name}): {error}")
    if isinstance(error, ValueError) or str(error).startswith(_ENGINE_REFUSALS):  # local mode raises ValueErrors
        return CollectionError(collection, f"Qdrant refused the request: {error}")
    if isinstance(error, AttributeError | TypeError | NameError):
        return None
    return SearchUnavailable(f"Qdrant failed on collection {collection!r}: {error!r}")
