"""A query ready to score: what was asked, the vectors it is asked with, and how they are combined."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lcse_plugins.encoders.protocol import FloatArray
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import Query, affirms_nothing, canonical, concepts, leaves, ordered
from lcse_plugins.retrieval.plan import Plan
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.edit import edits_nothing, score_ceiling, score_tree
from lcse_plugins.scoring.evidence import ConceptEvidence, probability

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

    @cached_property
    def tree(self) -> Query:
        """The canonical tree."""
        return canonical(self.parse.query)

    @cached_property
    def scored_tree(self) -> Query:
        """The canonical tree in the order in which it is evaluated."""
        return ordered(self.tree)

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
        """(n,) scores and (n,) truths from (n, 1 + m) products of image vectors with `matrix`."""
        scores, truth = self._score(similarities)
        return scores, probability(truth)

    def scores(self, similarities: FloatArray) -> FloatArray:
        """(n,) scores from the same products."""
        return similarities[:, 0] if self.edits_nothing else self._score(similarities)[0]

    def score_ceiling(self, similarities: FloatArray) -> FloatArray:
        """(n,) numbers not below the scores, at a fraction of the work, from the same products."""
        holistic, columns = self._columns(similarities)
        ceiling: FloatArray = score_ceiling(
            self.scored_tree, holistic, columns, calibration=self.calibration, config=self.config
        )
        return ceiling

    def _score(self, similarities: FloatArray) -> tuple[FloatArray, FloatArray]:
        if len(similarities) == 1:  # numpy adds up one image's numbers in another order than those of many
            scores, truths = self._score(np.repeat(similarities, 2, axis=0))
            return scores[:1], truths[:1]
        holistic, columns = self._columns(similarities)
        return score_tree(self.scored_tree, holistic, columns, calibration=self.calibration, config=self.config)

    def _columns(self, similarities: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
        return similarities[:, 0], {name: similarities[:, i] for i, name in enumerate(self.concepts, start=1)}

    def evidence(self, similarities: FloatArray) -> list[tuple[ConceptEvidence, ...]]:
        """The evidence of each of n images, from the (n, 1 + m) products of their vectors with `matrix`."""
        cosines = similarities[:, 1:].astype(np.float64)
        chances = probability((cosines - self.calibration.mu) * self.calibration.beta)
        columns = [(concept, self.negated[concept]) for concept in self.concepts]
        return [
            tuple(
                ConceptEvidence(*column, cosine, chance) for column, cosine, chance in zip(columns, *row, strict=True)
            )
            for row in zip(cosines.tolist(), chances.tolist(), strict=True)
        ]
