"""Evidence from regions of an image: small things are missed when a whole picture becomes one vector.

Beside the whole image, five overlapping tiles are encoded; a concept's similarity is the largest of the six. The text
of the whole query is still compared with the whole image, so a query without logic ranks as before. It costs six times
the vectors, and the time to encode them, so it is a choice: build a `RegionPool` and rank it like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lcse_plugins.calibrate import Calibration
from lcse_plugins.config import DEFAULT_TEMPLATES
from lcse_plugins.encoded import EncodedQuery
from lcse_plugins.encoders.images import load_image
from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource, concept_vectors
from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.pool import VectorPool, top_indices, unit_rows
from lcse_plugins.results import Candidate
from lcse_plugins.unlabelled import COMMON_THINGS, spread_calibration

__all__ = ["REGIONS", "RegionPool", "encode_regions", "estimate_region_calibration"]

REGIONS = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.5))
"""Where each tile lies: shares of the free width and height left of it and above it."""

TILE = 0.6
"""Side of a tile, as a share of the image's."""

ROWS_AT_ONCE = 2_048


def encode_regions(
    encoder: Encoder, images: Iterable[ImageSource], *, progress: Callable[[int], None] | None = None
) -> FloatArray:
    """(n, 5, d) vectors of the tiles of each picture.

    Args:
        encoder: The encoder of the whole images.
        images: The pictures.
        progress: Called with the number done.

    Raises:
        ImageError: a picture cannot be read.
    """
    rows = []
    for done, source in enumerate(images, start=1):
        image = load_image(source)
        width, height = (max(1, round(TILE * side)) for side in image.size)
        corners = [
            (round(across * (image.width - width)), round(down * (image.height - height))) for across, down in REGIONS
        ]
        rows.append(encoder.encode_images([image.crop((x, y, x + width, y + height)) for x, y in corners]))
        if progress is not None:
            progress(done)
    return np.stack(rows) if rows else np.empty((0, len(REGIONS), encoder.dimension), dtype=np.float32)


class RegionPool(VectorPool):
    """A pool in which a concept counts as seen where the whole image or any region shows it.

    Args:
        vectors: (n, d) vectors of whole images.
        regions: (n, r, d) vectors of their regions.
        ids: One identity per image; by default its position.
        candidates: The candidates the rows were taken from; instead of `ids`.

    Raises:
        InvalidCandidate: the two tables do not belong together, or a row is zero, NaN or infinite.
    """

    def __init__(
        self,
        vectors: ArrayLike,
        regions: ArrayLike,
        *,
        ids: Sequence[Hashable] | None = None,
        candidates: Sequence[Candidate] | None = None,
    ) -> None:
        super().__init__(vectors, ids=ids, candidates=candidates)
        parts = np.asarray(regions)
        if parts.ndim != 3 or parts.shape[0] != len(self) or parts.shape[2] != self.dimension or not parts.shape[1]:
            raise InvalidCandidate(
                f"regions form a table (images, regions, dimensions) = ({len(self)}, r, {self.dimension}), "
                f"not shape {parts.shape}"
            )
        self.regions: NDArray[np.floating] = unit_rows(parts.reshape(-1, self.dimension)).reshape(parts.shape)

    def similarities(self, encoded: EncodedQuery, positions: slice | NDArray[np.intp]) -> FloatArray:
        """(k, 1 + m) similarities: of the text to the whole image, of a concept to whatever shows it best."""
        found = super().similarities(encoded, positions)
        if not encoded.edits_nothing:
            parts = np.asarray(self.regions[positions], dtype=np.float32) @ encoded.concept_vectors.T
            found[:, 1:] = np.maximum(found[:, 1:], parts.max(axis=1))
        return found

    def top(
        self, encoded: EncodedQuery, *, limit: int | None = None, min_truth: float | None = None
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Positions and scores of the best images, best first; equal scores keep the order of the pool."""
        if encoded.edits_nothing:
            return super().top(encoded, limit=limit, min_truth=min_truth)
        scores, truths = np.empty((2, len(self)), dtype=np.float32)
        for start in range(0, len(self), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            scores[part], truths[part] = encoded.score_similarities(self.similarities(encoded, part))
        kept = np.arange(len(self)) if min_truth is None else np.flatnonzero(truths >= min_truth)
        best = kept[top_indices(scores[kept], limit)]
        return best, scores[best]


def estimate_region_calibration(
    encoder: Encoder,
    vectors: FloatArray,
    regions: FloatArray,
    *,
    vocabulary: Sequence[str] = COMMON_THINGS,
    templates: Sequence[str] = DEFAULT_TEMPLATES,
) -> Calibration:
    """μ and β for the largest similarity of six, which lies higher than that of one: from the vectors alone."""
    concepts = concept_vectors(encoder, list(vocabulary), templates=templates)
    largest = np.maximum(vectors @ concepts.T, (regions @ concepts.T).max(axis=1))
    found = spread_calibration(largest)
    return Calibration(mu=found.mu, beta=found.beta, encoder_id=encoder.encoder_id)
