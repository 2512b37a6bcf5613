"""What the status of an HTTP reply says of the request."""

from __future__ import annotations

from lcse_plugins.http_status import may_pass

__all__ = ["is_refusal"]


def is_refusal(status: int | None) -> bool:
    """Whether a server answered that the request is wrong, and will be wrong at any other time."""
    return status is not None and 400 <= status < 500 and not may_pass(status)
