from __future__ import annotations

import base64
import os
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trustme

from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.images import fetch as image_fetch
from lcse_plugins.images.locations import DEFAULT_ACCESS, ImageAccess, read_image, read_images
from tests.images.test_scan import run_python

PICTURE = bytes(range(256)) * 8
LOCAL = ImageAccess(allow_urls=True, allow_private_addresses=True, timeout=5.0)
PUBLIC_ONLY = ImageAccess(allow_urls=True, timeout=5.0)


REDIRECTS = {
    "hop": "../picture",
    "letters": "/picture/käse?ä=1".encode().decode("latin-1"),  # as UTF-8, which many servers write
    "loop": "/loop",
    "nowhere": "http://[oops",
    "file": "file:///etc/passwd",
    "inward": "http://inside.test:{port}/picture",
}


class Handler(BaseHTTPRequestHandler):
    hits: list[str]

    def do_GET(self) -> None:
        self.hits.append(self.path)
        match self.path.split("?")[0].strip("/").split("/")[0]:
            case "picture":
                self.answer(200, PICTURE, {"Content-Length": str(len(PICTURE))})
            case "empty":
                self.answer(200, b"", {"Content-Length": "0"})
            case "truncated":
                self.answer(200, PICTURE[:100], {"Content-Length": str(len(PICTURE))})
            case "lies":  # no length announced: only counting while reading helps
                self.answer(200, PICTURE * 100)
            case "stalls":  # much is announced, nothing comes until the client has left
                self.answer(200, b"", {"Content-Length": str(10**10)})
                self.rfile.read(1)
            case "dripheaders":
                self.drip(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200)
            case "dripbody":
                self.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n" + b"x" * 200)
            case place if place in REDIRECTS:
                location = REDIRECTS[place].format(port=self.server.server_port)  # type: ignore[attr-defined]
                self.answer(302, b"", {"Location": location, "Content-Length": "0"})
            case _:
                self.send_error(404)

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def drip(self, data: bytes) -> None:
        for i in range(len(data)):
            self.wfile.write(data[i : i + 1])
            self.wfile.flush()
            time.sleep(0.05)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that hangs up early is what some tests want


def serve(tls: ssl.SSLContext | None = None) -> tuple[Server, list[str]]:
    hits: list[str] = []
    server = Server(("127.0.0.1", 0), type("Handler", (Handler,), {"hits": hits}))
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server, hits


@pytest.fixture
def web() -> Iterator[tuple[str, list[str]]]:
    server, hits = serve()
    yield f"http://127.0.0.1:{server.server_port}", hits
    server.shutdown()
    server.server_close()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "root" / "a.png"
    path.parent.mkdir()
    path.write_bytes(PICTURE)
    return path


def refusal(location: str | Path | bytes, access: ImageAccess = DEFAULT_ACCESS) -> str:
    with pytest.raises(ImageError) as caught:
        read_image(location, access=access)
    return caught.value.reason


def test_a_path_a_file_url_and_bytes_give_the_same_picture(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(picture.parent)
    Path("T10:22:33.png").write_bytes(PICTURE)  # a colon in a name is no scheme
    for form in (str(picture), picture, picture.as_uri(), PICTURE, "T10:22:33.png"):
        assert read_image(form) == PICTURE


@pytest.mark.parametrize(
    "uri",
    [
        "data:image/png;base64," + base64.b64encode(PICTURE).decode(),
        "data:;base64," + base64.encodebytes(PICTURE).decode(),
        "data:image/png," + quote(PICTURE),
        "data:image/png;base64," + quote(base64.b64encode(PICTURE), safe=""),
    ],
)
def test_a_data_uri_holds_its_picture(uri: str) -> None:
    assert read_image(uri) == PICTURE


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("data:image/png;base64", "no comma"),
        ("data:;base64,!!!", "not base64"),
        ("data:;base64,", "empty"),
        ("data:," + "%41" * 400_000, "is too long"),
        (b"", "empty"),
        ("ftp://example.org/a.png", "not ftp:"),
        ("file://elsewhere/a.png", "this machine"),
        ("no/such.png", "no such file"),
        ("bad\0name.png", "cannot be read"),
        ("http://example.org/a.png", "allow_urls=True"),
    ],
)
def test_what_cannot_be_read_says_why(location: str | bytes, reason: str) -> None:
    assert reason in refusal(location)


def test_what_is_no_location_is_an_error_of_its_own() -> None:
    given: Any = bytearray(PICTURE)
    assert "not bytearray" in refusal(given)
    read = list(read_images([given, PICTURE]))
    assert isinstance(read[0], ImageError)
    assert read[1] == PICTURE


