from __future__ import annotations

import os
import secrets

import pytest


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Printed; another one in each run of `make test-faults`, fixed in `make test`. LCSE_SEED repeats one."""
    marked = request.node.get_closest_marker("faults") is not None
    chosen = int(os.environ.get("LCSE_SEED") or (secrets.randbelow(10**6) if marked else 0))
    print(f"\n{request.node.name}: LCSE_SEED={chosen}")
    return chosen


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """How often to try: as the marker says; LCSE_ROUNDS overrides it."""
    marker = request.node.get_closest_marker("faults")
    return int(os.environ.get("LCSE_ROUNDS") or (marker.kwargs["rounds"] if marker else 30))
