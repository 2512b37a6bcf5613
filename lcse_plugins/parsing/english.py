"""English to tree, by precedence.

From weak to strong: `, or`; then `but`, `, and` and sentence ends; then `or`; then `and` and what follows a thing
(`without …`, `with no …`); then negation, which reaches over a list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from lcse_plugins.errors import QueryTooComplex
from lcse_plugins.parsing.clauses import is_negation, is_words, settle, tag_at
from lcse_plugins.parsing.cues import NEGATIONS, Item, tag_cues
from lcse_plugins.parsing.lexicon import Lexicon, lexicon
from lcse_plugins.parsing.phrases import Phrases
from lcse_plugins.parsing.words import Word, join, split_words
from lcse_plugins.query import MAX_DEPTH, And, Concept, Not, Or, Plain, Query, format_query, is_constrained

__all__ = ["EnglishReader", "is_english"]

Chunk = list[Word]
_LOOSE = frozenset({"or", "nor", "and", "list"})
_OPENERS = frozenset({*NEGATIONS, "words", "open", "both", "either", "exactly one"})


@lru_cache(maxsize=1)
def _phrases() -> Phrases:
    return Phrases(lexicon())


def is_english(words: Sequence[Word], tables: Lexicon) -> bool:
    """Whether the function words speak for English."""
    lows = [word.low for word in words if word.kind == "word"]
    foreign = sum(low in tables.words("foreign") for low in lows)
    return not foreign or foreign <= sum(low in tables.words("english") for low in lows)


class EnglishReader:
    """Reads a part of a text; afterwards `spans` and `notes` say how."""

    def __init__(self, text: str, *, start: int = 0, end: int | None = None) -> None:
        self._text = text
        self._start, self._end = start, len(text) if end is None else end
        self._tables = lexicon()
        self._phrases = _phrases()
        self._words = [
            word._replace(start=word.start + start, end=word.end + start)
            for word in split_words(text[start : self._end], self._tables)
        ]
        self.spans: dict[str, tuple[int, int]] = {}
        self.notes: list[str] = []
        self._ambiguous = False
        self._logic = False
        self._items: list[Item] = []
        self._known: set[Word] = set()
        self._at = 0
        self._depth = 0
        self._in_either = 0

    def read(self) -> Query:
        """The tree of the text."""
        if not is_english(self._words, self._tables):
            return self._description(self._words)
        items, self._known = tag_cues(self._words, self._tables)
        self._items = settle(items, self._phrases)
        query = self._everything()
        if query is not None and self._logic and is_constrained(query):
            if self._ambiguous:
                self.notes.append(f"ambiguous: read as {format_query(query)}")
            return query
        self.spans.clear()
        self.notes.clear()
        return self._tags(items) or self._description(self._phrases.content(self._bare(self._words)))

    # ------------------------------------------------------------------------------------ without logic

    def _tags(self, items: list[Item]) -> Query | None:
        """`beach, sunset, palm trees`: things side by side."""
        if len(items) < 3 or any(item.tag != ("comma" if at % 2 else "words") for at, item in enumerate(items)):
            return None
        if not all(self._phrases.simple(item.words) for item in items[::2]):
            return None
        things = [thing for item in items[::2] if (thing := self._concept(item.words)) is not None]
        return Plain(tuple(things)) if len(things) > 1 else None

    def _bare(self, words: Sequence[Word]) -> Chunk:
        """The words without punctuation at the ends."""
        first, last = 0, len(words)
        while first < last and words[first].kind in ("mark", "dash") and words[first].low != "(":
            first += 1
        while last > first and words[last - 1].kind in ("mark", "dash") and words[last - 1].low != ")":
            last -= 1
        return list(words[first:last])

    def _description(self, words: Chunk) -> Query:
        """One concept of all words, as they are written."""
        if not words:
            start, end = self._start, self._end
        else:
            start, end = words[0].start, words[-1].end
        self._note_unread(words)
        concept = Concept(self._text[start:end])
        self.spans[concept.text] = (start, end)
        return concept

    # ------------------------------------------------------------------------------------ by precedence

    def _peek(self) -> str:
        """The tag of the next item."""
        return tag_at(self._items, self._at)

    def _everything(self) -> Query | None:
        """All items, whatever stands between."""
        parts: list[Query | None] = []
        while self._at < len(self._items):
            before = self._at
            parts.append(self._weak_or())
            if self._at == before:
                self._at += 1
        return _joined(And, parts)

    def _weak_or(self) -> Query | None:
        parts = [self._weak_and()]
        while self._peek() == "weak or":
            self._logic = True
            self._at += 1
            parts.append(self._weak_and())
        return _joined(Or, parts)

    def _weak_and(self) -> Query | None:
        parts = [self._or()]
        while True:
            if self._peek() in ("but", "weak and", "list", "stop"):
                self._logic |= self._peek() in ("but", "weak and")
                self._at += 1
                parts.append(self._or())
            elif self._peek() == "exclusive":
                self._at += 1
                last = parts[-1]
                if isinstance(last, And | Or) and all(isinstance(child, Concept) for child in last.children):
                    parts[-1] = _one_of(Or(last.children))
            else:
                return _joined(And, parts)

    def _or(self) -> Query | None:
        first = self._and()
        if self._peek() not in ("or", "nor"):
            return _joined(And, first.parts)
        self._logic = True
        rows = [first]
        while self._peek() in ("or", "nor"):
            self._at += 1
            rows.append(self._and())
        *others, last = rows
        lifted: list[Query | None] = []
        if all(row.chunk is not None and len(row.parts) == 1 for row in others) and last.chunk is not None:
            if len(last.parts) > 1:
                self._ambiguous = True
            if len(last.parts) > 1 and last.trailing:
                lifted, last.parts[1:] = last.parts[1:], []
            if len(last.parts) == 1:
                alternatives = self._concepts([row.chunk for row in rows if row.chunk is not None])
                return _joined(And, [_joined(Or, alternatives), *lifted])
        return _joined(Or, [_joined(And, row.parts) for row in rows])

    def _and(self) -> _Row:
        chunk = self._items[self._at].words if is_words(self._items, self._at) else None
        row = _Row([self._factor()], chunk)
        while True:
            if self._peek() == "and":
                self._at += 1
                self._logic = True
                row.trailing = False
                row.parts.append(self._factor())
            elif self._peek() in _OPENERS:
                row.parts.append(self._factor())
            else:
                return row

    def _factor(self) -> Query | None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise QueryTooComplex(f"the query nests deeper than {MAX_DEPTH} levels; write it flatter")
        try:
            return self._operand()
        finally:
            self._depth -= 1

    def _operand(self) -> Query | None:
        if self._at >= len(self._items):
            return None
        item = self._items[self._at]
        if item.tag not in _OPENERS:
            return None
        self._logic |= item.tag != "words" or item.negated
        self._at += 1
        match item.tag:
            case "words":
                if self._peek() in ("both", "either", "exactly one") and self._phrases.acts(item.words):
                    return self._group(self._items[self._at], stem=self._phrases.content(item.words))
                concept = self._concept(item.words, absent=item.negated)
                return Not(concept) if concept is not None and item.negated else concept
            case "open":
                inside: list[Query | None] = []
                while self._at < len(self._items) and self._peek() != "close":
                    before = self._at
                    inside.append(self._weak_or())
                    if self._at == before:
                        self._at += 1
                self._at += 1
                return _joined(And, inside)
            case "both" | "either" | "exactly one" | "neither" | "not both":
                self._at -= 1
                return self._group(item)
        return self._negation(item)

    # ------------------------------------------------------------------------------------ groups and negation

    def _group(self, item: Item, stem: Chunk | None = None) -> Query | None:
        """The list behind `both`, `either`, `neither`, `not both`; `stem` is said of each of its things."""
        self._at += 1
        self._logic = True
        loose = item.tag == "neither" or (item.tag != "both" and item.words[-1].low != "either")
        joints = {"both": {"and"}, "not both": {"and"}}.get(item.tag, _LOOSE if loose else {"or"})
        parts: list[Query | None] = []
        chunks: list[Chunk] = []
        self._in_either += 1
        while True:
            whole = item.tag == "either" and not loose and (self._or_ahead() or len(chunks) < len(parts))
            if is_words(self._items, self._at) and not is_negation(self._items, self._at + 1):
                chunks.append(self._items[self._at].words)
            if whole:
                parts.append(_joined(And, self._and().parts))
                if len(chunks) and isinstance(parts[-1], And):
                    chunks.pop()
            else:
                parts.append(self._factor())
            if self._peek() not in joints:
                break
            self._at += 1
        self._in_either -= 1
        if len(chunks) == len(parts):
            absent = item.tag in ("neither", "not both")
            parts = self._concepts([[*(stem or ()), *chunk] for chunk in chunks], absent=absent, marked=True)
        match item.tag:
            case "both":
                return _joined(And, parts)
            case "either":
                return _joined(Or, parts)
            case "exactly one":
                together = _joined(Or, parts)
                return _one_of(together) if isinstance(together, Or) else together
            case "neither":
                return _negated(_joined(Or, parts))
        return _negated(_joined(And, parts))

    def _or_ahead(self) -> bool:
        """Whether an `or` follows before the clause ends."""
        for at in range(self._at, len(self._items)):
            tag = self._items[at].tag
            if tag == "or":
                return True
            if tag not in ("words", "and", *NEGATIONS):
                return False
        return False

    def _negation(self, item: Item) -> Query | None:
        odd = True
        while self._peek() in ("no", "without", "not"):
            item = self._items[self._at]
            self._at += 1
            odd = not odd
        if not is_words(self._items, self._at):
            inner = self._factor()
            return _negated(inner) if odd else inner
        chunks = [self._items[self._at].words]
        self._at += 1
        marked = self._peek() == "nor"
        while self._reaches(item.tag, chunks[0]):
            chunks.append(self._items[self._at + 1].words)
            self._at += 2
        inner = _joined(Or, self._concepts(chunks, absent=odd, marked=marked))
        return _negated(inner) if odd else inner

    def _reaches(self, kind: str, first: Chunk) -> bool:
        """Whether the negation of `first` goes on over the next thing of the list."""
        joint = self._peek()
        if joint not in ("and", "or", "nor", "weak or") or not is_words(self._items, self._at + 1):
            return False
        if joint == "nor":
            return True
        if (joint != "and" and self._in_either) or self._items[self._at].framed:
            return False
        phrases, thing = self._phrases, self._items[self._at + 1].words
        beyond = self._at + 3 if tag_at(self._items, self._at + 2) in ("and", "but", "weak and") else self._at + 2
        if phrases.framed(thing) or (joint != "and" and is_negation(self._items, beyond)):
            return False
        if joint == "and" and is_negation(self._items, self._at + 2):
            return False
        if phrases.determined(thing):
            if kind == "no":
                self._ambiguous |= joint == "or"
                return joint == "or"
            self._ambiguous |= joint == "and" or not phrases.determined(first)
            return joint != "and" or phrases.determined(first)
        if joint == "and":
            self._ambiguous |= kind == "no"
            alike = kind != "no" or phrases.described(thing) <= phrases.described(first)
            return alike and (phrases.governor(thing) is None or phrases.governor(first) is not None)
        return True

    # ------------------------------------------------------------------------------------ concepts

    def _concepts(self, chunks: list[Chunk], *, absent: bool = False, marked: bool = False) -> list[Query | None]:
        """The things of a list, each with what is said of all of them."""
        if len(chunks) > 1:
            chunks, shared = self._phrases.share(chunks, marked=marked)
            self._ambiguous |= shared
        return [self._concept(chunk, absent=absent) for chunk in chunks]

    def _concept(self, chunk: Chunk, *, absent: bool = False) -> Concept | None:
        words = self._phrases.content(self._bare(chunk), absent=absent)
        words = self._phrases.content(self._bare(words), absent=absent)
        if not words:
            return None
        self._note_unread(words)
        if len(words) == 1 and words[0].kind == "quoted" and len(words[0].low) > 2:
            text = words[0].low[1:-1].strip() or words[0].low
        else:
            text = join(self._text, words)
        concept = Concept(text)
        self.spans.setdefault(concept.text, _span(self._text, words))
        return concept

    def _note_unread(self, words: Chunk) -> None:
        unread = self._tables.words("unread")
        for word in words:
            if word.kind == "word" and word.low in unread and word not in self._known:
                note = f"unread: {self._text[word.start : word.end]!r} was not taken as logic"
                if note not in self.notes:
                    self.notes.append(note)


class _Row:
    """Things joined by `and`; `trailing` while all after the first follow it without a connector."""

    __slots__ = ("chunk", "parts", "trailing")

    def __init__(self, parts: list[Query | None], chunk: Chunk | None) -> None:
        self.parts = parts
        self.chunk = chunk
        self.trailing = True


def _joined(kind: Callable[[tuple[Query, ...]], Query], parts: Sequence[Query | None]) -> Query | None:
    """One node of the parts that say anything; nested groups of its own kind become its children."""
    flat: list[Query] = []
    for part in parts:
        if part is not None:
            flat.extend(part.children if isinstance(part, And | Or) and type(part) is kind else (part,))
    return flat[0] if len(flat) == 1 else kind(tuple(flat)) if flat else None


def _negated(query: Query | None) -> Query | None:
    return None if query is None else Not(query)


def _one_of(query: Or) -> Query:
    """Some, but not all."""
    return And((query, Or(tuple(Not(child) for child in query.children))))


def _span(text: str, words: Chunk) -> tuple[int, int]:
    """Where the words stand, as far as they stand together."""
    start, end = words[0].start, words[0].end
    for word in words[1:]:
        if word.start > end and not text[end : word.start].isspace():
            break
        if word.start < start:
            break
        end = max(end, word.end)
    return start, end
