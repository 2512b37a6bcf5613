"""Errors of Qdrant as the two kinds a caller can act on, in one line each."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest
from httpx import Headers
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_lcse import LogicSearch
from qdrant_lcse.calls import translate_fault

from lcse_plugins.errors import CollectionError, InvalidOption, SearchUnavailable
from tests.qdrant.data import SCORER


class GrpcError(Exception):
    """As grpc raises it: a code, and details."""

    def __init__(self, name: str) -> None:
        super().__init__(f"<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.{name}\n>")
        self.code = lambda: SimpleNamespace(name=name)
        self.details = lambda: "told\nin lines"


def rest(status: int, content: bytes = b'{"status": {"error": "Not found: Collection\\n`photos`"}}') -> Exception:
    return UnexpectedResponse(status, "why", content, Headers())


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        *((rest(status), CollectionError, f"({status}: Not found: Coll") for status in (400, 401, 403, 404, 422)),
        *(
            (GrpcError(name), CollectionError, f"({name}: told in lines)")
            for name in ("UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND", "INVALID_ARGUMENT")
        ),
        *((rest(status), SearchUnavailable, f"({status}: ") for status in (408, 429, 500, 503)),
        *(
            (GrpcError(name), SearchUnavailable, name)
            for name in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED")
        ),
        (rest(502, b"<html>\n" + b"x" * 1000), SearchUnavailable, "<html> x"),
        (ResponseHandlingException(ConnectionRefusedError("nobody\nthere")), SearchUnavailable, "nobody"),
        (TimeoutError("too late"), SearchUnavailable, "too late"),
        (RuntimeError("anything else"), SearchUnavailable, "anything else"),
    ],
    ids=repr,
)
def test_each_fault_is_of_one_kind_and_one_line(error: Exception, kind: type[Exception], said: str) -> None:
    fault = translate_fault(error, collection="photos")
    assert type(fault) is kind
    assert fault.__cause__ is error
    assert "photos" in str(fault)
    assert said in str(fault)
    assert "\n" not in str(fault)
    assert len(str(fault)) < 500


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
