"""Whether an installed library is new enough: pip only checks what is installed with an extra."""

from __future__ import annotations

import re
from importlib import metadata

from lcse_plugins.errors import MissingExtra

__all__ = ["check_versions"]

_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)[^;]*?>=(?P<least>[\d.]+)[^;]*;\s*extra\s*==\s*['\"](?P<extra>[\w-]+)['\"]"
)


def check_versions(feature: str, extra: str) -> None:
    """Compare what is installed with what the extra asks for.

    Args:
        feature: What needs it, for the message.
        extra: The extra of this package.

    Raises:
        MissingExtra: a library of the extra is not installed, or is too old.
    """
    for name, least in _required(extra):
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            raise MissingExtra(feature, extra) from None
        if _numbers(found) < _numbers(least):
            raise MissingExtra(feature, extra, lacking=f"{name} {least} or newer, and {found} is installed")


def _required(extra: str) -> list[tuple[str, str]]:
    """The libraries of an extra with their least versions; none when this package was not installed but copied."""
    try:
        requirements = metadata.requires("lcse-plugins") or []
    except metadata.PackageNotFoundError:
        return []
    found = (_REQUIREMENT.fullmatch(requirement.strip()) for requirement in requirements)
    return [(match[1], match[2]) for match in found if match and match[3] == extra]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])
