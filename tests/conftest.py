"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of photographs and captions; tests that need it are skipped where it is not."""
    folder = Path(os.environ.get("LCSE_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "photos" / "photos.jsonl").is_file():
        pytest.skip("the photograph collection is not here; name its folder in LCSE_DATA")
    return folder
