"""The published formulas on plain Python numbers; shares nothing with the arithmetic of the package."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lcse_plugins import And, Concept, Not, Or, Query
from lcse_plugins.query import Plain, concepts


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


def logit(p: float) -> float:
    return math.log(p / (1.0 - p))


def push(query: Query, negate: bool = False) -> Query:
    """Negations to the leaves, by De Morgan; nothing else."""
    match query:
        case Concept():
            return Not(query) if negate else query
        case Not(child):
            return push(child, not negate)
        case And(children):
            return (Or if negate else And)(tuple(push(child, negate) for child in children))
        case Or(children):
            return (And if negate else Or)(tuple(push(child, negate) for child in children))
        case Plain(children):
            return Plain(tuple(push(child, negate) for child in children))


def power_mean(values: list[float], gamma: float) -> float:
    return math.pow(sum(math.pow(v, gamma) for v in values) / len(values), 1.0 / gamma)


def truth(query: Query, p: Mapping[str, float], aggregator: str, gamma_and: float, gamma_or: float) -> float:
    match query:
        case Concept(text):
            return p[text]
        case Not(Concept(text)):
            return 1.0 - p[text]
        case And(children) | Or(children) | Plain(children):
            values = [truth(child, p, aggregator, gamma_and, gamma_or) for child in children]
        case _:
            raise AssertionError(query)
    if isinstance(query, Plain):
        return sum(values) / len(values)
    conjunction = isinstance(query, And)
    if aggregator == "minmax":
        return min(values) if conjunction else max(values)
    if aggregator == "probabilistic":
        return math.prod(values) if conjunction else 1.0 - math.prod(1.0 - v for v in values)
    return power_mean(values, gamma_and if conjunction else gamma_or)


def score(
    query: Query,
    holistic: float,
    similarities: Mapping[str, float],
    *,
    mu: float,
    beta: float,
    mode: str = "lcse",
    aggregator: str = "power",
    gamma_and: float = -1.0,
    gamma_or: float = 10.0,
) -> float:
    """Score of one image under a flattened query with logic in it."""
    tree = push(query)
    p = {name: sigmoid(beta * (similarities[name] - mu)) for name in concepts(tree)}
    logic = truth(tree, p, aggregator, gamma_and, gamma_or)
    soft = sum(p.values()) / len(p)
    return holistic + (logit(logic) - logit(soft)) / beta if mode == "lcse" else logit(logic) / beta + mu
