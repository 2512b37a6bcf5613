"""Whether what is installed fits what an extra asks for."""

from __future__ import annotations

from importlib import metadata

import pytest

from lcse_plugins.errors import MissingExtra
from lcse_plugins.hosts.versions import check_versions

REQUIRED = [
    "numpy>=99",
    "host-core[fast]>=1.14,<2; extra == 'host'",
    "host-old>=3; extra == 'host' and python_version < '3'",
    "tool>=99; python_version >= '3'",
    "other>=99; extra == 'other'",
]


def check(monkeypatch: pytest.MonkeyPatch, installed: str) -> None:
    versions = {"host-core": installed, "numpy": "1.0", "tool": "1.0", "other": "1.0"}
    monkeypatch.setattr(metadata, "requires", lambda name: REQUIRED)
    monkeypatch.setattr(metadata, "version", lambda name: versions[name])
    check_versions("the host", "host")


@pytest.mark.parametrize("installed", ["1.14", "1.14.0", "1.14.post1", "1.15rc1", "1.20+local", "1.99"])
def test_what_fits_is_accepted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, installed: str
) -> None:
    check(monkeypatch, installed)
    assert not caplog.text


@pytest.mark.parametrize("installed", ["1.13.9", "1.14rc1"])
def test_what_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, installed: str) -> None:
    with pytest.raises(
        MissingExtra, match=f"the host needs host-core 1.14 or newer, and {installed} is installed: pip"
    ):
        check(monkeypatch, installed)


@pytest.mark.parametrize("installed", ["2.0", "3"])
def test_what_is_newer_than_was_tried_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, installed: str
) -> None:
    check(monkeypatch, installed)
    assert f"the host was tried with host-core<2, and {installed} is installed" in caplog.text
