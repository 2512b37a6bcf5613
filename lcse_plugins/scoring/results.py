"""What a ranking gives back: the images in order, each with the reason why it stands there."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, SupportsIndex, overload

import numpy as np

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import canonical, to_json
from lcse_plugins.scoring.config import Mode
from lcse_plugins.scoring.evidence import ConceptEvidence

__all__ = ["Candidate", "Ranked", "Ranking"]


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
            "tree": to_json(canonical(self.parse.query)),
            "parser": self.parse.parser,
            "sure": self.parse.sure,
            "notes": list(self.parse.notes),
            "error": self.parse.error,
            "mode": self.mode,
            "exact": self.exact,
            "satisfied": self.satisfied,
            "results": [result.to_json() for result in self],
        }
