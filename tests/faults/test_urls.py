"""URLs that try to reach the machine's own network: none gets as far as a connection."""

from __future__ import annotations

import ipaddress
import random
import socket
from pathlib import Path

import pytest

from lcse_plugins.errors import ImageError
from lcse_plugins.images.locations import ImageAccess, read_image

ONLINE = ImageAccess(allow_urls=True, timeout=5, root=str(Path(__file__).parent))

HOSTS = """
127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0177.0.0.1 0x7f.0.0.1 017700000001 127.127.127.127 0 0.0.0.0 0.1
localhost LOCALHOST localhost. 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255
169.254.169.254 0xa9fea9fe 2852039166 0251.0376.0251.0376 100.64.0.1 100.100.100.200 192.0.0.1 192.0.0.192 192.0.2.1
192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
168.63.129.16 [::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:169.254.169.254] [::127.0.0.1]
[fe80::1] [fe80::1%25lo] [fc00::1] [fd00::1] [fd00:ec2::254] [ff02::1] [64:ff9b::7f00:1] [64:ff9b::a9fe:a9fe]
[64:ff9b:1::1] [2002:7f00:1::] [2002:a9fe:a9fe::] [2001::1] [2001:db8::1] [3fff::1] [100::1] [5f00::1]
""".split()

TRICKS = """
http://user:pass@93.184.215.14/a.png http://93.184.215.14@127.0.0.1/a.png http://127.0.0.1:80@93.184.215.14/
http://127.0.0.1#@93.184.215.14/ http://127.0.0.1?@93.184.215.14/ http://127.0.0.1\\@93.184.215.14/ http:///a.png
http://[oops http://[::1/ http://127.0.0.1:99999/ http://127.0.0.1:-1/ file:///etc/passwd FILE:///etc/passwd
ftp://127.0.0.1/a.png gopher://127.0.0.1/ jar:http://127.0.0.1!/ dict://127.0.0.1:11211/ ldap://127.0.0.1/
http://%31%32%37.0.0.1/ http://①②⑦.⓪.⓪.①/ http://127。0。0。1/ http://[::1]%2f@93.184.215.14/ //127.0.0.1/a.png
http://127.0.0.1%00.example.org/ http://127.0.0.1%0d%0aHost:x/ https://127.0.0.1/ HTTP://127.0.0.1/
""".split()


def no_connection(*_: object, **__: object) -> None:
    raise AssertionError("a connection was tried")


@pytest.mark.parametrize("url", [*(f"http://{host}/a.png" for host in HOSTS), *TRICKS])
def test_no_url_leads_inside(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", no_connection)
    with pytest.raises(ImageError):
        read_image(url, access=ONLINE)


@pytest.mark.faults(rounds=20_000)
def test_no_address_that_is_not_public_is_connected_to(seed: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that a server resolves as it likes: the address that is checked is the one that is used."""
    chooser = random.Random(seed)
    inside = [ipaddress.ip_network(n) for n in ("10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "fc00::/7", "::1/128")]
    connected: list[str] = []

    def resolve(host: str, port: int, **_: object) -> list[object]:
        network = chooser.choice(inside)
        address = network[chooser.randrange(min(network.num_addresses, 2**32))]
        if network.version == 4 and chooser.random() < 0.3:
            address = ipaddress.ip_address(f"::ffff:{address}")
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        entry = (family, socket.SOCK_STREAM, 6, "", (str(address), port))
        public = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", port))
        return [public, entry] if chooser.random() < 0.5 else [entry, public]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket.socket, "connect", lambda sock, address: connected.append(address))
    for n in range(rounds):
        with pytest.raises(ImageError, match="not public"):
            read_image(f"http://host{n}.example/a.png", access=ONLINE)
    assert not connected
