"""Evidence: how strongly an image shows each concept.

A similarity s becomes a logit x = β (s - μ) and a probability sigmoid(x). The arithmetic that follows works on logits,
where "not" is a change of sign and nothing is lost near 0 and 1; probabilities are what people are shown.

Functions take numpy arrays or torch tensors, in float32 or float64, and give back the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from array_api_compat import array_namespace

from lcse_plugins.scoring.calibration import Calibration

__all__ = ["Array", "ConceptEvidence", "Logits", "gather_logits", "probability"]

Array: TypeAlias = Any
"""A numpy array or a torch tensor of floats."""

Logits: TypeAlias = Mapping[str, Array]
"""Concept text → (n,) logits."""

LARGEST_LOGIT = 1e6
"""No cosine reaches it; it keeps the arithmetic finite for any finite input."""


@dataclass(frozen=True, slots=True)
class ConceptEvidence:
    """What the encoder saw of one concept in one image.

    Attributes:
        concept: its text.
        negated: whether the query excludes it.
        similarity: mean cosine over the prompt templates.
        probability: evidence that the image shows it, before negation.
    """

    concept: str
    negated: bool
    similarity: float
    probability: float

    @property
    def label(self) -> str:
        """What the query says of it: `cup`, or `no cat`."""
        return f"no {self.concept}" if self.negated else self.concept

    @property
    def fits(self) -> bool:
        """Whether the image rather does as the query says than not."""
        return (self.probability >= 0.5) != self.negated

    def to_json(self) -> dict[str, Any]:
        """The evidence as JSON values."""
        return {
            "concept": self.concept,
            "negated": self.negated,
            "similarity": self.similarity,
            "probability": self.probability,
        }


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
