"""Items in batches, drawn as they are taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

__all__ = ["batched"]

Item = TypeVar("Item")


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` items, the last one perhaps shorter; no more is drawn than the batch that is asked for."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
