"""English operators and operands to a tree, by precedence.

From weak to strong: `, or`; then `but`, `, and` and sentence ends; then `or`; then `and` and what follows a thing
(`without …`, `with no …`); then negation, which reaches over a list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lcse_plugins.errors import QueryTooComplex
from lcse_plugins.parsing.english.concepts import ConceptMaker
from lcse_plugins.parsing.english.items import GROUPS, NEGATIONS, Item, is_negation, is_words, tag_at
from lcse_plugins.parsing.english.phrases import Phrases
from lcse_plugins.parsing.english.reach import group_goes_on, negation_goes_on
from lcse_plugins.parsing.english.words import Chunk
from lcse_plugins.query import MAX_DEPTH, And, Concept, Not, Or, Query

__all__ = ["TreeBuilder"]

_LOOSE = frozenset({"or", "nor", "and", "list"})
_OPENERS = NEGATIONS | GROUPS | {"words", "open"}


class TreeBuilder:
    """Reads a row of items once.

    Attributes:
        logic: whether an operator was among them.
        undone: whether one negation undid another: `no pictures without a dog`.
    """

    def __init__(self, items: Sequence[Item], maker: ConceptMaker, phrases: Phrases) -> None:
        self._items = items
        self._maker = maker
        maker.ambiguous |= any(item.doubtful for item in items)
        self._phrases = phrases
        self._at = 0
        self._depth = 0
        self._in_either = 0
        self.logic = False
        self.undone = False

    def _peek(self) -> str:
        """The tag of the next item."""
        return tag_at(self._items, self._at)

    def build(self) -> Query | None:
        """The tree of all items; None when they name nothing."""
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
            self.logic = True
            self._at += 1
            parts.append(self._weak_and())
        return _joined(Or, parts)

    def _weak_and(self) -> Query | None:
        parts = [self._or()]
        while True:
            if self._peek() in ("but", "weak and", "list", "stop"):
                self.logic |= self._peek() in ("but", "weak and")
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
        self.logic = True
        rows = [first]
        while self._peek() in ("or", "nor"):
            self._maker.ambiguous |= self._peek() == "nor"
            self._at += 1
            rows.append(self._and())
        *others, last = rows
        lifted: list[Query | None] = []
        if all(row.chunk is not None and len(row.parts) == 1 for row in others) and last.chunk is not None:
            if len(last.parts) > 1:
                self._maker.ambiguous = True
            if len(last.parts) > 1 and last.trailing:
                lifted, last.parts[1:] = last.parts[1:], []
            if len(last.parts) == 1:
                alternatives = self._maker.concepts([row.chunk for row in rows if row.chunk is not None])
                return _joined(And, [_joined(Or, alternatives), *lifted])
        return _joined(Or, [_joined(And, row.parts) for row in rows])

    def _and(self) -> _Row:
        chunk = self._items[self._at].words if is_words(self._items, self._at) else None
        row = _Row([self._factor()], chunk)
        while True:
            if self._peek() == "and":
                self._at += 1
                self.logic = True
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
        self.logic |= item.tag != "words" or item.negated
        self._at += 1
        match item.tag:
            case "words":
                if self._peek() in GROUPS and self._phrases.acts(item.words):
                    return self._group(self._items[self._at], stem=self._phrases.content(item.words))
                concept = self._maker.concept(item.words, absent=item.negated)
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
            case "neither" if self._undoes():  # "none of the pictures without dogs"
                return self._negation()
            case "both" | "either" | "exactly one" | "neither" | "not both":
                self._at -= 1
                return self._group(item)
        return self._negation()

    # ------------------------------------------------------------------------------------ groups and negation

    def _group(self, item: Item, stem: Chunk | None = None) -> Query | None:
        """The list behind `both`, `either`, `neither`, `not both`; `stem` is said of each of its things."""
        self._at += 1
        self.logic = True
        loose = item.tag == "neither" or (item.tag != "both" and item.words[-1].low != "either")
        joints = {"both": {"and"}, "not both": {"and"}}.get(item.tag, _LOOSE if loose else {"or"})
        parts: list[Query | None] = []
        chunks: list[Chunk] = []
        closed = False
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
            if item.tag == "neither":
                goes_on, doubt = group_goes_on(self._items, self._at, self._phrases, closed=closed)
                self._maker.ambiguous |= doubt
                if not goes_on:
                    break
                closed |= self._peek() in ("or", "nor")
            self._at += 1
        self._in_either -= 1
        if len(chunks) == len(parts):
            absent = item.tag in ("neither", "not both")
            parts[:] = self._maker.concepts([[*(stem or ()), *chunk] for chunk in chunks], absent=absent, marked=True)
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

    def _negation(self) -> Query | None:
        odd = True
        while (pictures := self._undoes()) or self._peek() in ("no", "without", "not"):
            before = self._items[self._at - 1].words  # "no image with" (no dog)
            self.undone |= pictures or self._peek() == "without" or bool(self._phrases.pictures(before))
            odd ^= not pictures
            self._at += 1
        if not is_words(self._items, self._at):
            all_of = self._peek() == "both"
            inner = self._factor()
            self._maker.ambiguous |= inner is None  # "dog yes, cat no"
            if all_of and isinstance(inner, And):  # "lacking both a bed and a window"
                inner = Or(inner.children)
            return _negated(inner) if odd else inner
        cue, chunks = self._at - 1, [self._items[self._at].words]
        self._at += 1
        marked = self._peek() == "nor"
        while self._reaches(cue):
            chunks.append(self._items[self._at + 1].words)
            self._at += 2
        self._maker.ambiguous |= self._peek() == "without"  # "no dogs without leashes"
        self._maker.ambiguous |= not odd and (len(chunks) > 1 or self._peek() == "or")
        inner = _joined(Or, self._maker.concepts(chunks, absent=odd, marked=marked))
        return _negated(inner) if odd else inner

    def _undoes(self) -> bool:
        """Whether the negation just read speaks of pictures only, and the next one of what they lack."""
        if not is_words(self._items, self._at) or not is_negation(self._items, self._at + 1):
            return False
        words = self._items[self._at].words
        if not self._phrases.pictures(words) or self._phrases.content(words):
            return False
        hosted = is_words(self._items, self._at - 2) and bool(self._phrases.content(self._items[self._at - 2].words))
        self._maker.ambiguous |= hosted  # "a room with no pictures without frames"
        return not hosted

    def _reaches(self, cue: int) -> bool:
        """Whether the negation at `cue` goes on over the next thing of the list."""
        joint = self._peek()
        if joint not in ("and", "or", "nor", "weak or", "list") or not is_words(self._items, self._at + 1):
            return False
        if joint in ("or", "weak or") and self._in_either:
            return False
        goes_on, doubt = negation_goes_on(self._items, cue, self._at, self._phrases)
        self._maker.ambiguous |= doubt
        return goes_on


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
