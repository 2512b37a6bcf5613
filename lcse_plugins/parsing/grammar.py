"""The offline parser: English and the explicit Boolean language, with no model and no service.

    >>> from lcse_plugins import parse
    >>> parse("a park without dogs but with children")
    And(children=(Concept(text='park'), Not(child=Concept(text='dogs')), Concept(text='children')))

A text is in the explicit language by its own marks only; all other text is English, which never fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lcse_plugins.errors import QuerySyntaxError, QueryTooComplex
from lcse_plugins.parsing.boolean import read_explicit
from lcse_plugins.parsing.english.reading import Reading, frame_length, read_english
from lcse_plugins.parsing.result import MAX_CONCEPTS, Parse, affirmative_text, check_size, check_text
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
        bare = _unframed(text)
        reading = self._read_marks(bare) if is_explicit(bare) else _read_words(bare)
        query = reading.query
        check_size(query)
        clashes = (f"contradiction: {concept} and not {concept}" for concept in contradictions(query))
        said, notes = affirmative_text(query, text), (*reading.notes, *clashes)
        return Parse(text=text, query=query, affirmative=said, spans=reading.spans, notes=notes, sure=reading.sure)

    def _read_marks(self, text: str) -> Reading:
        """The reading of a text with marks of the explicit language; with a single mark it may be English after all."""
        spans: dict[str, tuple[int, int]] = {}
        readings: list[Reading] = []

        def keep(reading: Reading) -> Query:
            readings.append(reading)
            for concept, span in reading.spans.items():
                spans.setdefault(concept, span)
            if len(spans) > MAX_CONCEPTS or len(readings) > 4 * MAX_CONCEPTS:
                raise QueryTooComplex(f"the query names more than {MAX_CONCEPTS} concepts; split it")
            return reading.query

        def english(start: int, end: int) -> Query:
            return keep(read_english(text, start, end))

        def phrase(quoted: str, start: int, end: int) -> Query:
            concept = Concept(quoted)
            return keep(Reading(concept, {concept.text: (start + 1, end - 1)}, (), sure=True))

        try:
            query = read_explicit(text, english, phrase)
        except QuerySyntaxError:
            if _marks(text) > 1:
                raise
            return _read_words(text, "doubtful: not quite in the explicit language, so read as English")
        notes = [note for reading in readings for note in reading.notes]
        if not notes and _ALTERNATIVE.search(text) and any(isinstance(reading.query, And) for reading in readings):
            notes.append(f"ambiguous: read as {format_query(query)}")
        return Reading(query, spans, tuple(notes), not notes)


parse = GrammarParser()
"""The default parser."""


def _read_words(text: str, note: str = "") -> Reading:
    """The reading of an English text."""
    bare = _DANGLING.sub(lambda hit: " " * len(hit[0]), text) if note else text
    reading = read_english(bare if bare.strip() else text, 0, len(text))
    notes = [note] if note else []
    if _OREGON.search(text):
        notes.append("doubtful: OR is taken as the name of a state")
    elif not note and _OPERATOR.search(text) and _lists_absences(text):
        notes.append(f"ambiguous: read as {format_query(reading.query)}")
    return reading._replace(notes=(*reading.notes, *notes), sure=reading.sure and not notes)


def _unframed(text: str) -> str:
    """The text with what a tool put around the query blanked out, so that places stay as they are."""
    start = frame_length(text)
    if not start:
        return text
    rest = text[start:].rstrip()
    if len(rest) > 2 and rest[0] in "\"'“" and rest[-1] in "\"'”" and not any(quote in rest[1:-1] for quote in '"“”'):
        rest = f" {rest[1:-1]} "
    return (" " * start + rest).ljust(len(text)) if rest.strip() else text


def _marks(text: str) -> int:
    """How many marks of the explicit language a text carries; all parentheses are one, and so are all quotes."""
    groups, quotes = "(" in text or ")" in text, '"' in text or "“" in text
    return len(_OPERATOR.findall(text)) + len(_SYMBOL.findall(text)) + groups + quotes


# ------------------------------------------------------------------------------ which language is it?

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*("|$)|“[^“”]*(”)', re.DOTALL)
_SMILEY = re.compile(r"[:;=]['\-]?[()DPp|](?!\w)")
_SYMBOL = re.compile(r"&&|\||(?<![\w!?.,)])!(?=\s*[\w(\0])|(?<![^\s(])[-−‑](?=[^\W\d]|[\0(])")
_OREGON = re.compile(r"\b(?:Portland|Salem|Eugene|Bend|Medford|Astoria|Ashland|Corvallis|Hillsboro|Beaverton),? OR\b")
_NAMED = re.compile(_OREGON.pattern + r"|\b(?:[Aa]n?|[Tt]he)\s+(?:AND|OR|NOT)\s+\w|(?:AND|OR|NOT)\s+gates?\b")
_DANGLING = re.compile(r"\b(?:AND|NOT)\W*$|^\W*AND\b|\(\s*\)")
_OPERATOR = re.compile(r"(?<![\w/])(?:AND|OR|NOT)(?![\w/])")
_EMPHASIS = re.compile(
    r"\b(?:but|and|or|is|are|was|were|do|does|did|should|must|can|could|will|would|has|have|with)\s+NOT(?!\w)|,\s*NOT(?!\w)"
)
_ALTERNATIVE = re.compile(r"\||(?<![\w/])OR(?![\w/])")
_ABSENCE = re.compile(r"\b(?:no|not|without|neither)\b", re.IGNORECASE)
_CUE = re.compile(r"\b(?:no|without|neither|either|both|but)\b", re.IGNORECASE)
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
    if len(_OPERATOR.findall(bare)) == 1 and _NAMED.search(bare):
        return False
    if _is_enclosed("".join(bare.split())):
        return True
    rest = _OPERATOR.sub(" ", bare)
    if "\0" in rest and not rest.translate(_MARKS).strip():
        return True
    if _lists_absences(bare):
        return False
    shouted = len(_OPERATOR.findall(bare)) > 1 and not _CUE.search(bare)
    mixed = any(map(str.islower, rest)) or not any(map(str.isalpha, rest)) or shouted
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
