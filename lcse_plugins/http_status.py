"""What the status of an HTTP reply says of a second try."""

from __future__ import annotations

__all__ = ["may_pass"]


def may_pass(status: int) -> bool:
    """Whether the same request may be answered later.

    It took too long (408), met another (409), came too early (425) or too often (429), or the server failed (5xx).
    """
    return status in (408, 409, 425, 429) or status >= 500
