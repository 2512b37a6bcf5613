"""Nothing leaves the machine: encoding writes no file in the home folder and asks no server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ENCODE = """
import sys, time
from lcse_plugins import load_encoder
encoder = load_encoder("starter")
encoder.encode_texts(["a cat"])
time.sleep(float(sys.argv[1]))
"""


def traffic(home: Path, *, seconds: float) -> list[str]:
    """Files that encoding leaves in an empty home folder, and lines of its attempts to reach a server."""
    home.mkdir()
    log = home.with_suffix(".strace")
    command = [sys.executable, "-c", ENCODE, str(seconds)]
    if shutil.which("strace"):
        command = ["strace", "-f", "-e", "trace=connect,sendto,sendmmsg,sendmsg", "-o", str(log), *command]
    settings = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    subprocess.run(command, env=settings, check=True, timeout=seconds + 120)
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return [*map(str, home.rglob("*")), *(line for line in lines if "AF_INET" in line or "htons" in line)]


@pytest.mark.skipif(sys.platform != "linux", reason="looks at Linux system calls")
@pytest.mark.parametrize("seconds", [1, pytest.param(75, marks=pytest.mark.faults)])
def test_encoding_writes_no_file_and_asks_no_server(seconds: float, tmp_path: Path) -> None:
    assert traffic(tmp_path / "home", seconds=seconds) == []


def test_what_the_user_has_set_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lcse_plugins.encoders.telemetry import switch_off_telemetry

    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    monkeypatch.delenv("HF_HUB_DISABLE_TELEMETRY", raising=False)
    switch_off_telemetry()
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "0"
    assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")  # so that it is taken back
