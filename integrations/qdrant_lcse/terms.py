"""Truths as parts of a formula: evidence, and what NOT, AND and OR make of it.

Evidence is carried as inverse odds w = e^(-logit), where NOT and AND lose nothing, and everything is written so that it
stays finite and precise for every cosine in [-1, 1]: bounds of each part are known when the formula is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from lcse_plugins.errors import InvalidOption
from lcse_plugins.query import And, Group, Plain, Query, fold
from lcse_plugins.scoring.calibration import Calibration
from lcse_plugins.scoring.config import ScoringConfig
from qdrant_lcse.expressions import (
    Expression,
    absolute,
    average,
    constant,
    exp,
    ln,
    negative,
    over,
    plus,
    power,
    times,
)

__all__ = ["Evidence", "Term", "evidence_of", "log_ratio", "mean_term", "truth_term"]

LARGEST_EXPONENT = 650.0
"""Natural logarithms of what may appear in a formula: float64 ends at 709."""

BLEND = 1e-7
"""Where a power mean of near-certain truths passes over to their plain mean, before 1 + w forgets w."""


@dataclass(frozen=True, eq=False)
class Term:
    """A truth as its logit or its inverse odds, of which one is given, and the range its logit cannot leave."""

    low: float
    high: float
    known_logit: Expression | None = None
    known_inverse: Expression | None = None

    @property
    def reach(self) -> float:
        """How far from zero the logit can be."""
        return max(abs(self.low), abs(self.high))

    @cached_property
    def logit(self) -> Expression:
        """ln(p / (1 - p))."""
        return self.known_logit if self.known_logit is not None else negative(ln(self.inverse))

    @cached_property
    def inverse(self) -> Expression:
        """Inverse odds w = (1 - p) / p."""
        return self.known_inverse if self.known_inverse is not None else _exp(negative(self.logit), self.reach)

    def opposite(self) -> Term:
        """NOT."""
        if self.known_logit is not None:
            return Term(-self.high, -self.low, known_logit=negative(self.known_logit))
        return Term(-self.high, -self.low, known_inverse=over(1.0, self.inverse))


@dataclass(frozen=True, eq=False)
class Evidence(Term):
    """The truth of one concept: its logit grows in proportion to a similarity.

    Attributes:
        place: which of the formula's similarities.
        slope: by how much the logit grows with it.
        offset: the logit where it is zero.
    """

    place: int = 0
    slope: float = 0.0
    offset: float = 0.0

    @cached_property
    def logit(self) -> Expression:
        """ln(p / (1 - p))."""
        return plus(times(self.slope, f"$score[{self.place}]"), self.offset)

    @cached_property
    def inverse(self) -> Expression:
        """Inverse odds w = (1 - p) / p."""
        return _exp(self.opposite().logit, self.reach)

    def opposite(self) -> Evidence:
        """NOT."""
        return Evidence(-self.high, -self.low, place=self.place, slope=-self.slope, offset=-self.offset)


def evidence_of(scale: float, length: float, calibration: Calibration, *, place: int) -> Evidence:
    """The evidence of one concept.

    Args:
        scale: What turns its similarity into a dot product.
        length: Length of its vector.
        calibration: μ and β.
        place: Which of the formula's similarities it is.
    """
    mu, beta = calibration.mu, calibration.beta
    reach = beta * (abs(mu) + 1.001 * length)
    return Evidence(-reach, reach, place=place, slope=beta * scale, offset=-beta * mu)


def log_ratio(above: Term, below: Term) -> Expression:
    """How much larger the logit of `above` is than that of `below`; one logarithm where their ratio cannot overflow."""
    if above.reach + below.reach <= LARGEST_EXPONENT:
        return ln(over(below.inverse, above.inverse))
    return plus(above.logit, negative(below.logit))


def truth_term(tree: Query, terms: Mapping[str, Term], config: ScoringConfig) -> Term:
    """The truth of a canonical tree over the evidence of its concepts.

    Raises:
        InvalidOption: an exponent or β is too large for a formula.
    """
    return fold(
        tree,
        lambda text, negated: terms[text].opposite() if negated else terms[text],
        lambda group, parts: _combined(group, parts, config),
    )


def _combined(group: Group, parts: list[Term], config: ScoringConfig) -> Term:
    if isinstance(group, Plain):
        return mean_term(parts)
    conjunction = isinstance(group, And)
    if config.aggregator == "probabilistic":
        return _product(parts) if conjunction else _product([part.opposite() for part in parts]).opposite()
    if config.aggregator == "minmax":
        return _extreme(parts, smallest=conjunction)
    return _power_mean(parts, config.gamma_and if conjunction else config.gamma_or)


def _power_mean(parts: Sequence[Term], gamma: float) -> Term:
    """(mean p^γ)^(1/γ)."""
    if math.isinf(gamma):
        return _extreme(parts, smallest=gamma < 0)
    if gamma == 1.0:
        return mean_term(parts)
    mean = average([part.inverse for part in parts])
    if gamma != -1.0:
        grown = plus(_inverse_power_mean(parts, gamma), -1.0)
        # Near certainty every power mean of p has the plain mean of w; there `grown` is rounding noise.
        mean = times(mean, over(plus(absolute(grown), BLEND), plus(mean, BLEND)))
    return Term(min(part.low for part in parts), max(part.high for part in parts), known_inverse=mean)


def _inverse_power_mean(parts: Sequence[Term], gamma: float) -> Expression:
    """One over the power mean: (mean (1 + w)^(-γ))^(-1/γ), at least 1."""
    grown = [plus(1.0, part.inverse) for part in parts]
    if abs(gamma) < 1e-9:
        return times(*(power(one, 1.0 / len(parts)) for one in grown))
    deepest = max(0.0, *(-part.low for part in parts)) + math.log(2.0)
    root = over(-1.0, constant(gamma))  # divided in the database: a rounded 1/γ would not undo the power by γ
    if abs(gamma) * deepest <= LARGEST_EXPONENT:
        return power(average([power(one, -gamma) for one in grown]), root)
    # Divide by a mean of the same kind with a milder exponent: at least the largest part, so that no power overflows,
    # and near enough to it that not all of them vanish.
    mild = math.copysign(LARGEST_EXPONENT / deepest, gamma)
    if abs(gamma / mild) * math.log(len(parts)) > LARGEST_EXPONENT:
        raise InvalidOption(f"a power mean with exponent {gamma:g} does not fit a formula; use execution='client'")
    reference = power(plus(*(power(one, -mild) for one in grown)), 1.0 / mild)
    return over(power(average([power(times(one, reference), -gamma) for one in grown]), root), reference)


def mean_term(parts: Sequence[Term]) -> Term:
    """The plain mean of probabilities: mean (1 - p) over mean p, with 1 - p = w / (1 + w) and p = 1 / (1 + w)."""
    if len(parts) == 1:
        return parts[0]
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    inverse = [part.inverse for part in parts]
    if len(parts) == 2 and sum(part.reach for part in parts) <= LARGEST_EXPONENT:  # over one denominator
        both = plus(*inverse)
        return Term(low, high, known_inverse=over(plus(both, times(2.0, *inverse)), plus(2.0, both)))
    grown = [plus(1.0, w) for w in inverse]
    absent = plus(*(over(w, one) for w, one in zip(inverse, grown, strict=True)))
    present = plus(*(over(1.0, one) for one in grown))
    return Term(low, high, known_inverse=over(absent, present))


def _product(parts: Sequence[Term]) -> Term:
    """The product of probabilities: 1 + w = Π (1 + w_j), expanded so that no 1 is taken away."""
    terms = [
        times(*(plus(1.0, before.inverse) for before in parts[:place]), part.inverse)
        for place, part in enumerate(parts)
    ]
    low = -sum(max(0.0, -part.low) + math.log(2.0) for part in parts)
    _check_exponent(low)
    return Term(low, min(part.high for part in parts), known_inverse=plus(*terms))


def _extreme(parts: Sequence[Term], *, smallest: bool) -> Term:
    """The smallest or the largest logit: (a + b ∓ |a - b|) / 2."""

    def two(a: Expression, b: Expression) -> Expression:
        apart = absolute(plus(a, negative(b)))
        return times(0.5, plus(a, b, negative(apart) if smallest else apart))

    pick: Callable[[list[float]], float] = min if smallest else max
    logit = _halving([part.logit for part in parts], two)
    return Term(pick([part.low for part in parts]), pick([part.high for part in parts]), known_logit=logit)


def _halving(items: Sequence[Expression], two: Callable[[Expression, Expression], Expression]) -> Expression:
    """Combine in pairs: a formula repeats its parts, and a balanced one repeats them least."""
    if len(items) <= 2:
        return reduce(two, items)
    half = len(items) // 2
    return two(_halving(items[:half], two), _halving(items[half:], two))


def _exp(part: Expression, reach: float) -> Expression:
    _check_exponent(reach)
    return exp(part)


def _check_exponent(reach: float) -> None:
    if abs(reach) > LARGEST_EXPONENT:
        raise InvalidOption("evidence is too steep for a formula (β is very large); use execution='client'")
