"""Which arguments a function can be given by name."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

__all__ = ["keywords"]


def keywords(function: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """Names of the arguments that a function takes after its first, and whether it takes any others."""
    parameters = list(signature(function).parameters.values())
    named = tuple(p.name for p in parameters[1:] if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))
    return named, any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
