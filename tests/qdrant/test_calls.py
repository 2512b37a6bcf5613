"""Errors of Qdrant as the two kinds a caller can act on, in one line each."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from httpx import Headers
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_lcse import LogicSearch
from qdrant_lcse.calls import translate_fault

from lcse_plugins.errors import CollectionError, InvalidOption, SearchUnavailable
from tests.qdrant.data import SCORER


class _Code:
    def __init__(self, name: str) -> None:
        self.name = name


class GrpcError(Exception):
    """As grpc raises it: a code, and details."""

    def __init__(self, name: str, details: str = "told\nin lines") -> None:
        super().__init__(f"<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.{name}\n>")
        self._name, self._details = name, details

    def code(self) -> Any:
        return _Code(self._name)

    def details(self) -> str:
        return self._details


def rest(status: int, content: bytes = b'{"status": {"error": "Not found: Collection\\n`photos`"}}') -> Exception:
    return UnexpectedResponse(status, "why", content, Headers())


REFUSALS = [rest(status) for status in (400, 401, 403, 404, 422)] + [
    GrpcError(name) for name in ("UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND", "INVALID_ARGUMENT")
]
OUTAGES: list[Exception] = [
    *(rest(status) for status in (408, 429, 500, 503)),
    *(GrpcError(name) for name in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED")),
    ResponseHandlingException(ConnectionRefusedError("nobody\nthere")),
    TimeoutError("too late"),
    OSError("no route"),
    RuntimeError("anything else"),
]


@pytest.mark.parametrize(
    ("error", "kind"),
    [*((error, CollectionError) for error in REFUSALS), *((error, SearchUnavailable) for error in OUTAGES)],
    ids=repr,
)
def test_each_fault_is_of_one_kind_and_one_line(error: Exception, kind: type[Exception]) -> None:
    fault = translate_fault(error, collection="photos")
    assert type(fault) is kind
    assert fault.__cause__ is error
    assert "photos" in str(fault)
    assert "\n" not in str(fault)
    assert len(str(fault)) < 500


def test_the_servers_own_words_are_told() -> None:
    assert str(translate_fault(rest(404), collection="photos")).endswith("(404: Not found: Collection `photos`)")
    assert "<html> " in str(translate_fault(rest(502, b"<html>\n" + b"x" * 1000), collection="photos"))
    assert "(UNAUTHENTICATED: told in lines)" in str(translate_fault(GrpcError("UNAUTHENTICATED"), collection="a"))


@pytest.mark.parametrize("error", [InvalidOption("limit"), TypeError("a mistake"), AttributeError("another")])
def test_mistakes_are_not_hidden(error: Exception) -> None:
    assert translate_fault(error, collection="photos") is error


@pytest.mark.parametrize("grpc", [False, True])
def test_a_server_that_is_not_there(grpc: bool) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        client = QdrantClient(
            url=f"http://127.0.0.1:{port}", grpc_port=port, prefer_grpc=grpc, check_compatibility=False, timeout=2
        )
        with pytest.raises(SearchUnavailable, match="did not answer on collection 'photos'"):
            LogicSearch(client, "photos", SCORER).query("dog and no cat")
        client.close()
