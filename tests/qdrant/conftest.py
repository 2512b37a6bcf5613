"""A server for the tests that need one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlparse

import pytest

from tests.qdrant.server import Node, running


@pytest.fixture(scope="session")
def server() -> Iterator[Node]:
    """The server that QDRANT_URL names, else one of our own."""
    if named := os.environ.get("QDRANT_URL"):
        place = urlparse(named)
        yield Node(place.port or 6333, int(os.environ.get("QDRANT_GRPC_PORT", "6334")), host=place.hostname or "")
        return
    with running() as (node,):
        yield node


@pytest.fixture(scope="session")
def cluster() -> Iterator[list[Node]]:
    """Three nodes that know each other."""
    with running(3) as nodes:
        yield nodes
