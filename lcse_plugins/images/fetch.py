"""Fetch a picture over http or https, by urllib, without being led into one's own network.

Names are resolved once, all their addresses are checked, and the connection goes to a checked address itself, at every
redirect anew. Size and time are bounded whatever the other side does. Proxies of the environment are not used: behind
one, the addresses could not be checked.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from string import punctuation
from threading import Timer
from typing import Any
from urllib import request
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit

from lcse_plugins.errors import ImageError
from lcse_plugins.images.locations import ImageAccess, location_name
from lcse_plugins.images.reading import reason_of

__all__ = ["fetch_image"]

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
_DENIED = [
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 "
        "192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 "
        "240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 3fff::/20"
    ).split()
]
"""Written out, since what Python calls global differs by version, and leaves out relays and cloud services."""


def fetch_image(url: str, *, access: ImageAccess) -> bytes:
    """The bytes at an http or https URL; with `access.fetch` that is asked instead.

    Raises:
        ImageError: the URL is not allowed, does not answer with a body, or is too large or too slow.
    """
    name = location_name(url)
    if not access.allow_urls:
        raise ImageError(name, "URLs are not fetched; set allow_urls=True to allow it")
    deadline = time.monotonic() + access.timeout
    try:
        if access.fetch is not None:
            return bytes(access.fetch(url))
        with ExitStack() as stack:
            opener = request.OpenerDirector()
            opener.add_handler(_Checked(access, deadline, stack))
            for handler in (request.HTTPDefaultErrorHandler, _Redirects, request.HTTPErrorProcessor):
                opener.add_handler(handler())
            opener.add_handler(request.UnknownHandler())
            asked = request.Request(_in_ascii(url), headers={"Accept": "image/*", "User-Agent": "lcse-plugins"})
            body = _body(opener.open(asked, timeout=access.timeout), access.max_bytes)
        if time.monotonic() >= deadline:
            raise TimeoutError
        return body
    except ImageError as error:
        raise ImageError(name, error.reason) from error
    except Exception as error:  # a user's fetch may raise anything, http.client and urllib half a dozen kinds
        late = access.fetch is None and time.monotonic() >= deadline
        why = reason_of(getattr(error, "reason", None) or error) if not isinstance(error, HTTPError) else str(error)
        reason = f"took longer than {access.timeout:g} s" if late else f"cannot be fetched ({why.splitlines()[0]})"
        raise ImageError(name, reason) from error


class _Redirects(request.HTTPRedirectHandler):
    max_redirections = max_repeats = 3


class _Checked(request.AbstractHTTPHandler):
    """Opens connections to checked addresses alone, and shuts them when the time is up."""

    def __init__(self, access: ImageAccess, deadline: float, stack: ExitStack) -> None:
        super().__init__()
        self.access, self.deadline, self.stack = access, deadline, stack

    def http_open(self, asked: request.Request) -> Any:
        return self._open(HTTPConnection, asked)

    def https_open(self, asked: request.Request) -> Any:
        return self._open(HTTPSConnection, asked)

    http_request = https_request = request.AbstractHTTPHandler.do_request_

    def _open(self, kind: type[HTTPConnection], asked: request.Request) -> Any:
        parts = urlsplit(asked.full_url)
        if parts.username is not None or parts.password is not None:
            raise ImageError("", "URLs with a user name or password are not fetched")

        def connection(host: str, **options: Any) -> HTTPConnection:
            made = kind(host, **options)
            made.connect = lambda: self._connect(made)  # type: ignore[method-assign]
            return made

        response = self.do_open(connection, asked)
        self.stack.callback(response.close)
        return response

    def _connect(self, connection: HTTPConnection) -> None:
        found = socket.getaddrinfo(connection.host, connection.port, type=socket.SOCK_STREAM)
        if not self.access.allow_private_addresses and not all(_is_public(str(entry[4][0])) for entry in found):
            why = "leads to an address that is not public; set allow_private_addresses=True to allow it"
            raise ImageError("", why)
        left = max(0.001, self.deadline - time.monotonic())
        failure = OSError("the name has no address")
        for *_, address in found:
            try:
                sock = socket.create_connection(address[:2], timeout=left)  # type: ignore[arg-type]
                break
            except OSError as error:
                failure = error
        else:
            raise failure
        twin = self.stack.enter_context(sock.dup())  # shuts the same connection, whatever is wrapped around it

        def shut() -> None:  # a server that sends a byte now and then never trips a socket's timeout
            with suppress(OSError):
                twin.shutdown(socket.SHUT_RDWR)

        timer = Timer(left, shut)
        timer.daemon = True
        timer.start()
        self.stack.callback(timer.cancel)
        if isinstance(connection, HTTPSConnection):
            sock = _tls().wrap_socket(sock, server_hostname=connection.host)
        connection.sock = sock


def _body(response: HTTPResponse, most: int) -> bytes:
    body = b"" if (response.length or 0) > most else response.read(most + 1)
    if (response.length or 0) > most or len(body) > most:
        raise ImageError("", f"more than {most:,} bytes are too many")
    if response.length:
        raise HTTPException(f"the connection ended {response.length:,} bytes early")
    return body


def _in_ascii(url: str) -> str:
    if not url.isascii():
        host = urlsplit(url).netloc
        url = url.replace(host, host.encode("idna").decode("ascii"), 1)
    return quote(url, safe=punctuation)


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
