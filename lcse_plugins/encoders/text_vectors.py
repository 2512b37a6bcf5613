"""The vectors of a query's texts, each encoded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lcse_plugins.encoders.lru_cache import LruCache
from lcse_plugins.encoders.protocol import Encoder, FloatArray, concept_vectors
from lcse_plugins.errors import EncoderError

__all__ = ["TextVectors"]

CACHED_TEXTS = 4096
"""Text vectors kept; 4096 of 512 float32 numbers are 8 MB."""


class TextVectors:
    """Makes and remembers the vectors of texts, as they are, and of concepts, by templates.

    Args:
        encoder: The encoder.
        templates: Prompts averaged into one concept vector.
    """

    def __init__(self, encoder: Encoder, templates: tuple[str, ...]) -> None:
        self._encoder = encoder
        self._templates = {"text": ("{}",), "concept": templates}
        self._kept: LruCache[tuple[str, str], FloatArray] = LruCache(CACHED_TEXTS)

    def of(self, text: str, concepts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """The (d,) vector of a text and the (m, d) vectors of concepts.

        Raises:
            EncoderError: the encoder gave something else than finite numbers.
        """
        wanted = [("text", text), *(("concept", concept) for concept in concepts)]
        found = self._kept.known(wanted)
        for kind, templates in self._templates.items():
            names = [name for key, name in wanted if key == kind and (key, name) not in found]
            if not names:
                continue
            rows = concept_vectors(self._encoder, names, templates=templates)
            if not np.isfinite(rows).all():
                raise EncoderError(f"encoder {self._encoder.encoder_id!r} gave NaN or infinite vectors for {names}")
            rows.flags.writeable = False
            made = {(kind, name): row for name, row in zip(names, rows, strict=True)}
            self._kept.keep(made)
            found.update(made)
        vectors = [found[key] for key in wanted]
        return vectors[0], np.stack(vectors[1:])
