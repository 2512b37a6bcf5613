"""What the status of an HTTP reply says of the request."""

from __future__ import annotations

__all__ = ["is_refusal"]


def is_refusal(status: int | None) -> bool:
    """Whether a server answered that the request is wrong; not that it took too long or came too soon."""
    return status is not None and 400 <= status < 500 and status not in (408, 429)
