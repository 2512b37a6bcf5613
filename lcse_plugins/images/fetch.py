"""Fetch a picture over http or https without being led into one's own network.

A name is resolved once, all its addresses are checked, and the connection goes to a checked address itself; each
redirect likewise. Size and time are bounded whatever the other side does. Proxies of the environment are not used:
behind one, addresses could not be checked.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from string import punctuation
from threading import Timer
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from lcse_plugins.errors import ImageError

if TYPE_CHECKING:
    from lcse_plugins.images.locations import ImageAccess

__all__ = ["fetch_url"]

REDIRECTS = 3

_PUBLIC_V6, _NAT64 = ipaddress.IPv6Network("2000::/3"), ipaddress.IPv6Network("64:ff9b::/96")
_DENIED = [
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 "
        "192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 "
        "240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 3fff::/20"
    ).split()
]
"""Written out, since what Python calls global differs by version, and leaves out relays and cloud services."""


def fetch_url(url: str, access: ImageAccess) -> bytes:
    """The bytes at an http or https URL."""
    deadline = time.monotonic() + access.timeout
    try:
        for _ in range(1 + REDIRECTS):
            parts = _checked(url)
            with _connection(parts, access, deadline) as connection:
                target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
                connection.request("GET", target, headers={"Accept": "image/*", "User-Agent": "lcse-plugins"})
                with connection.getresponse() as response:
                    if response.status in (301, 302, 303, 307, 308) and (place := response.getheader("Location")):
                        url = urljoin(url, place.encode("latin-1").decode("utf-8", "replace"))
                        continue
                    body = _body(response, access.max_bytes)
            if time.monotonic() >= deadline:  # what was cut off may look whole
                raise TimeoutError
            return body
        raise ImageError("", f"leads on to other addresses more than {REDIRECTS} times")
    except (OSError, HTTPException) as error:
        if time.monotonic() >= deadline:
            raise ImageError("", f"took longer than {access.timeout:g} s") from error
        raise


def _checked(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise ImageError("", f"leads to {parts.scheme or 'no host'}:, which is not fetched")
    if parts.username is not None or parts.password is not None:
        raise ImageError("", "URLs with a user name or password are not fetched")
    return urlsplit(quote(url.replace(parts.netloc, parts.netloc.encode("idna").decode("ascii"), 1), safe=punctuation))


@contextmanager
def _connection(parts: SplitResult, access: ImageAccess, deadline: float) -> Iterator[HTTPConnection]:
    """A connection to a checked address of the host, shut when the time is up."""
    secure, host = parts.scheme.lower() == "https", str(parts.hostname)
    port = parts.port or (443 if secure else 80)
    addresses = [(str(entry[4][0]), port) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if not access.allow_private_addresses and not all(_is_public(address) for address, _ in addresses):
        why = "leads to an address that is not public; set allow_private_addresses=True to allow it"
        raise ImageError("", why)
    left = max(0.001, deadline - time.monotonic())
    with _connected(addresses, left) as sock, sock.dup() as twin:  # it shuts the same, whatever is wrapped around it
        timer = Timer(left, _shut, (twin,))  # a server that sends a byte now and then never trips a socket's timeout
        timer.daemon = True
        timer.start()
        connection = (HTTPSConnection if secure else HTTPConnection)(host, port)
        try:
            connection.sock = _tls().wrap_socket(sock, server_hostname=host) if secure else sock
            yield connection
        finally:
            timer.cancel()
            connection.close()


def _connected(addresses: list[tuple[str, int]], timeout: float) -> socket.socket:
    failure = OSError("the name has no address")
    for address in addresses:
        try:
            return socket.create_connection(address, timeout=timeout)
        except OSError as error:
            failure = error
    raise failure


def _shut(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _body(response: HTTPResponse, most: int) -> bytes:
    if response.status != 200:
        raise HTTPException(f"HTTP {response.status} {response.reason}")
    body = b"" if (response.length or 0) > most else response.read(most + 1)
    if (response.length or 0) > most or len(body) > most:
        raise ImageError("", f"more than {most:,} bytes are too many")
    if response.length:
        raise HTTPException(f"the connection ended {response.length:,} bytes early")
    return body


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF) if ip in _NAT64 else ip.ipv4_mapped
        if inner is None and ip not in _PUBLIC_V6:
            return False
        ip = inner or ip
    return ip.is_global and not any(ip in network for network in _DENIED if network.version == ip.version)


def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
