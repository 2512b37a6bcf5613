"""The offline parser: English and the explicit Boolean language, with no model and no service.

    >>> from lcse_plugins import parse
    >>> parse("a park without dogs but with children")
    And(children=(Concept(text='park'), Not(child=Concept(text='dogs')), Concept(text='children')))

What a tool put around a query is taken off. A text is in the explicit language (`boolean`) by its own marks only; all
other text is English, which never fails. English is read in four steps, words → cues → clauses → tree (`english/`):

- `and` joins things only where each is a thing by itself (`a dog and a cat`). With a verb or a preposition among them
  it describes one scene (`a man and a woman riding bikes`), unless `both`, `as well as` or the like marks it as logic.
- `or` is always logic. What the first or last alternative says for all is given to each: `a cat or a dog on a sofa`.
- A negation reaches over a list (`without dogs, cats or birds`) up to `but`, a new article after `no`, a verb
  (`and wears glasses`) or a thing with a negation of its own. A negated verb keeps all that belongs to it.
- What stands behind an absent thing stays with it where it describes it (`people in swimsuits`), and goes back to the
  phrase in front where it is a time or a place for that (`a man without a shirt in a park`).
- Where people would hesitate about a sign, nothing is read: the query is one plain concept, with a note.
- Text whose function words are of another language is one concept, untouched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcse_plugins.errors import QuerySyntaxError, QueryTooComplex
from lcse_plugins.parsing.boolean import read_explicit
from lcse_plugins.parsing.english.clauses import Term, settle
from lcse_plugins.parsing.english.cues import Item, tag_cues
from lcse_plugins.parsing.english.tree import Leaves, build
from lcse_plugins.parsing.english.words import (
    Chunk,
    Lexicon,
    Notes,
    content,
    is_plural,
    is_thing,
    lexicon,
    lows,
    match,
    split_words,
)
from lcse_plugins.parsing.result import MAX_CONCEPTS, Parse, affirmative_text, check_size, check_text
from lcse_plugins.query import And, Concept, Not, Plain, Query, concepts, contradictions, format_query, is_constrained

__all__ = ["GrammarParser", "is_explicit", "parse"]


class Reading(NamedTuple):
    """A tree, where its concepts stand, notes on how it was read, and whether it can be read in one way only."""

    query: Query
    spans: dict[str, tuple[int, int]]
    notes: tuple[str, ...]
    sure: bool


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
        query, spans, notes, sure = _read_marks(bare) if is_explicit(bare) else _read_words(bare)
        check_size(query)
        notes += tuple(f"contradiction: {concept} and not {concept}" for concept in contradictions(query))
        said = affirmative_text(query, text)
        return Parse(text=text, query=query, affirmative=said, spans=spans, notes=notes, sure=sure)


parse = GrammarParser()
"""The default parser."""

# ------------------------------------------------------------------------------------------ English


def read_english(text: str, start: int, end: int) -> Reading:
    """Read the part of `text` between two places. It always has a tree; without logic that is one concept."""
    lex, notes = lexicon(), Notes()
    leaves = Leaves(text, lex)
    words = split_words(text, start, end, lex)
    if _is_foreign(words, lex):
        if any(lex.has(low, "unread", "foreign") for low in lows(words)):
            notes.sign("the words do not look English")
        return _reading(leaves.whole(start, end), leaves, notes)
    items = tag_cues(words, lex, notes)
    terms = settle(items, lex, notes)
    query = build(terms, leaves, notes)
    if not (notes.idiom or notes.signs):
        _check_unread(terms, lex, notes)
    joined = any(term.negated or term.group or term.mark or term.join not in ("", ",", ".") for term in terms)
    if query is not None and joined and is_constrained(query):
        _check_concepts(query, words, lex, notes)
        if not notes.signs:
            return _reading(query, leaves, notes)
    leaves = Leaves(text, lex)
    things = [] if notes.signs else _side_by_side(items, leaves)
    kept = content(words, lex)
    plain = Plain(tuple(things)) if len(things) > 1 else leaves.made(kept) if kept else leaves.whole(start, end)
    return _reading(plain, leaves, notes)


def _reading(query: Query, leaves: Leaves, notes: Notes) -> Reading:
    said = [f"doubtful, so nothing is read: {why}" for why in notes.signs]
    said += [f"doubtful: {why}" for why in notes.shapes]
    return Reading(query, leaves.spans, tuple(said), not said)


def _side_by_side(items: Sequence[Item], leaves: Leaves) -> list[Concept]:
    """The things of a query that only lists them: `beach, sunset, palm trees`."""
    things = [content(item.words, leaves.lex) for item in items[::2]]
    listed = [item.tag for item in items] == (["words", ","] * len(things))[:-1] and 1 < len(things) < MAX_CONCEPTS
    return [leaves.made(thing) for thing in things if listed and all(is_thing(each, leaves.lex) for each in things)]


def _check_unread(terms: Sequence[Term], lex: Lexicon, notes: Notes) -> None:
    """Doubt a reading that leaves a cue among the words of a concept."""
    for term in terms:
        for word in term.words:
            if word.kind == "word" and word.low in lex.sets["unread"]:
                notes.sign(f"{word.low!r} is not understood here")
        _check_unread(term.group or (), lex, notes)


def _check_concepts(query: Query, words: Chunk, lex: Lexicon, notes: Notes) -> None:
    """Doubt what is no thing to see, and an exclusion that may be a title or a saying."""
    for concept in concepts(query):
        first = concept.split()[0].lower()
        if first in lex.sets["asking"]:
            notes.sign(f"{first!r}: a question or a condition")
        elif len(concept) == 1 and concept.isascii() and concept.isalpha():
            notes.sign(f"{concept!r} is a letter")  # "R and B concert"
    match query:
        case Not(Concept(said)) if said.count(" ") > 1:  # "no country for old men", "no people on the beach"
            notes.shape(f"all of {said!r} is excluded, and nothing is wanted")
        case Not(Concept(said)) if lows(words[:-1]) == ["no"] and not (
            is_plural(words[1].low, lex) or lex.knows(words[1].low)
        ):
            notes.shape(f"{said!r} is excluded, and nothing is wanted")  # "no brainer"


def _is_foreign(words: Chunk, lex: Lexicon) -> bool:
    """Whether the words speak for another language: function words, letters, or spellings."""
    low = [word.low for word in words if word.kind == "word" and word.low.isalpha()]
    foreign = [word for word in low if word in lex.sets["foreign"]]
    english = sum(lex.has(word, "english", "mover") for word in low)
    if any(word not in lex.sets["particle"] for word in foreign):
        return len(foreign) > english
    if any(not word.isascii() for word in low) and not english and len(low) > 2:
        return not all(word.isascii() for word in low if len(word) > 3)
    named = [word for word in low if not lex.has(word, "unread", "foreign")]
    known = english or any(lex.has(word, *_NOUNS) or _ENGLISH.search(word) for word in named)
    return not known and len(named) < 6 and any(word.endswith(("a", "i", "o", "u")) for word in named)


_NOUNS = ("loan", "place", "clothing", "unwanted", "adjective", "stuff", "backdrop", "setting", "image", "occasion")
_ENGLISH = re.compile(r"(?:ing|ed|er|y|ow|[^aoe]s)$|ee|oo|th|sh|ck|wh|ght|ea|ou|ay|ch")
"""Spellings that Portuguese, Spanish, Italian and Japanese words seldom have."""


def _unframed(text: str) -> str:
    """The text with what a tool put around the query (`input is`, `query:`) blanked out, so that places stay."""
    lex = lexicon()
    words = split_words(text[:200], 0, min(len(text), 200), lex)
    length, _ = match(lex.frames, lows(words))
    if not length or length >= len(words):
        return text
    if words[length].low in (":", "=", "-") and length + 1 < len(words):
        start = words[length + 1].start
    elif words[length - 1].low in ("is", "matching", "match") or length > 3:
        start = words[length].start
    else:
        return text
    rest = text[start:].rstrip()
    if len(rest) > 2 and rest[0] in "\"'“" and rest[-1] in "\"'”" and not any(quote in rest[1:-1] for quote in '"“”'):
        rest = f" {rest[1:-1]} "
    return (" " * start + rest).ljust(len(text)) if rest.strip() else text


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


# ------------------------------------------------------------------------------ the explicit language


def _read_marks(text: str) -> Reading:
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
        groups, quotes = "(" in text or ")" in text, '"' in text or "“" in text
        if len(_OPERATOR.findall(text)) + len(_SYMBOL.findall(text)) + groups + quotes > 1:
            raise
        return _read_words(text, "doubtful: not quite in the explicit language, so read as English")
    notes = [note for reading in readings for note in reading.notes]
    if not notes and _ALTERNATIVE.search(text) and any(isinstance(reading.query, And) for reading in readings):
        notes.append(f"ambiguous: read as {format_query(query)}")
    return Reading(query, spans, tuple(notes), not notes)


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
