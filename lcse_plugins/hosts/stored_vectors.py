"""Vectors as a store gives them back."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lcse_plugins.encoders.protocol import FloatArray

__all__ = ["usable_vector"]


@np.errstate(over="ignore", invalid="ignore")  # a vector too large for float32 is just not usable
def usable_vector(stored: ArrayLike | None) -> FloatArray | None:
    """(d,) A stored vector; None if there is none, or none that can be scored: it is zero, or not finite."""
    if stored is None:
        return None
    row = np.ravel(np.asarray(stored, dtype=np.float32))
    wide = row.astype(np.float64)
    return row if 0 < wide @ wide < np.inf else None
