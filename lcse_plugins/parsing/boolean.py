"""The explicit Boolean language: `red car AND NOT (person OR dog)`, `"hot dog" -mustard`, `cat && !dog`.

The grammar is `boolean.lark`. Words side by side are one concept; `-` takes one word, phrase or group.
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
        | (?P<_MINUS> (?<![^\s(])[-−‑](?=[^\W\d]|["“(]) )
        | (?P<WORD> (?:[^\s()"“|&]|(?<=\w)&(?=\w))+ | \S )""",
    re.VERBOSE | re.DOTALL,
)
_WANTED = {
    "TERM": "a term", "WORD": "a word", "PHRASE": "a quoted phrase", "_OPEN": "(", "_AND": "AND", "_OR": "OR",
    "_CLOSE": ")", "$END": "the end",
}  # fmt: skip


_SMALL = {"and": "_AND", "but": "_AND", "or": "_OR", "not": "_NOT"}
_BEGINNINGS = ("PHRASE", "_OPEN", "_NOT", "_MINUS")


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
    """The tokens of `text`: bare words side by side as one TERM, one bare word behind a minus as WORD.

    A small `and`, `or`, `but` or `not` between a run of words and an operator or group is an operator too.
    """
    run: list[_Cut] = []
    before = ""
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if match[0] in ('"', "“"):
            raise QuerySyntaxError(text, match.start(), "a closing quotation mark", "")
        cut = _Cut(kind, match.start(), match.end())
        if kind == "WORD" and before != "_MINUS":
            run.append(cut)
            continue
        if run:
            yield from _term(text, run, joined_left=before in ("PHRASE", "_CLOSE"), joined_right=kind in _BEGINNINGS)
            run = []
        yield cut
        before = kind
    if run:
        yield from _term(text, run, joined_left=before in ("PHRASE", "_CLOSE"), joined_right=False)


def _term(text: str, run: list[_Cut], *, joined_left: bool, joined_right: bool) -> Iterator[_Cut]:
    """A run of bare words, with the small operators at its open ends."""
    first, last = 0, len(run)
    if joined_left and (kind := _SMALL.get(text[run[0].start : run[0].end].lower())):
        yield _Cut(kind, run[0].start, run[0].end)
        first = 1
    trailing: list[_Cut] = []
    while joined_right and last > first and (kind := _SMALL.get(text[run[last - 1].start : run[last - 1].end].lower())):
        last -= 1
        trailing.insert(0, _Cut(kind, run[last].start, run[last].end))
    if last > first:
        yield _Cut("TERM", run[first].start, run[last - 1].end)
    yield from trailing


def _unquoted(text: str, cut: _Cut) -> str:
    inner = text[cut.start + 1 : cut.end - 1]
    if text[cut.start] == '"':
        inner = re.sub(r"\\(.)", r"\1", inner, flags=re.DOTALL)
    if not inner.strip():
        raise QuerySyntaxError(text, cut.start + 1, "a text between the quotation marks", text[cut.end - 1])
    return inner


def _listed(children: list[_Read]) -> tuple[Query, ...]:
    """The operands, a bare list among them opened: `dog, cat & bird`."""
    queries: list[Query] = []
    for query, bare in children:
        queries.extend(query.children if bare and isinstance(query, Plain) else (query,))
    return tuple(queries)


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
            return _Read(And(_listed(children)), bare=False)

        def either(self, children: list[_Read]) -> _Read:
            return _Read(Or(_listed(children)), bare=False)

    grammar = files("lcse_plugins.parsing").joinpath("boolean.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", transformer=Build())
