"""English to tree, in four steps: words, cues, clauses, tree.

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

from collections.abc import Sequence
from typing import NamedTuple

from lcse_plugins.parsing.english.clauses import Term, settle
from lcse_plugins.parsing.english.cues import Item, tag_cues
from lcse_plugins.parsing.english.lexicon import Lexicon, lexicon, match
from lcse_plugins.parsing.english.phrases import content, is_thing
from lcse_plugins.parsing.english.tree import Leaves, build
from lcse_plugins.parsing.english.words import Chunk, Notes, lows, split_words
from lcse_plugins.query import Concept, Plain, Query, is_constrained

__all__ = ["Reading", "frame_length", "read_english"]

_LONGEST_LIST = 64


class Reading(NamedTuple):
    """A tree, where its concepts stand, notes on how it was read, and whether it can be read in one way only."""

    query: Query
    spans: dict[str, tuple[int, int]]
    notes: tuple[str, ...]
    sure: bool


def read_english(text: str, start: int, end: int) -> Reading:
    """Read the part of `text` between two places. It always has a tree; without logic that is one concept."""
    lex, notes = lexicon(), Notes()
    leaves = Leaves(text, lex)
    words = split_words(text, start, end, lex)
    if _is_foreign(words, lex):
        if any(low in lex.sets["unread"] for low in lows(words)):
            notes.sign("the words do not look English")
        return _reading(leaves.whole(start, end), leaves, notes)
    items = tag_cues(words, lex, notes)
    terms = settle(items, lex, notes)
    query = build(terms, leaves, notes)
    _check_unread(terms, lex, notes)
    if query is not None and not notes.signs and _is_logic(terms, query):
        return _reading(query, leaves, notes)
    leaves = Leaves(text, lex)
    things = [] if notes.signs else _side_by_side(items, leaves)
    kept = content(words, lex)
    plain = Plain(tuple(things)) if len(things) > 1 else leaves.made(kept) if kept else leaves.whole(start, end)
    return _reading(plain, leaves, notes)


def _is_logic(terms: Sequence[Term], query: Query) -> bool:
    """Whether the terms say more than things side by side."""
    return is_constrained(query) and any(
        term.negated or term.group is not None or term.mark or term.join not in ("", ",", ".") for term in terms
    )


def _side_by_side(items: Sequence[Item], leaves: Leaves) -> list[Concept]:
    """The things of a query that only lists them: `beach, sunset, palm trees`."""
    marks = [item.tag for item in items[1::2]]
    things = [content(item.words, leaves.lex) for item in items[::2] if item.tag == "words"]
    if not 1 < len(things) < _LONGEST_LIST or len(things) != len(marks) + 1 or {*marks} != {","}:
        return []
    return [leaves.made(thing) for thing in things] if all(is_thing(thing, leaves.lex) for thing in things) else []


def _reading(query: Query, leaves: Leaves, notes: Notes) -> Reading:
    said = [f"doubtful, so nothing is read: {why}" for why in notes.signs]
    said += [f"doubtful: {why}" for why in notes.shapes]
    return Reading(query, leaves.spans, tuple(said), not said)


def _check_unread(terms: Sequence[Term], lex: Lexicon, notes: Notes) -> None:
    """Doubt a reading that leaves a cue among the words of a concept."""
    if notes.idiom:
        return
    for term in terms:
        for word in term.words:
            if word.kind == "word" and word.low in lex.sets["unread"]:
                notes.sign(f"{word.low!r} is not understood here")
        _check_unread(term.group or (), lex, notes)


def _is_foreign(words: Chunk, lex: Lexicon) -> bool:
    """Whether the words speak for another language: its function words, its letters, or endings as in `menino`."""
    low = [word.low for word in words if word.kind == "word" and word.low.isalpha()]
    foreign = [word for word in low if word in lex.sets["foreign"]]
    english = sum(lex.has(word, "english", "mover") for word in low)
    if any(word not in lex.sets["particle"] for word in foreign):
        return len(foreign) > english
    if any(not word.isascii() for word in low) and not english and len(low) > 2:
        return not all(word.isascii() for word in low if len(word) > 3)
    named = [word for word in low if word not in lex.sets["unread"] and word not in foreign]
    odd = [word for word in named if len(word) > 2 and word.endswith(("a", "i", "o", "u", "que"))]
    return (
        len(odd) > 1 and len(odd) == len(named) < 6 and not english and not any(lex.has(word, "loan") for word in odd)
    )


def frame_length(text: str) -> int:
    """Where the query begins behind what a tool put around it: `input is`, `query:`; 0 without a frame."""
    lex = lexicon()
    words = split_words(text[:200], 0, min(len(text), 200), lex)
    length, _ = match(lex.frames, lows(words))
    if not length or length >= len(words):
        return 0
    after = words[length]
    if after.low in (":", "=", "-") and length + 1 < len(words):
        return words[length + 1].start
    if words[length - 1].low in ("is", "matching", "match") or length > 3:
        return after.start
    return 0
