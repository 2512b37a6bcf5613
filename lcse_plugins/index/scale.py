"""What carries the similarities of an index's regions over to those of whole images, kept with it.

A search then needs no fit of its own. It is fitted again when the pictures of the index have changed.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import Encoder
from lcse_plugins.errors import CalibrationError
from lcse_plugins.retrieval.tiles import ViewScale, fit_view_scale

__all__ = ["IndexScale", "fit_index_scale"]

SAMPLE = 2_048
"""Pictures to fit on at most, evenly spread over the index."""


class IndexScale(NamedTuple):
    """A fitted `ViewScale`, and which pictures it was fitted for.

    Attributes:
        factor: Of the view scale.
        offset: Of the view scale.
        fitted_for: Checksum of the pictures' checksums.
    """

    factor: float
    offset: float
    fitted_for: int

    @classmethod
    def from_json(cls, text: str) -> IndexScale:
        """Read one that was written as JSON.

        Raises:
            TypeError, ValueError, OverflowError: it is not one.
        """
        factor, offset, fitted_for = json.loads(text)
        if not math.isfinite(factor) or not math.isfinite(offset):
            raise ValueError(f"{text} is no scale")
        return cls(factor, offset, int(fitted_for))

    @property
    def view_scale(self) -> ViewScale:
        """The scale, to score with."""
        return ViewScale(self.factor, self.offset)


def fit_index_scale(
    encoder: Encoder,
    vectors: NDArray[np.floating],
    regions: NDArray[np.floating],
    *,
    rows: Sequence[int],
    checksums: Sequence[int | None],
    known: IndexScale | None = None,
) -> IndexScale | None:
    """The scale for some rows of an index, or the known one if it was fitted for just them; None without rows.

    Pictures that are all alike tell no scale: their similarities are left as they are.

    Args:
        encoder: The encoder of the vectors.
        vectors: (n, d) vectors of whole images; may be memory-mapped.
        regions: (n, r, d) vectors of their regions; may be memory-mapped.
        rows: The rows in use.
        checksums: Of those rows.
        known: The scale so far.
    """
    fitted_for = zlib.crc32(repr(list(checksums)).encode())
    if not rows or (known is not None and known.fitted_for == fitted_for):
        return known
    chosen = np.asarray(rows)[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.intp)]
    sample = (np.asarray(table[chosen], dtype=np.float32) for table in (vectors, regions))
    try:
        scale = fit_view_scale(encoder, *sample)
    except CalibrationError:
        scale = ViewScale()
    return IndexScale(scale.factor, scale.offset, fitted_for)
