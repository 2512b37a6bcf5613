"""The offline parser: English and the explicit Boolean language, with no model and no service.

    >>> from lcse_plugins import parse
    >>> parse("a park without dogs but with children")
    And(children=(Concept(text='park'), Not(child=Concept(text='dogs')), Concept(text='children')))

A text is in the explicit language by its own marks only; all other text is English, which never fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lcse_plugins.parsing.boolean import read_explicit
from lcse_plugins.parsing.english.reading import Reading, read_english
from lcse_plugins.parsing.result import Parse, affirmative_text, check_text
from lcse_plugins.query import And, Concept, Query, contradictions, format_query

__all__ = ["GrammarParser", "is_explicit", "parse"]


@dataclass(frozen=True)
class GrammarParser:
    """Reads a query by rules, offline: plain English, or the explicit language of AND, OR, NOT, quotes and parentheses.

    Called with a text it gives the tree; `read` also says where the concepts stand and what is doubtful. English never
    fails: what it does not understand, other languages included, is one concept. It holds no state, and two are equal.
    """

    def __call__(self, text: str, /) -> Query:
        """The tree of `text`.

        Raises:
            QuerySyntaxError: the text is in the explicit language and breaks its grammar.
            QueryTooComplex: the text is too long or nests too deep.
            QueryError: the text is blank.
        """
        return self.read(text).query

    def read(self, text: str) -> Parse:
        """The tree of `text`, where its concepts stand, and what a person should know about the reading."""
        check_text(text)
        spans: dict[str, tuple[int, int]] = {}
        readings: list[Reading] = []

        def english(start: int, end: int) -> Query:
            reading = read_english(text, start, end)
            for concept, span in reading.spans.items():
                spans.setdefault(concept, span)
            readings.append(reading)
            return reading.query

        def phrase(quoted: str, start: int, end: int) -> Query:
            concept = Concept(quoted)
            spans.setdefault(concept.text, (start + 1, end - 1))
            return concept

        explicit = is_explicit(text)
        query = read_explicit(text, english, phrase) if explicit else english(0, len(text))
        mixed = any(isinstance(reading.query, And) for reading in readings) and _ALTERNATIVE.search(text)
        doubtful = mixed if explicit else _OPERATOR.search(text) and _lists_absences(text)
        notes = [note for reading in readings for note in reading.notes]
        if doubtful and not notes:
            notes.append(f"ambiguous: read as {format_query(query)}")
        notes += [f"contradiction: {concept} and not {concept}" for concept in contradictions(query)]
        return Parse(
            text=text,
            query=query,
            affirmative=affirmative_text(query, text),
            spans=spans,
            notes=tuple(notes),
            sure=not doubtful and all(reading.sure for reading in readings),
        )

    def is_sure(self, query: str | Parse) -> bool:
        """Whether the rules allow one reading only and no cue word was left unread.

        A second opinion, such as a language model's, is worth asking for where this is False.
        """
        parse = self.read(query) if isinstance(query, str) else query
        return parse.sure


parse = GrammarParser()
"""The default parser."""


# ------------------------------------------------------------------------------ which language is it?

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*("|$)|“[^“”]*(”)', re.DOTALL)
_SMILEY = re.compile(r"[:;=]['\-]?[()DPp|](?!\w)")
_SYMBOL = re.compile(r"&&|\||(?<![\w!?.,)])!(?=\s*[\w(\0])|(?<![^\s(])[-−‑](?=[^\W\d]|[\0(])")
_OPERATOR = re.compile(r"(?<![\w/])(?:AND|OR|NOT)(?![\w/])")
_EMPHASIS = re.compile(
    r"\b(?:but|and|or|is|are|was|were|do|does|did|should|must|can|could|will|would|has|have|with)\s+NOT(?!\w)|,\s*NOT(?!\w)"
)
_ALTERNATIVE = re.compile(r"\||(?<![\w/])OR(?![\w/])")
_ABSENCE = re.compile(r"\b(?:no|not|without|neither)\b", re.IGNORECASE)
_ARTICLE = re.compile(r"\s*(?:an?|the)\b")
_CLAUSE = re.compile(r"[,;.]")
_MARKS = str.maketrans("", "", "\0()&")
_PAIRED = re.compile(r"\b(?:either|both|neither)\b")


def is_explicit(text: str) -> bool:
    """Whether `text` carries the marks of the explicit language.

    The marks: `AND`, `OR`, `NOT` in upper case amid other case; `&&`, `||`, `|`, `!term`, `-term`; parentheses
    around the whole; quoted phrases and nothing else. A lone ` & ` is an English `and`: `black & white photo`. An `OR`
    in the list of an English negation is an English `or`: `dogs WITHOUT collars OR leashes`.
    """
    quoted = _QUOTED.sub(lambda match: "\0" if match[1] or match[2] else match[0], text)
    bare = _SMILEY.sub(" ", quoted)
    if _SYMBOL.search(bare):
        return True
    if _is_enclosed("".join(bare.split())):
        return True
    rest = _OPERATOR.sub(" ", bare)
    if "\0" in rest and not rest.translate(_MARKS).strip():
        return True
    if _lists_absences(bare):
        return False
    mixed = any(character.islower() for character in rest) or not any(character.isalpha() for character in rest)
    return mixed and not _PAIRED.search(bare) and bool(_OPERATOR.search(_EMPHASIS.sub(" ", bare)))


def _is_enclosed(bare: str) -> bool:
    """Whether all parentheses of a text stand around the whole of it: `(cat or dog)`, `((cat))`."""
    count = bare.count("(")
    return count == bare.count(")") > 0 and bare.startswith("(" * count) and bare.endswith(")" * count)


def _lists_absences(bare: str) -> bool:
    """Whether the only operator of a text joins what an English negation lists: `no cats OR dogs`."""
    operators = list(_OPERATOR.finditer(bare))
    if len(operators) != 1 or "(" in bare or bare.isupper():
        return False
    operator, clause, rest = operators[0], _CLAUSE.split(bare[: operators[0].start()])[-1], bare[operators[0].end() :]
    cue = _ABSENCE.search(clause)
    if cue is None or operator[0] == "NOT" or _ABSENCE.search(rest):
        return False
    if operator[0] == "AND" and not cue[0].isupper():
        return False
    return not _ARTICLE.match(rest) or bool(_ARTICLE.match(clause, cue.end()))
