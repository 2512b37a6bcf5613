"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of photographs and captions; tests that need it are skipped where it is not."""
    folder = Path(os.environ.get("LCSE_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "photos" / "photos.jsonl").is_file():
        pytest.skip("the photograph collection is not here; name its folder in LCSE_DATA")
    return folder


@pytest.fixture(scope="session")
def open_clip() -> ModuleType:
    """The open_clip library; importable also where torchvision was built for another torch than the one installed."""
    torch = pytest.importorskip("torch")
    vision = find_spec("torchvision")
    if vision is None or vision.origin is None:
        pytest.skip("torchvision is not installed")
    try:
        for library in Path(vision.origin).parent.glob("_C*.so"):
            torch.ops.load_library(library)
    except OSError:
        operators = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _KEPT_ALIVE.append(operators)
    module: ModuleType = pytest.importorskip("open_clip")
    return module


_KEPT_ALIVE: list[object] = []

# A loaded machine is no reason to fail: laws are about answers, not about time.
settings.register_profile("project", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")
