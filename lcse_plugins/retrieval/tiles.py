"""Evidence from regions of an image: small things are missed when a whole picture becomes one vector.

Beside the whole image, overlapping tiles are encoded; for a query with logic, every similarity is the mean of the few
views that show it best. A query without logic still looks at the whole image only, so it ranks as before. It costs six
(or fifteen) times the vectors, and the time to encode them, so it is a choice: build a `RegionPool` and rank it like
any other, or an `ImageIndex` with `tiles=`.

    >>> pool = RegionPool.fitted(encoder, vectors, encode_regions(encoder, paths), ids=names)
    >>> scorer.rank("an umbrella and no person", pool, limit=5)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lcse_plugins.calibrating.unlabelled import COMMON_THINGS, spread_calibration
from lcse_plugins.encoders.protocol import Encoder, FloatArray, ImageSource, concept_vectors
from lcse_plugins.errors import InvalidCandidate, InvalidOption
from lcse_plugins.images.reading import load_image
from lcse_plugins.images.tiles import FEW_TILES, MANY_TILES, Tile, cut
from lcse_plugins.retrieval.leaders import Leaders
from lcse_plugins.retrieval.pool import VectorPool
from lcse_plugins.retrieval.tables import as_numbers, unit_rows
from lcse_plugins.scoring.arguments import pictures_of
from lcse_plugins.scoring.config import DEFAULT_TEMPLATES
from lcse_plugins.scoring.encoded import EncodedQuery
from lcse_plugins.scoring.results import Candidate

__all__ = ["FEW_TILES", "MANY_TILES", "RegionPool", "Tile", "ViewScale", "encode_regions", "fit_view_scale"]


VIEWS_FOR_ONE = 5
"""One view is averaged for each five that there are, the image and its tiles: two of six, three of fifteen."""

ROWS_AT_ONCE = 2_048


def encode_regions(
    encoder: Encoder,
    images: Iterable[ImageSource],
    *,
    tiles: Sequence[Tile] = FEW_TILES,
    progress: Callable[[int], None] | None = None,
) -> FloatArray:
    """(n, r, d) vectors of the tiles of each picture.

    Args:
        encoder: The encoder of the whole images.
        images: The pictures.
        tiles: Which parts of a picture to encode.
        progress: Called with the number done.

    Raises:
        ImageError: a picture cannot be read.
        InvalidOption: one picture was given where a list of them is due.
    """
    rows = []
    for done, source in enumerate(pictures_of(images), start=1):
        image = load_image(source)
        rows.append(encoder.encode_images([cut(image, tile) for tile in tiles]))
        if progress is not None:
            progress(done)
    return np.stack(rows) if rows else np.empty((0, len(tiles), encoder.dimension), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class ViewScale:
    """What turns a similarity of the best views into one of a whole image, for which μ and β were fitted."""

    factor: float = 1.0
    offset: float = 0.0


class RegionPool(VectorPool):
    """A pool in which a concept is looked for in the whole image and in its regions.

    Args:
        vectors: (n, d) vectors of whole images.
        regions: (n, r, d) vectors of their regions.
        best: Over how many views to average, those that show most; by default one of each five.
        scale: What turns such a mean into a whole image's similarity; `RegionPool.fitted` finds it.
        ids: One identity per image; by default its position.
        candidates: The candidates the rows were taken from; instead of `ids`.
        rows: Where each image's regions stand in `regions`, if not in the order of `vectors`.
        assume_unit: Trust that rows are finite and of length one; a numpy memory map is then not read to check it.

    Raises:
        InvalidCandidate: the two tables do not belong together, or a row is zero, NaN or infinite.
        InvalidOption: there are not as many views as `best`.
    """

    _block = ROWS_AT_ONCE

    def __init__(
        self,
        vectors: ArrayLike,
        regions: ArrayLike,
        *,
        best: int | None = None,
        scale: ViewScale | None = None,
        ids: Sequence[Hashable] | None = None,
        candidates: Sequence[Candidate] | None = None,
        rows: Sequence[int] | None = None,
        assume_unit: bool = False,
    ) -> None:
        super().__init__(vectors, ids=ids, candidates=candidates, assume_unit=assume_unit)
        parts = as_numbers(regions)
        self._rows = None if rows is None else np.asarray(rows, dtype=np.intp)
        images = len(parts) if self._rows is None else len(self._rows)
        if rows is not None and len(rows) and not 0 <= min(rows) <= max(rows) < len(parts):
            raise InvalidCandidate(f"rows lie between 0 and {len(parts) - 1}, the last of the regions")
        if parts.ndim != 3 or images != len(self) or parts.shape[2] != self.dimension or not parts.shape[1]:
            raise InvalidCandidate(
                f"regions form a table (images, regions, dimensions) = ({len(self)}, r, {self.dimension}), "
                f"not shape {parts.shape}"
            )
        if not assume_unit:
            parts = unit_rows(parts.reshape(-1, self.dimension)).reshape(parts.shape)
        self.regions: NDArray[np.floating] = parts
        self.best = _views_to_average(parts.shape[1], best)
        self.scale = scale or ViewScale()

    @classmethod
    def fitted(
        cls,
        encoder: Encoder,
        vectors: FloatArray,
        regions: FloatArray,
        *,
        best: int | None = None,
        ids: Sequence[Hashable] | None = None,
    ) -> RegionPool:
        """A pool whose similarities are on the scale of whole images, so that μ and β of the encoder hold for them.

        Raises:
            InvalidCandidate: the two tables do not belong together or to the encoder, or a row is zero, NaN or
                infinite.
            CalibrationError: the images are all alike.
        """
        pool = cls(vectors, regions, best=best, ids=ids)
        pool.scale = fit_view_scale(encoder, pool.vectors, pool.regions, best=pool.best)
        return pool

    def regions_of(self, positions: slice | NDArray[np.intp]) -> NDArray[np.floating]:
        """(k, r, d) vectors of the regions of the images at these positions."""
        return self.regions[positions if self._rows is None else self._rows[positions]]

    def part(self, positions: Sequence[int], *, candidates: Sequence[Candidate] | None = None) -> RegionPool:
        """A pool of the images at these positions alone, scored as here; with other candidates, if given.

        Raises:
            InvalidCandidate: no position was given.
        """
        if not len(positions):
            raise InvalidCandidate("there are no image vectors to rank; take some positions")
        chosen = np.asarray(positions, dtype=np.intp)
        return RegionPool(
            np.asarray(self.vectors[chosen], dtype=np.float32),
            self.regions_of(chosen),
            best=self.best,
            scale=self.scale,
            candidates=candidates or [self.candidate(position) for position in positions],
            assume_unit=True,
        )

    def similarities(self, encoded: EncodedQuery, positions: slice | NDArray[np.intp]) -> FloatArray:
        """(k, 1 + m) similarities of the text and the concepts to the views that show them best."""
        found = super().similarities(encoded, positions)
        if encoded.edits_nothing:
            return found
        parts = np.asarray(self.regions_of(positions), dtype=np.float32) @ encoded.matrix.T
        found = _best_views(found, parts, self.best)
        found *= self.scale.factor
        found += self.scale.offset
        return found

    def _fast_leaders(self, encoded: EncodedQuery, limit: int) -> Leaders | None:
        """None where regions count: what bounds the score of a whole image does not bound theirs."""
        return super()._fast_leaders(encoded, limit) if encoded.edits_nothing else None


def fit_view_scale(
    encoder: Encoder,
    vectors: FloatArray,
    regions: FloatArray,
    *,
    best: int | None = None,
    vocabulary: Sequence[str] = COMMON_THINGS,
    templates: Sequence[str] = DEFAULT_TEMPLATES,
) -> ViewScale:
    """The mean of the best views lies higher than the similarity of the whole, and spreads less: by how much.

    Found from the vectors alone, with common things: middle and deviation of the one are laid over those of the other.

    Args:
        encoder: The encoder of the vectors.
        vectors: (n, d) vectors of whole images.
        regions: (n, r, d) vectors of their regions.
        best: Over how many views to average; by default one of each five.
        vocabulary: Things to look for.
        templates: The prompts that concepts will be scored with.

    Raises:
        InvalidCandidate: the vectors are of another encoder.
        CalibrationError: the similarities are all alike.
        InvalidOption: there are not as many views as `best`.
    """
    if not vectors.shape[1] == regions.shape[2] == encoder.dimension:
        raise InvalidCandidate(
            f"images and regions of shape {vectors.shape} and {regions.shape} are not the encoder's, "
            f"which have {encoder.dimension} dimensions"
        )
    averaged = _views_to_average(regions.shape[1], best)
    concepts = concept_vectors(encoder, vocabulary, templates=templates)
    pooled, whole = [], vectors @ concepts.T
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        pooled.append(_best_views(whole[part], regions[part] @ concepts.T, averaged))
    plain, viewed = spread_calibration(whole), spread_calibration(np.concatenate(pooled))
    factor = viewed.beta / plain.beta
    return ViewScale(factor, plain.mu - factor * viewed.mu)


def _views_to_average(regions: int, asked: int | None) -> int:
    best = -(-(1 + regions) // VIEWS_FOR_ONE) if asked is None else asked
    if not 1 <= best <= 1 + regions:
        raise InvalidOption(f"best lies between 1 and the {1 + regions} views of an image, not {best}")
    return best


def _best_views(whole: FloatArray, parts: FloatArray, best: int) -> FloatArray:
    """(k, m) means of the `best` largest of (k, m) similarities of images and (k, r, m) of their regions."""
    views = np.concatenate([whole[:, None, :], parts], axis=1)
    return np.asarray(np.partition(views, -best, axis=1)[:, -best:].mean(axis=1), dtype=np.float32)
