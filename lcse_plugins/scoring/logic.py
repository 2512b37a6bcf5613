"""Logic: from similarities to the truth of the query. What evidence, NOT, AND and OR mean is said here.

A similarity s becomes a logit x = β (s - μ), its evidence sigmoid(x). Truth is computed as a logit too, bottom-up over
the canonical tree; NOT is a change of sign. `minmax` takes the smallest and the largest. The paper's power mean reads,
with inverse odds w = e^(-x): AND (γ = -1) mean w; any γ (mean (1+w)^(-γ))^(-1/γ) - 1. All of it is written in
logarithms, so no 1 - p cancels and nothing overflows: probabilities need no clipping, and where the published formula
does not clip, the two agree.

Functions take numpy arrays or torch tensors, in float32 or float64, and give back the same kind.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace

from lcse_plugins.query import And, Group, Plain, Query, fold
from lcse_plugins.scoring.config import LARGEST_EXPONENT, ScoringConfig

__all__ = ["Array", "and_is_below_mean", "probability", "soft_logit", "truth_logit"]

Array: TypeAlias = Any
"""A numpy array or a torch tensor of floats."""


def probability(logit: Array) -> Array:
    """(n,) sigmoid of logits, without overflow."""
    xp = _library(logit)
    small = xp.exp(-xp.abs(logit))
    return xp.where(logit >= 0, 1.0, small) / (1.0 + small)


def truth_logit(tree: Query, logits: Mapping[str, Array], *, config: ScoringConfig) -> Array:
    """(n,) logit of the truth of a canonical tree, from concept → (n,) logits."""

    def leaf(text: str, negated: bool) -> Array:
        return -logits[text] if negated else logits[text]

    def group(node: Group, parts: list[Array]) -> Array:
        if isinstance(node, Plain):
            return soft_logit(parts)
        is_and = isinstance(node, And)
        if config.aggregator == "minmax":
            return _power_mean(parts, -math.inf if is_and else math.inf)
        if config.aggregator == "probabilistic":
            return _product(parts) if is_and else -_product([-part for part in parts])
        return _power_mean(parts, config.gamma_and if is_and else config.gamma_or)

    return fold(tree, leaf, group)


def soft_logit(logits: Sequence[Array]) -> Array:
    """(n,) logit of the mean probability: what the query would be worth if its logic were ignored."""
    return _power_mean(logits, 1.0)


def and_is_below_mean(config: ScoringConfig) -> bool:
    """Whether the logit of an AND is at most the mean logit of its children; bounds rest on it."""
    return config.aggregator != "power" or config.gamma_and <= -1.0


def _power_mean(parts: Sequence[Array], gamma: float) -> Array:
    """Logit of the power mean of the probabilities behind `parts`; never outside their range."""
    if len(parts) == 1:
        return parts[0]
    xp = _library(*parts)
    if abs(gamma) > LARGEST_EXPONENT:
        return functools.reduce(xp.minimum if gamma < 0 else xp.maximum, parts)
    x = xp.stack(list(parts))
    if gamma == -1.0:
        mean = -_log_mean_exp(-x)
    elif gamma == 1.0:
        mean = _log_mean_exp(-_softplus(-x)) - _log_mean_exp(-_softplus(x))
    else:
        mean = -_log_expm1(-_log_power_mean(-_softplus(-x), gamma))
        mean = xp.where(_near_one(x), -_log_mean_exp(-x), mean)  # there all means are one less the mean of what lacks
    return mean.clip(xp.min(x, axis=0), xp.max(x, axis=0))


def _product(parts: Sequence[Array]) -> Array:
    """Logit of the product of the probabilities behind `parts`."""
    xp = _library(*parts)
    x = xp.stack(list(parts))
    product = -_log_expm1(xp.sum(_softplus(-x), axis=0))
    return xp.where(_near_one(x), -_log_mean_exp(-x) - math.log(len(parts)), product)


def _near_one(x: Array) -> Array:
    """Where all probabilities behind the logits are so near one that what they lack squared is nothing."""
    xp = _library(x)
    return xp.min(x, axis=0) > -math.log(float(xp.finfo(x.dtype).smallest_normal)) / 2


def _log_power_mean(log_p: Array, gamma: float) -> Array:
    """Logarithm of the power mean over the first axis, given logarithms of probabilities."""
    xp = _library(log_p)
    if gamma == 0.0:
        return xp.mean(log_p, axis=0)
    scaled = gamma * log_p
    near = xp.max(xp.abs(scaled), axis=0) <= 0.5
    # Where all probabilities are near one, their mean is too: its distance from one is kept, not one minus it.
    close = xp.log1p(xp.mean(xp.expm1(scaled.clip(-0.5, 0.5)), axis=0))
    return xp.where(near, close, _log_mean_exp(scaled)) / gamma


def _log_mean_exp(x: Array) -> Array:
    xp = _library(x)
    top = xp.max(x, axis=0)
    return top + xp.log(xp.mean(xp.exp(x - top), axis=0))


def _softplus(x: Array) -> Array:
    xp = _library(x)
    return x.clip(0.0, None) + xp.log1p(xp.exp(-xp.abs(x)))


def _log_expm1(y: Array) -> Array:
    """log(e^y - 1) for y ≥ 0, finite also where y underflows to zero."""
    xp = _library(y)
    positive = y.clip(float(xp.finfo(y.dtype).smallest_normal), None)
    return positive + xp.log(-xp.expm1(-positive))


def _library(*arrays: Array) -> Any:
    return np if isinstance(arrays[0], np.ndarray) else array_namespace(*arrays)
