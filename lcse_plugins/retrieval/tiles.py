"""Evidence from tiles of an image: small things are missed when a whole picture becomes one vector.

Beside the whole image its four corners and its centre are encoded; for a query with logic, every similarity is the mean
of the two views that show it best. A query without logic still looks at the whole image only, so it ranks as before. It
costs six times the vectors and the time to encode them, so it is a choice: an `ImageIndex` with `tiles="few"`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lcse_plugins.calibrating.unlabelled import COMMON_THINGS, spread_calibration
from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource, concept_vectors
from lcse_plugins.errors import InvalidCandidate
from lcse_plugins.images.reading import load_image
from lcse_plugins.images.tiles import FEW_TILES, cut
from lcse_plugins.retrieval.pool import VectorPool, as_numbers, unit_rows
from lcse_plugins.scoring.arguments import pictures_of
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate

__all__ = ["RegionPool", "ViewScale", "encode_regions", "fit_view_scale"]

BEST_VIEWS = 2
"""Views that a similarity is the mean of, those that show most: one may be right by chance."""


def encode_regions(
    encoder: Encoder, images: Iterable[ImageSource], *, progress: Callable[[int], None] | None = None
) -> FloatArray:
    """(n, 5, d) vectors of the tiles of each picture.

    Raises:
        ImageError: a picture cannot be read.
        InvalidOption: one picture was given where a list of them is due.
    """
    rows = []
    for done, source in enumerate(pictures_of(images), start=1):
        image = load_image(source)
        rows.append(encoder.encode_images([cut(image, tile) for tile in FEW_TILES]))
        if progress is not None:
            progress(done)
    return np.stack(rows) if rows else np.empty((0, len(FEW_TILES), encoder.dimension), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class ViewScale:
    """What turns a similarity of the best views into one of a whole image, for which μ and β were fitted."""

    factor: float = 1.0
    offset: float = 0.0


class RegionPool(VectorPool):
    """A pool in which a concept is looked for in the whole image and in its tiles.

    Args:
        vectors: (n, d) vectors of whole images.
        regions: (n, r, d) vectors of their tiles.
        scale: What turns the mean of the best views into a whole image's similarity; `fit_view_scale` finds it.
        ids: One identity per image; by default its position.
        candidates: The candidates the rows were taken from; instead of `ids`.
        rows: Where each image's tiles stand in `regions`, if not in the order of `vectors`.
        assume_unit: Trust that rows are finite and of length one; a numpy memory map is then not read to check it.

    Raises:
        InvalidCandidate: the two tables do not belong together, or a row is zero, NaN or infinite.
    """

    def __init__(
        self,
        vectors: ArrayLike,
        regions: ArrayLike,
        *,
        scale: ViewScale | None = None,
        ids: Sequence[Hashable] | None = None,
        candidates: Sequence[Candidate] | None = None,
        rows: Sequence[int] | None = None,
        assume_unit: bool = False,
    ) -> None:
        super().__init__(vectors, ids=ids, candidates=candidates, assume_unit=assume_unit)
        parts = as_numbers(regions)
        self._rows = None if rows is None else np.asarray(rows, dtype=np.intp)
        count = len(parts) if rows is None else len(rows)
        if parts.ndim != 3 or count != len(self) or parts.shape[2] != self.dimension or not parts.shape[1]:
            raise InvalidCandidate(
                f"regions form a table (images, regions, dimensions) = ({len(self)}, r, {self.dimension}), "
                f"not shape {parts.shape}"
            )
        if not assume_unit:
            parts = unit_rows(parts.reshape(-1, self.dimension)).reshape(parts.shape)
        self.regions: NDArray[np.floating] = parts
        self.scale = scale or ViewScale()

    @classmethod
    def fitted(
        cls, encoder: Encoder, vectors: FloatArray, regions: FloatArray, *, ids: Sequence[Hashable] | None = None
    ) -> RegionPool:
        """A pool whose similarities are on the scale of whole images, so that μ and β of the encoder hold for them."""
        pool = cls(vectors, regions, ids=ids)
        pool.scale = fit_view_scale(encoder, pool.vectors, pool.regions)
        return pool

    def regions_of(self, positions: slice | NDArray[np.intp]) -> NDArray[np.floating]:
        """(k, r, d) vectors of the tiles of the images at these positions."""
        return self.regions[positions if self._rows is None else self._rows[positions]]

    def part(self, positions: Sequence[int], *, candidates: Sequence[Candidate] | None = None) -> RegionPool:
        """A pool of the images at these positions alone, scored as here; with other candidates, if given."""
        chosen = np.asarray(positions, dtype=np.intp)
        return RegionPool(
            np.asarray(self.vectors[chosen], dtype=np.float32),
            self.regions_of(chosen),
            scale=self.scale,
            candidates=candidates or [self.candidate(position) for position in positions],
        )

    def similarities(self, encoded: EncodedQuery, positions: slice | NDArray[np.intp]) -> FloatArray:
        """(k, 1 + m) similarities of the text and the concepts to the views that show them best."""
        whole = super().similarities(encoded, positions)
        if encoded.edits_nothing:
            return whole
        tiles = np.asarray(self.regions_of(positions), dtype=np.float32)
        return np.asarray(_best_views(whole, tiles, encoded.matrix) * self.scale.factor + self.scale.offset, np.float32)

    def _is_bounded(self, encoded: EncodedQuery) -> bool:
        return False  # what bounds the score of a whole image does not bound that of its views


def fit_view_scale(encoder: Encoder, vectors: FloatArray, regions: FloatArray) -> ViewScale:
    """The mean of the best views lies higher than the similarity of the whole, and spreads less: by how much.

    Found from (n, d) vectors of whole images and (n, r, d) of their tiles alone, with common things: middle and
    deviation of the one are laid over those of the other.

    Raises:
        InvalidCandidate: the vectors are of another encoder.
        CalibrationError: the similarities are all alike.
    """
    if not vectors.shape[1] == regions.shape[2] == encoder.dimension:
        raise InvalidCandidate(
            f"images and regions of shape {vectors.shape} and {regions.shape} are not the encoder's, "
            f"which have {encoder.dimension} dimensions"
        )
    concepts = concept_vectors(encoder, COMMON_THINGS)
    whole = vectors @ concepts.T
    plain, viewed = spread_calibration(whole), spread_calibration(_best_views(whole, regions, concepts))
    factor = viewed.beta / plain.beta
    return ViewScale(factor, plain.mu - factor * viewed.mu)


def _best_views(whole: FloatArray, regions: NDArray[np.floating], matrix: FloatArray) -> FloatArray:
    """(k, m) means of the best of (k, m) similarities of images and those of their (k, r, d) regions."""
    views = np.concatenate([whole[:, None, :], regions @ matrix.T], axis=1)
    best = min(BEST_VIEWS, views.shape[1])
    return np.asarray(np.partition(views, -best, axis=1)[:, -best:].mean(axis=1), dtype=np.float32)
