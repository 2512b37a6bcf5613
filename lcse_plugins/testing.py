"""Doubles for testing a pipeline with no model: an encoder whose vectors are known, and a gallery made with it.

    >>> encoder, gallery = toy_gallery()
    >>> scorer = LogicScorer(encoder)
    >>> [result.id for result in scorer.rank("umbrella and no person", gallery, limit=2)]
    ['umbrella', 'umbrella bench']

`ToyEncoder` hears words and no operators, as real dual encoders do, so a query's plain similarity shows their flaw.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from lcse_plugins.encoders.protocol import FloatArray, ImageSource
from lcse_plugins.errors import EncoderError
from lcse_plugins.scoring.arguments import pictures_of, texts_of
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.results import Candidate

__all__ = ["ToyEncoder", "toy_gallery"]

_UNHEARD = frozenset(
    "a an the of in on at to is are it that with and or no not but without neither nor either both any photo image"
    " picture scene jpg png".split()
)


class ToyEncoder:
    """A bag-of-words encoder: a text is the sum of its words' vectors; so is an image, named by its file name.

    Args:
        vectors: Word → vector, set by hand, in any case; all of one length. Other words get a fixed pseudo-random
            vector.
        dimension: Length of the vectors when none are set by hand.
    """

    def __init__(self, vectors: Mapping[str, ArrayLike] | None = None, *, dimension: int = 64) -> None:
        self._words = {word.lower(): np.asarray(vector, dtype=np.float64) for word, vector in (vectors or {}).items()}
        self._dimension = len(next(iter(self._words.values()))) if self._words else dimension
        table = repr(sorted((word, vector.tolist()) for word, vector in self._words.items())).encode()
        self._id = f"toy/{self._dimension}/{hashlib.sha256(table).hexdigest()[:8]}"
        self.texts_encoded = 0
        self.images_encoded = 0

    @property
    def encoder_id(self) -> str:
        """Identity of the encoder."""
        return self._id

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._dimension

    @property
    def calibration(self) -> Calibration:
        """Half-way between the cosine of a word alone and that of a word not there."""
        return Calibration(mu=0.35, beta=20.0, encoder_id=self.encoder_id)

    def encode_texts(self, texts: Sequence[str]) -> FloatArray:
        """(n, d) unit rows."""
        rows = [self._sum(text) for text in texts_of(texts)]
        self.texts_encoded += len(rows)
        return self._rows(rows)

    def encode_images(self, images: Iterable[ImageSource], *, batch_size: int | None = None) -> FloatArray:
        """(n, d) unit rows: of the words of a file's name, or a fixed pseudo-random vector of a picture's bytes."""
        rows = []
        for image in pictures_of(images):
            if isinstance(image, str | Path):
                rows.append(self._sum(Path(image).stem))
            else:
                rows.append(self._hashed(image if isinstance(image, bytes) else image.tobytes()))
        self.images_encoded += len(rows)
        return self._rows(rows)

    def _rows(self, rows: list[np.ndarray]) -> FloatArray:
        if not rows:
            return np.empty((0, self._dimension), dtype=np.float32)
        table = np.stack(rows)
        return np.asarray(table / np.linalg.norm(table, axis=1, keepdims=True), dtype=np.float32)

    def _sum(self, text: str) -> np.ndarray:
        words = [word for word in re.findall(r"[^\W_]+", text.lower()) if word not in _UNHEARD]
        total = np.sum([self._word(word) for word in words or [text]], axis=0)
        if not np.any(total):
            raise EncoderError(f"the words of {text!r} cancel to a zero vector; set other vectors for them")
        return np.asarray(total)

    def _word(self, word: str) -> np.ndarray:
        return self._words[word] if word in self._words else self._hashed(word.encode())

    def _hashed(self, data: bytes) -> np.ndarray:
        seed = int.from_bytes(hashlib.sha256(data).digest()[:8], "big")
        vector = np.random.default_rng(seed).standard_normal(self._dimension)
        return np.asarray(vector / np.linalg.norm(vector))


def toy_gallery(*, dimension: int = 64) -> tuple[ToyEncoder, list[Candidate]]:
    """A toy encoder and a dozen candidates whose ids name what they show."""
    encoder = ToyEncoder(dimension=dimension)
    names = (
        "umbrella person, umbrella, person, umbrella bench, person bench, car street, street, car person street, "
        "dog park, cat sofa, dog cat sofa, dog person park"
    ).split(", ")
    vectors = encoder.encode_images(names)
    return encoder, [Candidate(id=name, vector=vector) for name, vector in zip(names, vectors, strict=True)]
