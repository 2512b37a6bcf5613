"""What a ranking gives back: the images in order, each with the reason why it stands there."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, SupportsIndex, TypeAlias, overload

import numpy as np

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import to_json
from lcse_plugins.scoring.config import Mode

__all__ = ["Candidate", "ConceptEvidence", "Ranked", "Ranking", "Word"]

Word: TypeAlias = Literal["clear", "likely", "unclear", "not seen"]

WORDS_FROM_PRESENCE: Mapping[Word, float] = {"clear": 0.8, "likely": 0.5, "unclear": 0.1}
"""The least chance of being there for each word."""

WORDS_FROM_PROBABILITY: Mapping[Word, float] = {"clear": 0.99, "likely": 0.95, "unclear": 0.5}
"""The same for evidence that was not fitted: measured on photographs, it promises more than is there."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """An image that may be ranked.

    Attributes:
        id: its identity, handed back unchanged.
        vector: (d,) image vector.
        payload: anything of the host's, handed back unchanged.
    """

    id: Hashable
    vector: FloatArray
    payload: Any = None


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
        return {**asdict(self), "word": self.word}


def _in_words(value: float, words: Mapping[Word, float]) -> Word:
    return next((word for word, least in words.items() if value >= least), "not seen")


@dataclass(frozen=True, eq=False)
class Ranked:
    """A ranked image and the reason for its place.

    Attributes:
        candidate: the image.
        score: what it was ranked by.
        truth: how far the query holds for it, in [0, 1].
        holistic: its ordinary similarity to the text.
        evidence: what was seen of each concept.
        satisfies: whether the query holds for it: truth of one half on the presence scale, or `min_truth` if given.
    """

    candidate: Candidate
    score: float
    truth: float
    holistic: float
    evidence: tuple[ConceptEvidence, ...]
    satisfies: bool

    @property
    def id(self) -> Hashable:
        """Identity of the image."""
        return self.candidate.id

    @property
    def correction(self) -> float:
        """What the logic added to the ordinary similarity."""
        return self.score - self.holistic

    @property
    def reason(self) -> str:
        """Why it stands where it does, in one plain line: `dog: clear · no person: not seen`."""
        return " · ".join(item.seen for item in self.evidence)

    def explain(self) -> str:
        """Its identity, the reason and the arithmetic."""
        sign = "+" if self.correction >= 0 else "-"
        return (
            f"{self.id}: {self.reason} (score {self.score:.3f} = similarity {self.holistic:.3f} "
            f"{sign} {abs(self.correction):.3f} by logic, truth {self.truth:.2f})"
        )

    def to_json(self) -> dict[str, Any]:
        """The result as JSON values, without the vector and the payload."""
        return {
            "id": self.id.item() if isinstance(self.id, np.generic) else self.id,
            "score": self.score,
            "holistic": self.holistic,
            "correction": self.correction,
            "truth": self.truth,
            "satisfies": self.satisfies,
            "evidence": [item.to_json() for item in self.evidence],
        }


class Ranking(list[Ranked]):
    """Ranked images, best first, and what is known about the ranking as a whole.

    Attributes:
        parse: how the query was read, and by which parser.
        mode: how it was scored.
        exact: whether no image of the collection could stand higher than these.
    """

    def __init__(self, results: Iterable[Ranked], *, parse: Parse, mode: Mode, exact: bool) -> None:
        super().__init__(results)
        self.parse = parse
        self.mode = mode
        self.exact = exact

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> Ranked: ...

    @overload
    def __getitem__(self, place: slice, /) -> Ranking: ...

    def __getitem__(self, place: SupportsIndex | slice, /) -> Ranked | Ranking:
        """One result; or, of a slice, the ranking of those alone, whose `exact` still speaks of the whole."""
        if isinstance(place, slice):
            return Ranking(super().__getitem__(place), parse=self.parse, mode=self.mode, exact=self.exact)
        return super().__getitem__(place)

    @property
    def satisfied(self) -> int:
        """How many of these results satisfy the query."""
        return sum(result.satisfies for result in self)

    @property
    def summary(self) -> str:
        """Where the answer ends, in a sentence."""
        count = self.satisfied
        if not self:
            return "Nothing was found."
        if not count:
            return "Nothing here satisfies this; these are the nearest."
        said = "1 picture satisfies this" if count == 1 else f"{count} pictures satisfy this"
        return f"{said}." if count == len(self) else f"{said}; the rest are the nearest."

    def to_json(self) -> dict[str, Any]:
        """The ranking as JSON values, with who read the query and what there is to know about that."""
        return {
            "query": self.parse.text,
            "tree": to_json(self.parse.tree),
            "parser": self.parse.parser,
            "sure": self.parse.sure,
            "notes": list(self.parse.notes),
            "error": self.parse.error,
            "mode": self.mode,
            "exact": self.exact,
            "satisfied": self.satisfied,
            "results": [result.to_json() for result in self],
        }
