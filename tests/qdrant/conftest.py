"""A server for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.qdrant.server import Node, named_or_own, running


@pytest.fixture(scope="session")
def server() -> Iterator[Node]:
    with named_or_own() as node:
        yield node


@pytest.fixture(scope="session")
def cluster() -> Iterator[list[Node]]:
    """Three nodes that know each other."""
    with running(3) as nodes:
        yield nodes
