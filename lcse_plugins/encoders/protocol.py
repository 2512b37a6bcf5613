"""What an encoder is, how its promises are checked, and how a concept becomes one vector."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, Union, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.batches import batched
from lcse_plugins.errors import EncoderError, UnknownEncoder
from lcse_plugins.scoring.arguments import check_count, is_whole, texts_of
from lcse_plugins.scoring.config import DEFAULT_TEMPLATES, ScoringConfig

if TYPE_CHECKING:
    from PIL.Image import Image

    from lcse_plugins.scoring.calibration import Calibration

__all__ = ["CheckedEncoder", "Encoder", "FloatArray", "ImageSource", "checked", "concept_vectors", "encode_in_batches"]

FloatArray: TypeAlias = NDArray[np.float32]
ImageSource: TypeAlias = Union[str, Path, bytes, "Image"]
"""A picture: a path, the bytes of a file, or an opened PIL image."""

Item = TypeVar("Item")

UNIT_TOLERANCE = 1e-3
"""Rows this close to length one are taken as they are."""

_MEMBERS = ("encoder_id", "dimension", "calibration", "encode_texts", "encode_images")


@runtime_checkable
class Encoder(Protocol):
    """A frozen dual encoder: texts and images to unit vectors of one space."""

    @property
    def encoder_id(self) -> str:
        """Identity of model, weights and preprocessing; vectors of different ids never mix."""
        ...

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        ...

    @property
    def calibration(self) -> Calibration | None:
        """The preset μ and β for this encoder, or None when they must be fitted."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        """(n_texts, dimension) float32 unit rows."""
        ...

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        """(n_images, dimension) float32 unit rows."""
        ...


class CheckedEncoder:
    """An encoder whose vectors are checked whenever it makes some; `checked` gives one. All else is its own."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.encoder_id, self.dimension, self.calibration = encoder.encoder_id, encoder.dimension, encoder.calibration
        self._warned = False

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        """(n_texts, dimension) finite float32 unit rows; EncoderError where the encoder gives something else."""
        listed = texts_of(texts)
        return self._rows(self.encoder.encode_texts(listed), len(listed), "texts")

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        """(n_images, dimension) finite float32 unit rows; EncoderError where the encoder gives something else."""
        taken = 0

        def counted() -> Iterator[ImageSource]:
            nonlocal taken
            for taken, image in enumerate(images, start=1):  # noqa: B007  (read after the loop)
                yield image

        given = images if isinstance(images, Sized) else counted()
        rows = self.encoder.encode_images(given, batch_size=batch_size)
        return self._rows(rows, len(given) if isinstance(given, Sized) else taken, "images")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "encoder":  # asked for by copy and pickle before there is an encoder
            raise AttributeError(name)
        return getattr(self.encoder, name)

    def __repr__(self) -> str:
        return repr(self.encoder)

    def _rows(self, vectors: Any, count: int, what: str) -> FloatArray:
        name = f"encoder {self.encoder_id!r}"
        if hasattr(vectors, "detach"):  # a tensor, maybe on a graph or a device
            vectors = vectors.detach().cpu().float()
        try:
            rows = np.asarray(vectors, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise EncoderError(f"{name} gave no table of numbers for {count} {what}: {error}") from error
        if rows.shape != (count, self.dimension):
            raise EncoderError(
                f"{name} gave vectors of shape {rows.shape} for {count} {what}; ({count}, {self.dimension}) is due"
            )
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
        if not np.isfinite(lengths).all() or not lengths.all():
            wrong = int((~np.isfinite(lengths) | (lengths == 0)).sum())
            raise EncoderError(f"{name} gave vectors that are zero, NaN or infinite for {wrong} of {count} {what}")
        if np.all(np.abs(lengths - 1.0) <= UNIT_TOLERANCE):
            return rows
        if not self._warned:
            self._warned = True
            warnings.warn(f"{name} gives vectors that are not of length one; they are normalised", stacklevel=3)
        return np.asarray(rows / lengths[:, None], dtype=np.float32)


def checked(encoder: Encoder) -> Encoder:
    """The encoder with its promises checked: all members, the declared dimension, finite rows of length one.

    Rows of another length are normalised, with one warning. An encoder that is checked already is returned as it is.

    Raises:
        UnknownEncoder: this is no encoder; the message names the members it lacks.
        EncoderError: its `encoder_id` or `dimension` cannot be used.
    """
    if isinstance(encoder, CheckedEncoder):
        return encoder
    if isinstance(encoder, type):
        raise UnknownEncoder(f"{encoder.__name__} is a class; pass an encoder made of it, {encoder.__name__}(…)")
    lacking = [name for name in _MEMBERS if not hasattr(encoder, name)]
    if lacking:
        raise UnknownEncoder(
            f"{type(encoder).__name__} is no encoder: it lacks {', '.join(lacking)}; "
            f"an encoder has {', '.join(_MEMBERS)} (see lcse_plugins.Encoder)"
        )
    if not isinstance(encoder.encoder_id, str) or not encoder.encoder_id:
        raise EncoderError(f"encoder_id of {type(encoder).__name__} is a name, not {encoder.encoder_id!r}")
    if not is_whole(encoder.dimension) or encoder.dimension < 1:
        raise EncoderError(f"dimension of encoder {encoder.encoder_id!r} is a number, not {encoder.dimension!r}")
    return CheckedEncoder(encoder)


def encode_in_batches(
    items: Iterable[Item], size: int, encode: Callable[[list[Item]], FloatArray], dimension: int
) -> FloatArray:
    """(n_items, dimension) float32 unit rows, of so many items at a time; no more are drawn than a batch needs."""
    check_count("batch_size", size)
    rows = [encode(batch) for batch in batched(items, size)]
    if not rows:
        return np.empty((0, dimension), dtype=np.float32)
    table = np.concatenate(rows)
    lengths = np.linalg.norm(table.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(table / lengths, dtype=np.float32)


def concept_vectors(
    encoder: Encoder, texts: Sequence[str], *, templates: Sequence[str] = DEFAULT_TEMPLATES
) -> FloatArray:
    """(n_texts, dimension) concept vectors: the mean over templates of unit text vectors.

    The mean is not normalised again, so that its product with an image is the mean of the cosines.

    Raises:
        InvalidOption: one string was given where a list of them is due, or a template does not hold one `{}`.
        QueryError: a text holds bytes that are no letters.
    """
    names = texts_of(texts)
    forms = ScoringConfig(templates=tuple(texts_of(templates, name="templates"))).templates
    if not names:
        return np.empty((0, encoder.dimension), dtype=np.float32)
    vectors = encoder.encode_texts([form.replace("{}", name) for name in names for form in forms])
    grouped = vectors.reshape(len(names), len(forms), encoder.dimension)
    return np.asarray(grouped.mean(axis=1, dtype=np.float64), dtype=np.float32)
