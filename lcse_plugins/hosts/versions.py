"""Whether an installed library is one that an extra asks for: pip only checks what is installed with an extra."""

from __future__ import annotations

import logging
from importlib import metadata

from packaging.requirements import Requirement

from lcse_plugins.errors import MissingExtra

__all__ = ["check_versions"]

logger = logging.getLogger(__name__)


def check_versions(feature: str, extra: str) -> None:
    """Compare what is installed with what the extra asks for; the log tells of what is newer than it allows.

    Args:
        feature: What needs it, for the message.
        extra: The extra of this package.

    Raises:
        MissingExtra: a library of the extra is not installed, or is too old.
    """
    for required in _required(extra):
        try:
            found = metadata.version(required.name)
        except metadata.PackageNotFoundError:
            raise MissingExtra(feature, extra) from None
        for specifier in required.specifier:
            if specifier.contains(found, prereleases=True):
                continue
            if specifier.operator != ">=":
                logger.warning("%s was tried with %s%s, and %s is installed", feature, required.name, specifier, found)
                continue
            lacking = f"{required.name} {specifier.version} or newer, and {found} is installed"
            raise MissingExtra(feature, extra, lacking=lacking)


def _required(extra: str) -> list[Requirement]:
    """What an extra asks for beyond the package itself; nothing when this was not installed but copied."""
    try:
        requirements = map(Requirement, metadata.requires("lcse-plugins") or ())
    except metadata.PackageNotFoundError:
        return []
    return [
        required
        for required in requirements
        if (marker := required.marker) and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})
    ]
