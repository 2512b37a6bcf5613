"""English operators and operands to a tree, by precedence.

From weak to strong: `, or`; then `but`, `, and` and sentence ends; then `or`; then `and` and what follows a thing
(`without …`, `with no …`); then negation, which reaches over a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lcse_plugins.errors import QueryTooComplex
from lcse_plugins.parsing.english.concepts import ConceptMaker
from lcse_plugins.parsing.english.items import (
    GROUPS,
    NEGATIONS,
    Item,
    Tag,
    is_negation,
    is_paired,
    is_words,
    joints_of,
    tag_at,
)
from lcse_plugins.parsing.english.nodes import grouped, joined, negated, some_not_all
from lcse_plugins.parsing.english.phrases import Phrases
from lcse_plugins.parsing.english.reach import group_goes_on, negation_goes_on
from lcse_plugins.parsing.english.words import Chunk
from lcse_plugins.query import MAX_DEPTH, And, Concept, Not, Or, Query

__all__ = ["TreeBuilder"]

_OPENERS: frozenset[Tag] = frozenset({"words", "open", *NEGATIONS, *GROUPS})


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

    def _peek(self) -> Tag | Literal[""]:
        """The tag of the next item."""
        return tag_at(self._items, self._at)

    def build(self) -> Query | None:
        """The tree of all items; None when they name nothing."""
        return self._until("")

    def _until(self, end: Tag | Literal[""]) -> Query | None:
        """The tree of all items in front of an item with this tag, or of all that are left."""
        parts: list[Query | None] = []
        while self._at < len(self._items) and self._peek() != end:
            before = self._at
            parts.append(self._weak_or())
            if self._at == before:
                self._at += 1
        return joined(And, parts)

    def _weak_or(self) -> Query | None:
        parts = [self._weak_and()]
        while self._peek() == "weak or":
            self.logic = True
            self._at += 1
            parts.append(self._weak_and())
        return joined(Or, parts)

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
                    parts[-1] = some_not_all(Or(last.children))
            else:
                return joined(And, parts)

    def _or(self) -> Query | None:
        first = self._and()
        if self._peek() not in ("or", "nor"):
            return joined(And, first.parts)
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
                return joined(And, [joined(Or, alternatives), *lifted])
        return joined(Or, [joined(And, row.parts) for row in rows])

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
                if self._peek() in GROUPS and self._phrases.ends_in_verb(item.words):
                    return self._group(self._items[self._at], stem=self._phrases.content(item.words))
                concept = self._maker.concept(item.words, absent=item.negated)
                self._maker.ambiguous |= concept is None and item.negated
                return Not(concept) if concept is not None and item.negated else concept
            case "open":
                inside = self._until("close")
                self._at += 1
                return inside
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
        self._in_either += 1
        parts, chunks = self._listed(item)
        self._in_either -= 1
        if len(chunks) == len(parts) == 1:  # "both red and blue balls"
            chunks = self._phrases.split_sorts(chunks[0])
            parts *= len(chunks)
        if len(chunks) == len(parts):
            absent = item.tag in ("neither", "not both")
            parts[:] = self._maker.concepts([[*(stem or ()), *chunk] for chunk in chunks], absent=absent, marked=True)
        return grouped(item.tag, parts)

    def _listed(self, item: Item) -> tuple[list[Query | None], list[Chunk]]:
        """The things of a group as trees, and the words of those that are nothing but words."""
        parts: list[Query | None] = []
        chunks: list[Chunk] = []
        closed = False
        while True:
            whole = is_paired(item) and (self._or_ahead() or len(chunks) < len(parts))  # "either a dog and a cat or …"
            if is_words(self._items, self._at) and not is_negation(self._items, self._at + 1):
                chunks.append(self._items[self._at].words)
            if whole:
                parts.append(joined(And, self._and().parts))
                if chunks and isinstance(parts[-1], And):
                    chunks.pop()
            else:
                parts.append(self._factor())
            if self._peek() not in joints_of(item) or (item.tag == "neither" and not self._neither_goes_on(closed)):
                return parts, chunks
            closed |= self._peek() in ("or", "nor")
            self._at += 1

    def _neither_goes_on(self, closed: bool) -> bool:
        goes_on, doubt = group_goes_on(self._items, self._at, self._phrases, closed=closed)
        self._maker.ambiguous |= doubt
        return goes_on

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
            self.undone |= pictures or self._peek() == "without" or bool(self._phrases.picture_words(before))
            odd ^= not pictures
            self._at += 1
        if not is_words(self._items, self._at):
            all_of = self._peek() == "both"
            inner = self._factor()
            self._maker.ambiguous |= inner is None  # "dog yes, cat no"
            if all_of and isinstance(inner, And):  # "lacking both a bed and a window"
                inner = Or(inner.children)
            return negated(inner) if odd else inner
        cue, things = self._at - 1, [self._items[self._at].words]
        self._at += 1
        marked = self._peek() == "nor"
        while self._reaches(cue):
            things.append(self._items[self._at + 1].words)
            self._at += 2
        chunks = [chunk for thing in things for chunk in self._phrases.split_sorts(thing)]
        self._maker.ambiguous |= len(chunks) > len(things)  # "no red and white flowers"
        self._maker.ambiguous |= self._peek() == "without"  # "no dogs without leashes"
        self._maker.ambiguous |= not odd and (len(chunks) > 1 or self._peek() == "or")
        inner = joined(Or, self._maker.concepts(chunks, absent=odd, marked=marked))
        self._maker.ambiguous |= inner is None  # "cousins without them"
        return negated(inner) if odd else inner

    def _undoes(self) -> bool:
        """Whether the negation just read speaks of pictures only, and the next one of what they lack."""
        if not is_words(self._items, self._at) or not is_negation(self._items, self._at + 1):
            return False
        words = self._items[self._at].words
        if not self._phrases.picture_words(words) or self._phrases.content(words):
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
