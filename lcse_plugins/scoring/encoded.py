"""A query ready to score: what was asked, the vectors it is asked with, and how they are combined."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import Query, affirms_nothing, concepts, leaves
from lcse_plugins.retrieval.plan import Plan
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import edits_nothing, score_tree
from lcse_plugins.scoring.logic import probability, truth_logit
from lcse_plugins.scoring.results import ConceptEvidence

__all__ = ["EncodedQuery"]


@dataclass(frozen=True, eq=False)
class EncodedQuery:
    """A parsed query with its vectors; everything a host needs to find and score images.

    Attributes:
        parse: what was asked, and how it was read.
        holistic_vector: (d,) unit vector of the whole text.
        concept_vectors: (m, d) vectors of `concepts`, in that order.
        calibration: μ and β of the encoder.
        config: mode and aggregation.
    """

    parse: Parse
    holistic_vector: FloatArray
    concept_vectors: FloatArray
    calibration: Calibration
    config: ScoringConfig

    @property
    def tree(self) -> Query:
        """The canonical tree, which is scored."""
        return self.parse.tree

    @cached_property
    def concepts(self) -> tuple[str, ...]:
        """The distinct concepts, in the order of the query."""
        return concepts(self.tree)

    @cached_property
    def negated(self) -> dict[str, bool]:
        """Concept → whether the query excludes it everywhere it names it."""
        polarity: dict[str, bool] = {}
        for leaf, negated in leaves(self.tree):
            polarity[leaf.text] = polarity.get(leaf.text, True) and negated
        return polarity

    @cached_property
    def affirms_nothing(self) -> bool:
        """Whether the query only says what images are not to show."""
        return affirms_nothing(self.tree)

    @cached_property
    def matrix(self) -> FloatArray:
        """(1 + m, d): the holistic vector above the concept vectors."""
        return np.concatenate([self.holistic_vector[None, :], self.concept_vectors])

    @cached_property
    def plan(self) -> Plan:
        """How to find its best images in a vector index."""
        return Plan(
            self.tree, self.holistic_vector, self.concept_vectors, calibration=self.calibration, config=self.config
        )

    @cached_property
    def edits_nothing(self) -> bool:
        """Whether every score under the query is the holistic similarity itself."""
        return edits_nothing(self.tree, self.config)

    def score_similarities(self, similarities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n,) scores and (n,) logits of the truth from (n, 1 + m) products of image vectors with `matrix`."""
        columns = self._columns(similarities)
        return score_tree(self.tree, similarities[:, 0], columns, calibration=self.calibration, config=self.config)

    def evidence(self, similarities: FloatArray) -> list[tuple[ConceptEvidence, ...]]:
        """The evidence of each of n images, from the (n, 1 + m) products of their vectors with `matrix`."""
        cosines = similarities[:, 1:].astype(np.float64)
        chances = probability((cosines - self.calibration.mu) * self.calibration.beta).tolist()
        presence = self.calibration.presence
        return [
            tuple(
                ConceptEvidence(
                    name, self.negated[name], cosine, chance, None if presence is None else presence.probability(cosine)
                )
                for name, cosine, chance in zip(self.concepts, *row, strict=True)
            )
            for row in zip(cosines.tolist(), chances, strict=True)
        ]

    def satisfied(
        self, similarities: FloatArray, truths: FloatArray, *, min_truth: float | None = None
    ) -> NDArray[np.bool_]:
        """(n,) whether each image satisfies the query, from the same products and the truths.

        That is a truth of at least `min_truth`; by default one half, on the presence scale where there is one. There
        an AND is its weakest part and an OR its strongest.
        """
        curve = self.calibration.presence
        if min_truth is not None or curve is None:
            return np.asarray(truths >= (0.5 if min_truth is None else min_truth))
        logits = {name: curve.intercept + curve.slope * column for name, column in self._columns(similarities).items()}
        return np.asarray(truth_logit(self.tree, logits, config=_MIN_AND_MAX) >= 0)

    def _columns(self, similarities: FloatArray) -> dict[str, FloatArray]:
        return {name: similarities[:, place] for place, name in enumerate(self.concepts, start=1)}


_MIN_AND_MAX = ScoringConfig(aggregator="minmax")
