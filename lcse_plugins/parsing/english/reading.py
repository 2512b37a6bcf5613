"""English to tree: words, then cues, then clauses, then precedence.

How the layer decides, in short; the words it knows are in `english.txt`:

- `and` joins things only where each is a thing by itself (`a dog and a cat`). With a verb or a preposition in the row
  it describes one scene (`a man and a woman riding bikes`), unless `both`, `as well as` or the like marks it as logic.
- Attributes that `and` joins wait for one noun (`a red and blue ball`). Where that is absent, so is each sort of it
  (`no red and white flowers`), and the reading is noted as ambiguous.
- `or` is always logic. What the first or last alternative says for all is given to each: `a cat or a dog on a sofa`.
- A negation reaches over a list (`without dogs, cats or birds`) up to `but`, a new article after `no`, a verb
  (`and smiling`), a comma after its `or`, or a thing with a negation of its own; a verb that excludes reaches over
  commas (`avoid people, cars`). A place named for the first time, and a time, belong to the phrase in front (`a man
  without a shirt in a park`), a place already known to what is absent (`a room without pictures on the wall`).
  Without an article, a part of the host is known (`a kitchen without dishes in sink`), others are noted as ambiguous.
- What is written on a thing is part of it: `a sign that says no more war`; of `no war banner` one may doubt it.
- Where people would read it one way or the other, the reading is noted as ambiguous: `no text, logos`.
- A negation of pictures undoes the next one: `no pictures without a dog`.
- Concepts keep their words as written, without article, request and filler. `man with a beard` is one concept.
- A parenthesis without a partner, and a word such as `treeless`, are noted as unread.
- Text whose function words are of another language is one concept, untouched.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from lcse_plugins.parsing.english.clauses import settle
from lcse_plugins.parsing.english.concepts import ConceptMaker
from lcse_plugins.parsing.english.cues import tag_cues
from lcse_plugins.parsing.english.items import Item
from lcse_plugins.parsing.english.lexicon import Lexicon, lexicon
from lcse_plugins.parsing.english.phrases import Phrases
from lcse_plugins.parsing.english.precedence import TreeBuilder
from lcse_plugins.parsing.english.words import Word, split_words, unpaired
from lcse_plugins.query import Plain, Query, concepts, format_query, is_constrained

__all__ = ["Reading", "read_english"]


class Reading(NamedTuple):
    """A tree, where its concepts stand, notes on how it was read, and whether it can be read in one way only."""

    query: Query
    spans: dict[str, tuple[int, int]]
    notes: tuple[str, ...]
    sure: bool


def read_english(text: str, start: int, end: int) -> Reading:
    """Read the part of `text` between two places. It always has a tree; without logic that is one concept."""
    tables, phrases = lexicon(), _phrases()
    words = [
        word._replace(start=word.start + start, end=word.end + start) for word in split_words(text[start:end], tables)
    ]
    if not _is_english(words, tables):
        maker = ConceptMaker(text, tables, phrases)
        maker.note_cues(words)
        return _reading(maker.verbatim(start, end), maker)
    if stray := frozenset(unpaired(words)):
        words = [word for word in words if word not in stray]
    items, known = tag_cues(words, tables)
    doubtful = _may_subtract(words) or any(item.doubtful for item in items)
    maker = ConceptMaker(text, tables, phrases, known, ambiguous=doubtful)
    builder = TreeBuilder(settle(items, phrases), maker, phrases)
    query = builder.build()
    if query is not None and builder.logic and (builder.undone or is_constrained(query)):
        return _reading(query, maker, stray)
    maker = ConceptMaker(text, tables, phrases, known, ambiguous=doubtful)
    query = _side_by_side(items, maker, phrases) or maker.description(words) or maker.verbatim(start, end)
    return _reading(query, maker, stray)


def _reading(query: Query, maker: ConceptMaker, stray: Set[Word] = frozenset()) -> Reading:
    """The tree with its notes; `stray` are the parentheses that were left out, for want of a partner."""
    faults = {"(": "is never closed", ")": "closes nothing"}
    notes = [f"unread: {mark!r} {faults[mark]}" for mark in sorted({word.low for word in stray})]
    notes += [f"unread: {word!r} was not taken as logic" for word in maker.unread]
    if maker.ambiguous:
        notes.append(f"ambiguous: read as {format_query(query)}")
    sure = not (stray or maker.unread or maker.ambiguous)
    return Reading(query, {text: maker.spans[text] for text in concepts(query)}, tuple(notes), sure)


def _side_by_side(items: Sequence[Item], maker: ConceptMaker, phrases: Phrases) -> Query | None:
    """`beach, sunset, palm trees`: things with nothing but commas between them."""
    if len(items) < 3 or any(item.tag != ("comma" if at % 2 else "words") for at, item in enumerate(items)):
        return None
    if not all(phrases.is_thing(item.words) for item in items[::2]):
        return None
    things = tuple(thing for item in items[::2] if (thing := maker.concept(item.words)) is not None)
    return Plain(things) if len(things) > 1 else None


def _may_subtract(words: Sequence[Word]) -> bool:
    """Whether a dash may be a minus: `beach - people`."""
    for at in range(1, len(words) - 1):
        dash, thing = words[at], words[at + 1]
        if dash.kind == "dash" and thing.kind == "word" and not thing.capital and words[at - 1].end < dash.start:
            return at + 2 == len(words) or words[at + 2].kind == "dash"
    return False


def _is_english(words: Sequence[Word], tables: Lexicon) -> bool:
    """Whether the function words, and the common words for what moves, speak for English."""
    lows = [word.low for word in words if word.kind == "word"]
    foreign = [low for low in lows if low in tables.words("foreign")]
    if all(low in tables.words("particle") for low in foreign):
        return True
    return len(foreign) <= sum(low in tables.words("english") or low in tables.words("mover") for low in lows)


@lru_cache(maxsize=1)
def _phrases() -> Phrases:
    return Phrases(lexicon())
