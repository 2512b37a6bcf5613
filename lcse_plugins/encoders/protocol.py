"""What an encoder is, and how a concept becomes one vector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, Union, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.scoring.arguments import texts_of
from lcse_plugins.scoring.config import DEFAULT_TEMPLATES, ScoringConfig

if TYPE_CHECKING:
    from PIL.Image import Image

    from lcse_plugins.scoring.calibration import Calibration

__all__ = ["Encoder", "FloatArray", "ImageSource", "concept_vectors"]

FloatArray: TypeAlias = NDArray[np.float32]
ImageSource: TypeAlias = Union[str, Path, bytes, "Image"]
"""A picture: a path, the bytes of a file, or an opened PIL image."""


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
