"""Evidence: how strongly an image shows each concept.

A similarity s becomes a logit x = β (s - μ) and a probability sigmoid(x). The arithmetic that follows works on logits,
where "not" is a change of sign and nothing is lost near 0 and 1; probabilities are what people are shown.

Functions take numpy arrays or torch tensors, in float32 or float64, and give back the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from array_api_compat import array_namespace

from lcse_plugins.scoring.calibration import Calibration

__all__ = ["Array", "ConceptEvidence", "Logits", "Word", "gather_logits", "probability"]

Array: TypeAlias = Any
"""A numpy array or a torch tensor of floats."""

Logits: TypeAlias = Mapping[str, Array]
"""Concept text → (n,) logits."""

Word: TypeAlias = Literal["clear", "likely", "unclear", "not seen"]

WORDS_FROM_PRESENCE: Mapping[Word, float] = {"clear": 0.8, "likely": 0.5, "unclear": 0.1}
"""The least chance of being there for each word."""

WORDS_FROM_PROBABILITY: Mapping[Word, float] = {"clear": 0.99, "likely": 0.95, "unclear": 0.5}
"""The same for evidence that was not fitted: measured on photographs, it promises more than is there."""

LARGEST_LOGIT = 1e6
"""No cosine reaches it; it keeps the arithmetic finite for any finite input."""


@dataclass(frozen=True, slots=True)
class ConceptEvidence:
    """What the encoder saw of one concept in one image.

    Attributes:
        concept: its text.
        negated: whether the query excludes it.
        similarity: mean cosine over the prompt templates.
        probability: evidence that the image shows it, before negation; what ranking used.
        presence: the fitted chance that it is there; None where the calibration has no presence curve.
    """

    concept: str
    negated: bool
    similarity: float
    probability: float
    presence: float | None = None

    @property
    def label(self) -> str:
        """What the query says of it: `cup`, or `no cat`."""
        return f"no {self.concept}" if self.negated else self.concept

    @property
    def word(self) -> Word:
        """How well it is seen: `clear`, `likely`, `unclear` or `not seen`."""
        if self.presence is None:
            return _in_words(self.probability, WORDS_FROM_PROBABILITY)
        return _in_words(self.presence, WORDS_FROM_PRESENCE)

    @property
    def seen(self) -> str:
        """In words: `dog: clear`, `no person: not seen`; where something unwanted is seen, that: `person: clear`."""
        return f"{self.label if self.word == 'not seen' else self.concept}: {self.word}"

    @property
    def text(self) -> str:
        """The same with the percentage, where it was fitted: `dog: clear, 97 %`."""
        percent = "" if self.presence is None or self.word == "not seen" else f", {100 * self.presence:.0f} %"
        return self.seen + percent

    @property
    def fits(self) -> bool:
        """True when the image is more likely to do as the query says of this concept than not."""
        return ((self.probability if self.presence is None else self.presence) >= 0.5) != self.negated

    def to_json(self) -> dict[str, Any]:
        """The evidence as JSON values."""
        return {
            "concept": self.concept,
            "negated": self.negated,
            "similarity": self.similarity,
            "probability": self.probability,
            "presence": self.presence,
            "word": self.word,
        }


def _in_words(value: float, words: Mapping[Word, float]) -> Word:
    return next((word for word, least in words.items() if value >= least), "not seen")


def gather_logits(similarities: Mapping[str, Array], calibration: Calibration) -> dict[str, Array]:
    """Concept → (n,) logits β (s - μ) from concept → (n,) similarities."""
    logits = {}
    for concept, similarity in similarities.items():
        logits[concept] = ((similarity - calibration.mu) * calibration.beta).clip(-LARGEST_LOGIT, LARGEST_LOGIT)
    return logits


def probability(logit: Array) -> Array:
    """(n,) sigmoid of logits, without overflow."""
    xp = array_namespace(logit)
    small = xp.exp(-xp.abs(logit))
    return xp.where(logit >= 0, 1.0, small) / (1.0 + small)
