"""The bytes of a picture wherever it is: a path, a data URI or, when allowed, a URL.

Locations come out of other people's metadata, so they are not trusted. A path can be confined to a folder. A URL is
fetched only when the caller allows it, and never from an address inside one's own network.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import url2pathname

from lcse_plugins.encoders.batches import map_ahead
from lcse_plugins.errors import ImageError, InvalidOption
from lcse_plugins.images.reading import open_regular, reason_of
from lcse_plugins.scoring.arguments import pictures_of

__all__ = [
    "DEFAULT_ACCESS", "ImageAccess", "ImageLocation", "is_web_url", "location_name", "read_image", "read_images",
    "resolve_path",
]  # fmt: skip

ImageLocation: TypeAlias = str | Path | bytes
"""Where a picture is: a path, a `file:`, `data:`, `http:` or `https:` URL, or its bytes themselves."""

_LONGEST_HEADER = 1024
_LONGEST_QUOTED = 1 << 20  # characters of a data URI without base64
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(//)?", re.IGNORECASE)  # two letters at least: C:\ is a drive, not a scheme


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageAccess:
    """What may be read to get a picture, and how much of it.

    Attributes:
        root: The folder that local paths must lie in, links resolved; relative ones start there. None: any path.
        allow_urls: Whether http and https URLs are fetched at all.
        allow_private_addresses: Whether they may lead to loopback, private or otherwise not public addresses.
        max_bytes: The most bytes one picture may have.
        timeout: The most seconds one URL may take, redirects included (a name server's delay is not bounded).
        fetch: Your own way from a URL to the bytes there, such as a client with a proxy or credentials; it has to check
            addresses itself. None: the built-in one. Goes with `allow_urls=True`.
    """

    root: str | None = None
    allow_urls: bool = False
    allow_private_addresses: bool = False
    max_bytes: int = 32 * 1024 * 1024
    timeout: float = 10.0
    fetch: Callable[[str], bytes] | None = None

    def __post_init__(self) -> None:
        if self.root is not None:
            object.__setattr__(self, "root", os.fspath(self.root))
        if self.max_bytes <= 0 or not 0 < self.timeout < float("inf"):
            raise InvalidOption(f"max_bytes and timeout are positive, not {self.max_bytes} and {self.timeout}")
        if self.fetch is not None and not self.allow_urls:
            raise InvalidOption("fetch= is for URLs, which are not allowed; set allow_urls=True too")


DEFAULT_ACCESS = ImageAccess()


def read_image(location: ImageLocation, *, access: ImageAccess = DEFAULT_ACCESS) -> bytes:
    """The bytes of one picture, undecoded."""
    if isinstance(location, bytes):
        return _checked_size(location, location_name(location), access)
    if not isinstance(location, str | Path):
        kind = type(location).__name__
        raise ImageError(kind, f"a picture is a path, a URL or bytes, not {kind}")
    found = _SCHEME.match(location) if isinstance(location, str) else None
    scheme = found[1].lower() if found else None
    match scheme:
        case "http" | "https":
            return _from_url(str(location), access)
        case "data":
            return _from_data_uri(str(location), access)
        case "file":
            return _from_path(_path_of_url(str(location)), access)
        case _ if found and found[2]:
            raise ImageError(
                str(location)[:100], f"pictures are read from paths, data:, http: and https:, not {scheme}:"
            )
        case _:  # a colon alone may stand in a file's name
            return _from_path(location, access)


def is_web_url(location: str) -> bool:
    """Whether a location is an http or https URL."""
    return location[:8].lower().startswith(("http://", "https://"))


def location_name(location: ImageLocation) -> str:
    """What a location is called in messages, short and without secrets.

    A URL on the net comes without user, query and fragment: signatures and tokens stay out.
    """
    if isinstance(location, bytes):
        return f"picture of {len(location):,} bytes"
    name = str(location)
    if name[:5].lower() == "data:":
        return f"data URI of {len(name):,} characters"
    found = _SCHEME.match(name)
    if not found or not found[2] or found[1].lower() == "file":
        return name
    scheme, rest = name.partition("?")[0].partition("#")[0].split("://", 1)
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def read_images(
    locations: Iterable[ImageLocation], *, access: ImageAccess = DEFAULT_ACCESS
) -> Iterator[bytes | ImageError]:
    """The bytes of each picture in order, at most eight read ahead; one that cannot be had comes as its error."""

    def read(location: ImageLocation) -> bytes | ImageError:
        try:
            return read_image(location, access=access)
        except ImageError as error:
            return error

    return map_ahead(read, pictures_of(locations, name="locations"), workers=4)


def _from_url(url: str, access: ImageAccess) -> bytes:
    name = location_name(url)
    if not access.allow_urls:
        raise ImageError(name, "URLs are not fetched; set allow_urls=True to allow it")
    try:
        if access.fetch is not None:
            return _checked_size(bytes(access.fetch(url)), name, access)
        from lcse_plugins.images.fetch import fetch_url

        return _checked_size(fetch_url(url, access), name, access)
    except ImageError as error:
        raise ImageError(name, error.reason) from error
    except Exception as error:  # a user's fetch may raise anything, http.client half a dozen kinds
        raise ImageError(name, f"cannot be fetched ({reason_of(error).splitlines()[0]})") from error


def resolve_path(path: str | Path, access: ImageAccess) -> Path:
    """Where a path leads, links resolved; ImageError where that is outside the folder pictures may be read from."""
    try:
        folder = Path(access.root or "").resolve()
        resolved = (folder / path).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
        raise ImageError(path, f"cannot be read ({reason_of(error)})") from error
    if access.root is not None and not resolved.is_relative_to(folder):
        raise ImageError(path, f"lies outside the folder pictures may be read from, {access.root}")
    return resolved


def _from_path(path: str | Path, access: ImageAccess) -> bytes:
    try:
        # A link put in place after the path was resolved is not followed.
        with open_regular(resolve_path(path, access), max_bytes=access.max_bytes, follow=False) as stream:
            return _checked_size(stream.read(access.max_bytes + 1), str(path), access)
    except (ImageError, OSError) as error:
        reason = error.reason if isinstance(error, ImageError) else f"cannot be read ({reason_of(error)})"
        raise ImageError(path, reason) from error


def _path_of_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ImageError(url[:100], "a file: URL names a file of this machine")
    return url2pathname(parts.path)


def _from_data_uri(uri: str, access: ImageAccess) -> bytes:
    header, comma, data = uri[:_LONGEST_HEADER].partition(",")
    name = location_name(uri)
    if not comma:
        raise ImageError(name, "has no comma before its data")
    base64ed = header.lower().rstrip().endswith(";base64")
    most = 2 * access.max_bytes + 1024 if base64ed else _LONGEST_QUOTED
    if len(uri) - len(header) > most:  # before it is copied: every percent sign costs a hundred bytes while unquoted
        advice = "" if base64ed else "; a larger one is written in base64"
        raise ImageError(name, f"is too long; at most {min(most, access.max_bytes):,} bytes are read{advice}")
    data = uri[len(header) + 1 :]
    if not base64ed:
        return _checked_size(unquote_to_bytes(data), name, access)
    for quoted, letter in (("%2B", "+"), ("%2F", "/"), ("%3D", "="), ("%0A", ""), ("%0D", "")):
        data = data.replace(quoted, letter).replace(quoted.lower(), letter)
    try:
        picture = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImageError(name, f"is not base64 ({error})") from error
    return _checked_size(picture, name, access)


def _checked_size(picture: bytes, name: str, access: ImageAccess) -> bytes:
    if len(picture) > access.max_bytes:
        raise ImageError(name, f"more than {access.max_bytes:,} bytes are too many")
    if not picture:
        raise ImageError(name, "is empty")
    return picture
