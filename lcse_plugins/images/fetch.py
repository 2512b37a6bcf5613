"""Fetch a picture over http or https without being led into one's own network, and within a size and a time."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Event, Timer
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from lcse_plugins.errors import ImageError
from lcse_plugins.images.locations import ImageAccess, location_name
from lcse_plugins.images.reading import reason_of

__all__ = ["fetch_image"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BLOCK = 1 << 16
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
_KEPT = "/%:@!$&'()*+,;=~?"  # what a path or a query may hold as it is
_HEADERS = {"Accept": "image/*", "Accept-Encoding": "identity", "User-Agent": "lcse-plugins", "Connection": "close"}


def fetch_image(url: str, *, access: ImageAccess) -> bytes:
    """The bytes at an http or https URL.

    Proxies named in the environment are not used: behind one, the addresses could not be checked.

    Raises:
        ImageError: the URL is not allowed, does not answer with a body, or is too large or too slow.
    """
    if not access.allow_urls:
        raise ImageError(location_name(url), "URLs are not fetched; set allow_urls=True to allow it")
    deadline = time.monotonic() + access.timeout
    for _ in range(access.max_redirects + 1):
        try:
            answer = _get(url, access=access, deadline=deadline)
            if isinstance(answer, bytes):
                return answer
            url = urljoin(url, answer)
        except ImageError:
            raise
        except (OSError, HTTPException, ValueError) as error:  # ValueError: a host or a redirect that is no URL
            late = time.monotonic() >= deadline
            reason = f"took longer than {access.timeout:g} s" if late else f"cannot be fetched ({reason_of(error)})"
            raise ImageError(location_name(url), reason) from error
    raise ImageError(location_name(url), f"more than {access.max_redirects} redirects")


def _get(url: str, *, access: ImageAccess, deadline: float) -> bytes | str:
    """The body, or where a redirect leads."""
    parts = _checked_url(url)
    host, port = str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    sock = _connect(host, port, access=access, deadline=deadline, name=location_name(url))
    if parts.scheme == "https":
        sock = _tls().wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
        connection: HTTPConnection = HTTPSConnection(host, port, context=_tls())
    else:
        connection = HTTPConnection(host, port)
    connection.sock = sock
    target = quote(parts.path or "/", safe=_KEPT) + (f"?{quote(parts.query, safe=_KEPT)}" if parts.query else "")
    try:
        with _cut_off(sock, deadline):
            if isinstance(sock, ssl.SSLSocket):
                sock.do_handshake()
            connection.request("GET", target, headers=_HEADERS)
            with connection.getresponse() as response:
                if response.status in _REDIRECTS and (location := response.getheader("Location")):
                    return _as_utf8(location)
                if response.status != 200:
                    raise ImageError(location_name(url), f"the server answered {response.status} {response.reason}")
                return _body(response, location_name(url), access)
    finally:
        connection.close()


def _body(response: HTTPResponse, name: str, access: ImageAccess) -> bytes:
    too_large = ImageError(name, f"more than {access.max_bytes:,} bytes are too many")
    expected = response.length  # None when the body comes in chunks
    if expected is not None and expected > access.max_bytes:
        raise too_large
    body = bytearray()
    while block := response.read(_BLOCK):
        body += block
        if len(body) > access.max_bytes:
            raise too_large
    if expected is not None and len(body) < expected:
        raise HTTPException(f"the connection ended after {len(body):,} of {expected:,} bytes")
    if not body:
        raise ImageError(name, "is empty")
    return bytes(body)


def _as_utf8(header: str) -> str:
    """A header that a server wrote in UTF-8; http.client reads every one as Latin-1."""
    try:
        return header.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return header


@contextmanager
def _cut_off(sock: socket.socket, deadline: float) -> Iterator[None]:
    """Shut the connection at the deadline: a server that sends a byte now and then never trips a socket's timeout."""
    cut = Event()

    def shut() -> None:
        cut.set()
        with suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not SSLSocket's, which would wait for the other side

    timer = Timer(max(0.0, deadline - time.monotonic()), shut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if cut.is_set():
            raise TimeoutError("the time is up")


def _connect(host: str, port: int, *, access: ImageAccess, deadline: float, name: str) -> socket.socket:
    """A connection to an address of `host` that was checked."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if not access.allow_private_addresses and not all(_is_public(str(entry[4][0])) for entry in found):
        raise ImageError(name, "leads to an address that is not public; set allow_private_addresses=True to allow it")
    failure: OSError = OSError("the name has no address")
    for family, kind, protocol, _, address in found:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is up")
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(left)
            sock.connect(address)
            return sock
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
    raise failure


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if inner is None:
            return ip in _PUBLIC_V6 and ip.is_global
        ip = inner
    return ip.is_global and not ip.is_multicast


def _checked_url(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ImageError(location_name(url), "only http and https URLs with a host are fetched")
    if parts.username is not None or parts.password is not None:
        raise ImageError(location_name(url), "URLs with a user name or password are not fetched")
    return parts


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
