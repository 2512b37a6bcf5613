"""What commands tell a person beside their result, and names that are safe to print."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from unicodedata import category

import click

if TYPE_CHECKING:
    from lcse_plugins.errors import ImageError
    from lcse_plugins.parsing.result import Parse

__all__ = ["print_left_out", "print_notes", "printable"]


def printable(name: object) -> str:
    """A name as text in which whatever could steer the terminal is escaped; spaces of any kind stay."""
    return "".join(
        letter if letter.isprintable() or category(letter) == "Zs" else letter.encode("unicode_escape").decode()
        for letter in str(name)
    )


def print_notes(parse: Parse) -> None:
    """Print what a person should know about how the query was read, on standard error."""
    for note in (*parse.notes, *filter(None, [parse.error])):
        click.secho(f"note: {note}", fg="yellow", err=True)


def print_left_out(errors: Iterable[ImageError]) -> None:
    """Print what could not be used and why, on standard error."""
    for error in errors:
        click.secho(f"left out {printable(error)}", fg="yellow", err=True)
