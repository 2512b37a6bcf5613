"""The explicit Boolean language: `red car AND NOT (person OR dog)`, `"hot dog" -mustard`, `cat && !dog`.

The grammar is `data/boolean.lark`. Words side by side are one concept; `-` takes one word, phrase or group.
A phrase in quotes is taken letter by letter; what is not in quotes may still be English: `dogs AND no cats`.
Quoted phrases and groups side by side are `Plain`; with a bare word or a `-` among them they are joined by AND.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from lcse_plugins.errors import QuerySyntaxError
from lcse_plugins.query import And, Not, Or, Plain, Query

__all__ = ["read_explicit"]

_TOKEN = re.compile(
    r"""  (?P<PHRASE> "(?:[^"\\]|\\.)*" | “[^“”]*” )
        | (?P<_OPEN> \( ) | (?P<_CLOSE> \) )
        | (?P<_AND> && | (?<![^\s()"])&(?![^\s()"!\-]) | (?<![\w/])AND(?![\w/]) )
        | (?P<_OR> \|\|? | (?<![\w/])OR(?![\w/]) )
        | (?P<_NOT> !(?=\s*[\w"“(!]) | (?<![\w/])NOT(?![\w/]) )
        | (?P<_MINUS> (?<![^\s(])-(?=[^\W\d]|["“(]) )
        | (?P<WORD> (?:[^\s()"“|&]|(?<=\w)&(?=\w))+ | \S )""",
    re.VERBOSE | re.DOTALL,
)
_WANTED = {
    "TERM": "a term", "WORD": "a word", "PHRASE": "a quoted phrase", "_OPEN": "(", "_AND": "AND", "_OR": "OR",
    "_CLOSE": ")", "$END": "the end",
}  # fmt: skip


class _Cut(NamedTuple):
    kind: str
    start: int
    end: int


class _Read(NamedTuple):
    query: Query
    bare: bool


def read_explicit(text: str, term: Callable[[int, int], Query], phrase: Callable[[str, int, int], Query]) -> Query:
    """The tree of `text` in the explicit language.

    Args:
        text: the query.
        term: reads the bare words that stand in `text` from one place to another.
        phrase: makes a concept of a quoted text and its place.

    Raises:
        QuerySyntaxError: `text` is not in the language.
        QueryTooComplex: it nests too deep.
    """
    from lark import Token, UnexpectedInput

    machine = _machine().parse_interactive("")
    cut = _Cut("$END", 0, 0)
    try:
        for cut in _cuts(text):
            token = Token(cut.kind, text[cut.start : cut.end])
            if cut.kind in ("TERM", "WORD"):
                token.value = _Read(term(cut.start, cut.end), bare=True)
            elif cut.kind == "PHRASE":
                token.value = _Read(phrase(_unquoted(text, cut), cut.start, cut.end), bare=False)
            machine.feed_token(token)
        cut = _Cut("$END", len(text), len(text))
        read: _Read = machine.feed_eof()
    except UnexpectedInput as error:
        accepted = machine.accepts()
        wanted = [label for name, label in _WANTED.items() if name in accepted]
        expected = ", ".join(wanted[:-1]) + " or " + wanted[-1] if len(wanted) > 1 else "".join(wanted)
        raise QuerySyntaxError(text, cut.start, expected, text[cut.start : cut.end]) from error
    return read.query


def _cuts(text: str) -> Iterator[_Cut]:
    """The tokens of `text`: bare words side by side as one TERM, one bare word behind a minus as WORD."""
    run: tuple[int, int] | None = None
    minus = False
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if match[0] in ('"', "“"):
            raise QuerySyntaxError(text, match.start(), "a closing quotation mark", "")
        if kind == "WORD" and not minus:
            run = (run[0] if run else match.start(), match.end())
            continue
        if run:
            yield _Cut("TERM", *run)
            run = None
        yield _Cut(kind, match.start(), match.end())
        minus = kind == "_MINUS"
    if run:
        yield _Cut("TERM", *run)


def _unquoted(text: str, cut: _Cut) -> str:
    inner = text[cut.start + 1 : cut.end - 1]
    if text[cut.start] == '"':
        inner = re.sub(r"\\(.)", r"\1", inner, flags=re.DOTALL)
    if not inner.strip():
        raise QuerySyntaxError(text, cut.start + 1, "a text between the quotation marks", text[cut.end - 1])
    return inner


@lru_cache(maxsize=1)
def _machine() -> Any:
    """The LALR(1) machine of the grammar; it builds the tree as it goes, without recursion."""
    from lark import Lark, Transformer

    class Build(Transformer[Any, Any]):
        def term(self, children: list[Any]) -> _Read:
            return children[0].value  # type: ignore[no-any-return]

        word = phrase = term

        def negated(self, children: list[_Read]) -> _Read:
            return _Read(Not(children[0].query), bare=children[0].bare)

        def excluded(self, children: list[_Read]) -> _Read:
            return _Read(Not(children[0].query), bare=True)

        def group(self, children: list[_Read]) -> _Read:
            return _Read(children[0].query, bare=False)

        def beside(self, children: list[_Read]) -> _Read:
            join = And if any(child.bare for child in children) else Plain
            return _Read(join(tuple(child.query for child in children)), bare=False)

        def both(self, children: list[_Read]) -> _Read:
            return _Read(And(tuple(child.query for child in children)), bare=False)

        def either(self, children: list[_Read]) -> _Read:
            return _Read(Or(tuple(child.query for child in children)), bare=False)

    grammar = files("lcse_plugins.parsing").joinpath("data/boolean.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", transformer=Build())
