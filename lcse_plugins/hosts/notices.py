"""Log messages that are told once."""

from __future__ import annotations

import logging

__all__ = ["Notices"]


class Notices:
    """Warnings of one component, each told once whatever its values are."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._told: set[str] = set()

    def warn(self, message: str, *values: object) -> None:
        """Log a warning, unless this message was logged before."""
        if message not in self._told:
            self._told.add(message)
            self._logger.warning(message, *values)