def test_a_root_confines_paths(picture: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret.png"
    outside.write_bytes(PICTURE)
    link = picture.parent / "link.png"
    link.symlink_to(outside)
    access = ImageAccess(root=str(picture.parent))
    assert read_image("a.png", access=access) == PICTURE
    assert read_image(picture, access=access) == PICTURE
    for escape in (outside, "../secret.png", link, outside.as_uri(), "/etc/passwd"):
        assert "outside" in refusal(escape, access)


def test_only_regular_files_of_bounded_size_are_read(picture: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    for place in (tmp_path / "pipe.png", tmp_path / "zero.png", tmp_path):
        assert "regular" in refusal(place)
    small = ImageAccess(max_bytes=100)
    for location in (picture, PICTURE, "data:," + "x" * 101, "data:;base64," + "x" * 5000):
        assert "100" in refusal(location, small)


def test_a_url_is_fetched_when_allowed(web: tuple[str, list[str]]) -> None:
    address, hits = web
    assert read_image(f"{address}/picture/täg me.png?size=1 2#part", access=LOCAL) == PICTURE
    assert read_image(f"{address}/hop/x", access=LOCAL) == PICTURE
    assert read_image(f"{address}/letters", access=LOCAL) == PICTURE
    assert [hits[0], hits[-1]] == ["/picture/t%C3%A4g%20me.png?size=1%202", "/picture/k%C3%A4se?%C3%A4=1"]


def test_a_users_own_fetch_is_asked_instead() -> None:
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return PICTURE if url.endswith("a.png") else b"x" * 5000

    access = ImageAccess(allow_urls=True, fetch=fetch, max_bytes=4096)
    assert read_image("http://127.0.0.1:1/a.png", access=access) == PICTURE
    assert "4,096 bytes" in refusal("http://example.org/b.png", access)
    assert asked == ["http://127.0.0.1:1/a.png", "http://example.org/b.png"]
    failing = ImageAccess(allow_urls=True, fetch=lambda url: 1 / 0)  # type: ignore[arg-type, return-value]
    assert "cannot be fetched (division by zero)" in refusal("http://example.org/b.png", failing)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("data", ["'data:,' + '%00' * 31_000_000", "'data:;base64,' + '%2B' * 31_000_000"])
def test_a_long_data_uri_takes_little_memory(data: str) -> None:
    code = f"""
        from lcse_plugins.images.cache import ImageVectorCache
        from lcse_plugins.testing import ToyEncoder
        print("too long" in str(ImageVectorCache(ToyEncoder()).vectors_at([{data}])), peak())
    """
    refused, peak = run_python(code).split()
    assert refused == "True"
    assert int(peak) < 600


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing", "404"),
        ("empty", "empty"),
        ("truncated", "1,948 bytes early"),
        ("loop", "more than 3 times"),
        ("nowhere", "cannot be fetched"),
        ("file", "leads to file:, which is not fetched"),
    ],
)
def test_a_url_that_gives_no_picture_says_why(web: tuple[str, list[str]], path: str, reason: str) -> None:
    assert reason in refusal(f"{web[0]}/{path}", LOCAL)


@pytest.mark.parametrize("path", ["picture", "lies", "stalls"])
def test_a_body_is_cut_at_its_size_announced_or_not(web: tuple[str, list[str]], path: str) -> None:
    access = ImageAccess(allow_urls=True, allow_private_addresses=True, max_bytes=1000)
    assert "1,000 bytes" in refusal(f"{web[0]}/{path}", access)


@pytest.mark.parametrize("path", ["dripheaders", "dripbody", "silence"])
def test_a_server_that_drips_is_cut_off_in_time(web: tuple[str, list[str]], path: str) -> None:
    access = ImageAccess(allow_urls=True, allow_private_addresses=True, timeout=0.4)
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it never shakes hands
        host = f"https://127.0.0.1:{silent.getsockname()[1]}" if path == "silence" else web[0]
        assert "longer than 0.4 s" in refusal(f"{host}/{path}", access)
    assert time.monotonic() - began < 5  # the drip itself would take ten seconds


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:4700::6810:84e5", "64:ff9b::5db8:d70e"])
def test_public_addresses_are_public(address: str) -> None:
    assert image_fetch._is_public(address)


def entry(address: str, port: int) -> tuple[object, ...]:
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))


def test_a_name_is_resolved_once_and_only_checked_addresses_are_used(
    web: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(web[0].rpartition(":")[2])
    resolved: list[str] = []
    known = {"mixed.test": ["93.184.215.14", "127.0.0.1"], "xn--bcher-kva.test": ["::1", "127.0.0.1"]}

    def resolve(host: str, *_: object, **__: object) -> list[object]:
        resolved.append(host)
        return [entry(address, port) for address in known.get(host, [host])]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert "not public" in refusal(f"http://mixed.test:{port}/picture", PUBLIC_ONLY)
    assert read_image(f"http://bücher.test:{port}/picture", access=LOCAL) == PICTURE  # at the second address
    assert [host for host in resolved if host.endswith(".test")] == list(known)


def test_a_redirect_is_checked_like_the_first_address(
    web: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    public = {"127.0.0.1"}  # as if the first host stood outside; the host it leads to does not

    def resolve(host: str, port: int, *_: object, **__: object) -> list[object]:
        if host == "inside.test":
            public.clear()
        return [entry("127.0.0.1", port)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(image_fetch, "_is_public", lambda address: address in public)
    assert "not public" in refusal(f"{web[0]}/inward", PUBLIC_ONLY)
    assert web[1] == ["/inward"]


def test_certificates_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(serving)
    server, _ = serve(serving)
    url = f"https://127.0.0.1:{server.server_port}/picture"
    assert "certificate verify failed" in refusal(url, LOCAL)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    monkeypatch.setattr(image_fetch, "_tls", lambda: trusting)
    assert read_image(url, access=LOCAL) == PICTURE
    assert "certificate verify failed" in refusal(url.replace("127.0.0.1", "localhost"), LOCAL)
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("options", [{"max_bytes": 0}, {"timeout": float("nan")}, {"fetch": bytes}])
def test_limits_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        ImageAccess(**options)
