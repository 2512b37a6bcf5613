"""Logic: from the evidence of concepts to the truth of the query.

Truth is computed as a logit, bottom-up over the canonical tree. With inverse odds w = e^(-x) the power mean
reads: NOT w → 1/w; AND (γ = -1) mean w; any γ (mean (1+w)^(-γ))^(-1/γ) - 1. All of it is written in logarithms, so no
1 - p cancels and nothing overflows. Probabilities need no clipping then; where the published formula does not clip,
the two agree.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from functools import partial

from array_api_compat import array_namespace

from lcse_plugins.query import And, Group, Plain, Query, canonical, fold, ordered
from lcse_plugins.scoring.config import ScoringConfig
from lcse_plugins.scoring.evidence import Array, Logits, probability

__all__ = [
    "and_is_below_mean",
    "evaluate",
    "power_mean",
    "soft_floor",
    "soft_logit",
    "truth_ceiling",
    "truth_logit",
]

LARGEST_EXPONENT = 1e6
"""Beyond it an exponent counts as infinite, for float32 could not hold what it makes of a logarithm."""


def evaluate(query: Query, logits: Logits, *, config: ScoringConfig) -> Array:
    """(n,) truth of the query, in [0, 1]."""
    return probability(truth_logit(ordered(canonical(query)), logits, config=config))


def power_mean(values: Array, exponent: float) -> Array:
    """(n,) power mean of probabilities (m, n) in (0, 1) over the first axis; ±inf are the maximum and the minimum."""
    xp = array_namespace(values)
    logits = xp.log(values) - xp.log1p(-values)
    return probability(_mean_logit([logits[i, ...] for i in range(logits.shape[0])], exponent))


def truth_logit(tree: Query, logits: Logits, *, config: ScoringConfig) -> Array:
    """(n,) logit of the truth of a canonical tree.

    Children are combined in the order in which they stand: give `ordered(tree)` for results that do not depend on how
    the query was written, to the last bit.
    """
    return fold(tree, partial(_leaf_logit, logits), lambda group, parts: _combine(group, parts, config))


def soft_logit(logits: Sequence[Array]) -> Array:
    """(n,) logit of the mean probability: what the query would be worth if its logic were ignored."""
    return _mean_logit(logits, 1.0)


def truth_ceiling(tree: Query, logits: Logits, *, config: ScoringConfig) -> Array:
    """(n,) numbers not below `truth_logit`, by comparisons and sums alone: what a fast first look can afford.

    Not for the `probabilistic` aggregator, whose OR exceeds its children.
    """

    def group(node: Group, parts: list[Array]) -> Array:
        xp = array_namespace(*parts)
        if isinstance(node, And) and config.aggregator == "minmax":
            return functools.reduce(xp.minimum, parts)
        if isinstance(node, And) and config.gamma_and == -1.0:
            # -log mean w is at most the mean of the -log w, and at most the smallest of them + log m.
            mean = sum(parts[1:], parts[0]) / len(parts)
            return xp.minimum(mean, functools.reduce(xp.minimum, parts) + math.log(len(parts)))
        return functools.reduce(xp.maximum, parts)

    return fold(tree, partial(_leaf_logit, logits), group)


def and_is_below_mean(config: ScoringConfig) -> bool:
    """Whether the logit of an AND is at most the mean logit of its children."""
    return config.aggregator != "power" or config.gamma_and <= -1.0


def soft_floor(logits: Sequence[Array]) -> Array:
    """(n,) numbers not above `soft_logit`, by comparisons and sums alone.

    A mean is at least its smallest term, and at least its largest term divided by their number.
    """
    if len(logits) == 1:
        return logits[0]
    xp, m = array_namespace(*logits), len(logits)
    low, high = functools.reduce(xp.minimum, logits), functools.reduce(xp.maximum, logits)
    return xp.maximum(low, (high - math.log(2 * m)).clip(None, -math.log(2 * (m - 1))))


def _leaf_logit(logits: Logits, text: str, negated: bool) -> Array:
    return -logits[text] if negated else logits[text]


def _combine(group: Group, parts: list[Array], config: ScoringConfig) -> Array:
    if isinstance(group, Plain):
        return _mean_logit(parts, 1.0)
    if config.aggregator == "probabilistic":
        return _product_logit(parts) if isinstance(group, And) else -_product_logit([-part for part in parts])
    if config.aggregator == "minmax":
        return _mean_logit(parts, -math.inf if isinstance(group, And) else math.inf)
    return _mean_logit(parts, config.gamma_and if isinstance(group, And) else config.gamma_or)


def _mean_logit(parts: Sequence[Array], gamma: float) -> Array:
    """Logit of the power mean of the probabilities behind `parts`; never outside their range."""
    if len(parts) == 1:
        return parts[0]
    xp = array_namespace(*parts)
    x = xp.stack(list(parts))
    low, high = xp.min(x, axis=0), xp.max(x, axis=0)
    if abs(gamma) > LARGEST_EXPONENT:
        return low if gamma < 0 else high
    if gamma == -1.0:
        mean = -_log_mean_exp(-x)
    elif gamma == 1.0:
        mean = _log_odds_of_mean(x)
    else:
        mean = -_log_expm1(-_log_power_mean(-_softplus(-x), gamma))
        certain = _near_one(x)
        if bool(xp.any(certain)):  # all means of probabilities are one less the plain mean of what lacks
            mean = xp.where(certain, -_log_mean_exp(-x), mean)
    return mean.clip(low, high)


def _product_logit(parts: Sequence[Array]) -> Array:
    """Logit of the product of the probabilities behind `parts`."""
    xp = array_namespace(*parts)
    x = xp.stack(list(parts))
    product = -_log_expm1(xp.sum(_softplus(-x), axis=0))
    certain = _near_one(x)
    if not bool(xp.any(certain)):
        return product
    return xp.where(certain, -_log_mean_exp(-x) - math.log(len(parts)), product)


def _near_one(x: Array) -> Array:
    """Where all probabilities behind the logits are so near one that what they lack squared is nothing."""
    xp = array_namespace(x)
    return xp.min(x, axis=0) > -math.log(float(xp.finfo(x.dtype).smallest_normal)) / 2


def _log_power_mean(log_p: Array, gamma: float) -> Array:
    """Logarithm of the power mean over the first axis, given logarithms of probabilities."""
    xp = array_namespace(log_p)
    if gamma == 0.0:
        return xp.mean(log_p, axis=0)
    scaled = gamma * log_p
    near = xp.max(xp.abs(scaled), axis=0) <= 0.5
    # Where all probabilities are near one, their mean is too: its distance from one is kept, not one minus it.
    close = xp.log1p(xp.mean(xp.expm1(scaled.clip(-0.5, 0.5)), axis=0))
    return xp.where(near, close, _log_mean_exp(scaled)) / gamma


def _log_mean_exp(x: Array) -> Array:
    xp = array_namespace(x)
    top = xp.max(x, axis=0)
    return top + xp.log(xp.mean(xp.exp(x - top), axis=0))


def _log_odds_of_mean(x: Array) -> Array:
    """Logit of the mean probability: the log of what speaks for it over what speaks against it."""
    xp = array_namespace(x)
    small = xp.exp(-xp.abs(x))
    share = 1.0 / (1.0 + small)
    rest = small * share
    above = x >= 0
    tiny = float(xp.finfo(x.dtype).smallest_normal)
    pro = xp.sum(xp.where(above, share, rest), axis=0).clip(tiny, None)
    contra = xp.sum(xp.where(above, rest, share), axis=0).clip(tiny, None)
    odds = xp.log(pro) - xp.log(contra)
    # Where one of the sums leaves the precision of its type, both are taken in logarithms, at several times the cost.
    lost = xp.minimum(pro, contra) < 1e6 * tiny
    if not bool(xp.any(lost)):
        return odds
    return xp.where(lost, _log_mean_exp(-_softplus(-x)) - _log_mean_exp(-_softplus(x)), odds)


def _softplus(x: Array) -> Array:
    xp = array_namespace(x)
    return x.clip(0.0, None) + xp.log1p(xp.exp(-xp.abs(x)))


def _log_expm1(y: Array) -> Array:
    """log(e^y - 1) for y ≥ 0, finite also where y underflows to zero."""
    xp = array_namespace(y)
    positive = y.clip(float(xp.finfo(y.dtype).smallest_normal), None)
    return positive + xp.log(-xp.expm1(-positive))
