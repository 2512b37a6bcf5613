"""Parts of a formula, by name.

Built without validation: a formula has hundreds of parts, each of which would be checked against every kind there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from qdrant_client import models

__all__ = [
    "Expression",
    "absolute",
    "average",
    "constant",
    "exp",
    "ln",
    "negative",
    "over",
    "plus",
    "power",
    "times",
]

Expression = models.Expression


def constant(value: float) -> float:
    """A number as it travels: float32."""
    return float(np.float32(value))


def _operand(value: Expression | float) -> Expression:
    return constant(value) if isinstance(value, float | int) else value


def plus(*parts: Expression | float) -> Expression:
    """The sum."""
    return (
        models.SumExpression.model_construct(sum=[_operand(part) for part in parts])
        if len(parts) > 1
        else _operand(parts[0])
    )


def average(parts: Sequence[Expression]) -> Expression:
    """The mean; divided by the count, which float32 holds exactly, not multiplied by its inverse."""
    return over(plus(*parts), float(len(parts)))


def times(*parts: Expression | float) -> Expression:
    """The product; factors of one are left out."""
    kept = [_operand(part) for part in parts if part != 1.0]
    return models.MultExpression.model_construct(mult=kept) if len(kept) > 1 else kept[0]


def over(left: Expression | float, right: Expression | float) -> Expression:
    """The quotient."""
    return models.DivExpression.model_construct(
        div=models.DivParams.model_construct(left=_operand(left), right=_operand(right))
    )


def power(base: Expression, exponent: Expression | float) -> Expression:
    """The power."""
    return models.PowExpression.model_construct(
        pow=models.PowParams.model_construct(base=base, exponent=_operand(exponent))
    )


def negative(part: Expression) -> Expression:
    """The part with its sign changed."""
    if isinstance(part, models.NegExpression):
        return part.neg
    return models.NegExpression.model_construct(neg=part)


def ln(part: Expression) -> Expression:
    """The natural logarithm."""
    return models.LnExpression.model_construct(ln=part)


def absolute(part: Expression) -> Expression:
    """The part without its sign."""
    return models.AbsExpression.model_construct(abs=part)


def exp(part: Expression) -> Expression:
    """The exponential."""
    return models.ExpExpression.model_construct(exp=part)
