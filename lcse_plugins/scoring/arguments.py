"""Checks of what many functions are given; each raises InvalidOption or QueryError, and says what is due."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from numbers import Integral, Real
from os import PathLike
from typing import TypeVar

from lcse_plugins.errors import InvalidOption, QueryError

__all__ = [
    "check_choice",
    "check_count",
    "check_limits",
    "check_unicode",
    "has_surrogates",
    "is_whole",
    "pictures_of",
    "texts_of",
]

Picture = TypeVar("Picture")


def is_whole(value: object) -> bool:
    """Whether a value is an integer, numpy's included; True and False do not count."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        raise InvalidOption(f"unknown {name} {value!r:.80}; choose one of {', '.join(choices)}")


def check_count(name: str, value: int) -> None:
    """Refuse what is not a positive whole number."""
    if not is_whole(value) or value < 1:
        raise InvalidOption(f"{name} is a positive whole number, not {value!r}")


def check_limits(limit: int | None, min_truth: float | None, *, name: str = "limit") -> None:
    """Refuse a limit that is not a positive whole number, and a truth outside [0, 1]; None is no limit."""
    if limit is not None:
        check_count(name, limit)
    if min_truth is not None and not (isinstance(min_truth, Real) and 0.0 <= min_truth <= 1.0):
        raise InvalidOption(f"min_truth lies between 0 and 1, not {min_truth!r}")


def has_surrogates(text: str) -> bool:
    """Whether a text holds half a surrogate pair, which is what Python makes of a byte that it cannot decode."""
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


def check_unicode(text: str) -> None:
    """Refuse a text with bytes that could not be decoded, which no encoder or file can take."""
    if has_surrogates(text):
        raise QueryError(f"{text!r:.80} holds bytes that are no letters; write it in UTF-8")


def texts_of(texts: Iterable[str], *, name: str = "texts") -> list[str]:
    """The texts, as a list; one string, and other things than strings, are refused."""
    if isinstance(texts, str | bytes):
        raise InvalidOption(f"{name} is a list of strings, not one string; wrap it as [text]")
    listed = list(texts)
    for text in listed:
        if not isinstance(text, str):
            raise InvalidOption(f"{name} holds strings, not {type(text).__name__}")
        check_unicode(text)
    return listed


def pictures_of(images: Iterable[Picture], *, name: str = "images") -> Iterator[Picture]:
    """The pictures, one by one; a single picture is refused."""
    if not isinstance(images, str | bytes | bytearray | PathLike):
        with suppress(TypeError):
            return iter(images)
    raise InvalidOption(f"{name} is a list of pictures, not one; wrap it as [image]")
