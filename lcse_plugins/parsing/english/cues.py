"""From words to items: runs of words, and the cues between them that may be logic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lcse_plugins.parsing.english.words import (
    Chunk,
    Lexicon,
    Notes,
    Word,
    is_attribute,
    is_plural,
    lows,
    match,
    without_leading,
)

__all__ = ["NEGATIONS", "Item", "tag_cues"]

NEGATIONS = frozenset({"no", "without", "not", "order", "nobody", "neither", "except list"})
"""The tables of cues that negate what follows."""

_ENDS = frozenset({",", ".", ";", "?", "!", ")", "(", ":", "and", "or", "but", "nor"})
_SMALL_IN_TITLES = frozenset({"a", "an", "the", "of", "in", "on", "or", "and", "for", "to", "at"})
_NO_STOP_AFTER = frozenset({"dr", "mr", "mrs", "st", "vs"})


class Item(NamedTuple):
    """A run of words, or a cue; `tag` is `words`, `free`, a mark, or the table of the cue."""

    tag: str
    words: Chunk


class Place:
    """A cue where it stands: from `at` to `end` in `low`, behind the words of `run` and the earlier items.

    `first` and `text` are of the cue, `before` and `after` stand beside it, `last` ends the run in front of it.
    """

    def __init__(self, words: Chunk, low: Sequence[str], at: int, end: int, run: Chunk, items: Sequence[Item]) -> None:
        self.words, self.low, self.at, self.end, self.run, self.items = words, low, at, end, run, items
        self.first, self.text = low[at], " ".join(low[at:end])
        self.before, self.after = low[at - 1] if at else "", low[end] if end < len(low) else ""
        self.last = run[-1].low if run else ""


def tag_cues(words: Chunk, lex: Lexicon, notes: Notes) -> list[Item]:
    """The words as items: what stays words, what negates, what joins."""
    low = lows(words)
    items: list[Item] = []
    run: Chunk = []
    free: Chunk = []
    negated = False

    def flush() -> None:
        nonlocal run, free
        if run:
            items.append(Item("words", run))
        items.extend(Item("free", [word]) for word in free)
        run, free = [], []

    at = 0
    while at < len(words):
        length, tag = 1, _mark(words, at)
        if not tag and words[at].kind in ("word", "emoji"):
            if thing := _free_word(words, at, run, lex, notes):
                free.append(thing)
                at += 1
                continue
            length, tag = match(lex.cues, low, at)
            if length:
                here = Place(words, low, at, at + length, run, items)
                length, tag = _sense(here, tag, lex, notes, negated=negated)
            elif negated and run and (length := _wish_length(low, at, run, lex)):
                tag = "only"
        if tag in ("", "words"):
            run.extend(words[at : at + (length or 1)])
        else:
            negated |= tag in NEGATIONS or tag == "absent"
            flush()
            items.append(Item(tag, words[at : at + length]))
        at += length or 1
    flush()
    return items


def _mark(words: Chunk, at: int) -> str:
    """The tag of a punctuation mark, or nothing where it is part of the words."""
    word = words[at]
    if word.kind == "dash":
        return "-"
    if word.kind != "mark" or (word.low == "." and at and words[at - 1].low in _NO_STOP_AFTER):
        return ""
    return "." if word.low in ".;?!" else word.low if word.low in (",", ":", "(", ")") else ""


def _wish_length(low: Sequence[str], at: int, run: Chunk, lex: Lexicon) -> int:
    """The length of a new request behind an exclusion: `instead of dogs show me cats`."""
    wish = low[at] in ("show", "give", "find", "i", "include", "there") and not lex.has(
        run[-1].low, "relative", "article"
    )
    return match(lex.leading, low, at)[0] if wish else 0


def _free_word(words: Chunk, at: int, run: Chunk, lex: Lexicon, notes: Notes) -> Word | None:
    """What a word such as `dog-free`, or the word in front of `free`, says is absent; it is taken off the run."""
    word = words[at]
    after = words[at + 1].low if at + 1 < len(words) else ""
    if word.low == "free" and run and lex.has(run[-1].low, "mover", "unwanted") and after not in ("of", "from"):
        if lex.has(after, "place", "image") or (len(run) == 1 and (not after or after in _ENDS)):
            return run.pop()
        notes.sign(f"{run[-1].low} free")
        return None
    stem = word.low.removesuffix("-free").removesuffix("-less")
    if stem not in ("", word.low) and word.low not in lex.sets["lexical"]:
        if after in lex.sets["sign"]:
            notes.sign(word.low)
            return None
        thing = Word(stem, word.start, word.end - 5, capital=word.capital)
        if run and f"{run[-1].low} {stem}" in lex.sets["compound"]:
            thing = thing._replace(start=run.pop().start)
        return thing
    stem = word.low.removesuffix("less")
    if len(word.low) > len(stem) > 2 and stem.isalpha() and f"{stem}-less" not in lex.sets["lexical"]:
        notes.shape(f"{word.low!r} was not taken as logic")
    return None


# -------------------------------------------------------------------------------------------- what a cue means here


def _sense(here: Place, tag: str, lex: Lexicon, notes: Notes, *, negated: bool) -> tuple[int, str]:
    """The length and tag of a cue at this place; the tag `words` where it is none."""
    length, after = here.end - here.at, here.after
    plain = length, "words"
    if tag == "fixed":
        notes.idiom |= any(word in ("no", "not", "without", "never") for word in here.low[here.at : here.end])
        return plain
    if tag == "leeway":
        notes.sign(here.text)
        return plain
    if (tag in NEGATIONS or tag in ("absent", "or", "but")) and _in_title(here):
        notes.sign("a title")
        return plain
    if tag in NEGATIONS and _is_written(here, lex):
        notes.idiom = True
        return plain
    denied = tag == "not" and after.endswith("ing") and here.run  # "protesters not carrying signs"
    if tag in ("no", "not", "without") and not denied and (sign := _sign_end(here, lex)):
        if tag == "no" and (after.endswith("ing") or here.last in ("a", "the")):
            notes.idiom = True
        else:
            notes.sign("what a sign says")
        return sign - here.at, "words"
    alone = not after or after in _ENDS - {"("} or (tag == "not" and after == "to")  # "a warning not to park"
    if tag in ("no", "not", "without") and alone and here.first != "except":
        notes.sign(f"{here.text} stands alone")
        return plain
    if tag in ("either", "both", "exactly one") and not {"and", "or", ",", "as"} & {*here.low[here.end :][:24]}:
        return plain
    if here.first in ("minus", "plus") and (after[:1].isdigit() or here.before in ("a", "the")):
        return plain
    if tag == "without" and after == "to" and here.low[here.end - 1] in ("want", "need"):
        return length - 1, "not"  # "doesn't want to eat"
    if here.first == "sans" and not any(lex.has(word, "english", "mover", "place", "adjective") for word in here.low):
        notes.sign("`sans` may be French")
        return plain
    if tag == "nobody" and here.before in ("a", "the"):
        notes.sign("nobody")
        return plain
    if tag == "only" and (not negated or not after or here.last in lex.sets["preposition"]):
        return plain
    if tag == "exclusive" and after and after not in _ENDS:
        return length, "not both"
    if tag == "but" and length == 1 and match(lex.cues, here.low, here.end)[1] not in NEGATIONS:
        asked = [
            word.low for word in here.run if not lex.has(word.low, "request word") or lex.has(word.low, "universal")
        ]
        if after != "with" and lex.has("".join(asked[:1]), "universal"):
            return length, "without"
        if any(word.low in ("any", "every") for word in here.run):
            notes.sign("whether `but` takes something out")  # "tulips of any colour but yellow"
    special = {"absent": _absent_sense, "no": _no_sense, "order": _order_sense}.get(tag)
    return special(here, lex, notes) if special else (length, tag)


def _in_title(here: Place) -> bool:
    """Whether a cue is written as in a title: `Rebel Without a Cause`, `Not Afraid album cover`, `Doctor No book`."""
    if not here.words[here.at].capital:
        return False
    before = here.run[:-1] if here.last == "." else here.run  # "Dr. No"
    if here.first in ("no", "not", "without", "nobody") and before and before[-1].capital:
        return True
    ahead = [word for word in here.words[here.end : here.end + 4] if word.low not in _SMALL_IN_TITLES]
    return bool(ahead) and ahead[0].capital and (here.at > 0 or (len(ahead) > 1 and ahead[1].kind == "word"))


def _is_written(here: Place, lex: Lexicon) -> bool:
    """Whether what follows is written on the thing in front: `a sign that says no more war`, `a sign: no dogs`."""
    if not here.run:
        tags = [item.tag for item in here.items[-2:]]
        told = here.items[-2].words[-1].low if tags in (["words", ":"], ["words", ","]) else ""
        return told in lex.sets["saying"] or (tags[-1:] == [":"] and lex.has(told, "sign", "lettered"))
    if here.last not in lex.sets["saying"] or here.first in ("without", "except", "excluding"):
        return False
    return any(lex.has(word.low, "sign", "lettered") for word in here.run)


def _sign_end(here: Place, lex: Lexicon) -> int:
    """Where what a sign says ends, sign included: `no dogs allowed sign`; 0 where there is no sign."""
    for place in range(here.end, min(here.end + 5, len(here.low))):
        word, before = here.low[place], here.low[place - 1]
        if word in _ENDS or word in ("without", "no", "not"):
            return 0
        if word in lex.sets["sign"]:
            kind = lex.has(before, "kind of sign", "article", "preposition") or is_attribute(before, lex)
            return 0 if place == here.end or kind or before == "any" else place + 1
    return 0


def _no_sense(here: Place, lex: Lexicon, notes: Notes) -> tuple[int, str]:
    """`no` before a number or in a name."""
    length = here.end - here.at
    if here.first in ("0", "zero") and here.run and not lex.has(here.last, "preposition", "show", "be"):
        return length, "words"  # "coke zero"
    if here.after[:1].isdigit() and here.first == "no":
        notes.sign("`no` may be a number")
        return length, "words"
    if here.before in lex.sets["article"] or (here.text == "no" and here.after in lex.sets["article"]):
        notes.sign("a name with `no` in it, or a slip of `on`")
        return length, "words"
    return length, "no"


def _absent_sense(here: Place, lex: Lexicon, notes: Notes) -> tuple[int, str]:
    """`is missing` behind a thing, `missing a tooth` before one."""
    length, after, run = here.end - here.at, here.after, here.run
    ends = not after or after in _ENDS or after in ("please", "either", "there", "though")
    if here.last in lex.sets["preposition"]:
        notes.sign(here.text)  # "a road to nowhere"
        return length, "words"
    if run and ends:
        if " in " in f" {here.text} " and (len(run) > 4 or lex.has(here.last, "depiction", "image")):
            notes.sign("it is unclear what is not there")
        return length, "absent"
    if "not" in here.low[here.at : here.at + 2] and after != "from" and length > 1:
        if not run and here.low[here.end - 1] == "there":
            notes.sign("a question")  # "aren't there dogs"
        return here.low.index("not", here.at) + 1 - here.at, "not"
    joined = not run and here.items and here.items[-1].tag == "and"  # "swinging and missing the ball"
    if here.low[here.end - 1] == "missing" and not joined and here.last not in ("a", "the", "with", "of", "for", "an"):
        if after in ("a", "an", "its", "his", "her", "any", "their", "the") or (run and is_plural(after, lex)):
            return length, "without"
    notes.sign(here.text)
    return length, "words"


def _order_sense(here: Place, lex: Lexicon, notes: Notes) -> tuple[int, str]:
    """An order excludes where a request may begin; `a man trying to avoid a puddle` orders nothing."""
    length, after, run, first = here.end - here.at, here.after, here.run, here.first
    if not after or after in _ENDS - {":", "("}:
        return length, "words"
    if here.text in ("keep", "leave") and (
        "out" not in here.low[here.end + 1 : here.end + 5] or without_leading(run, lex)
    ):
        return length, "words"  # but "keep the cars out"
    if without_leading(run, lex) and here.last not in ("please", "should", "must"):
        if first in ("exclude", "omit", "filter", "leave", "get", "please") and run[0].low not in lex.sets["article"]:
            return length, "order"
        notes.sign(f"{here.text} may be an order")
        return length, "words"
    named = here.text in lex.sets["order in names"] and not here.items
    clear = lex.has(after, "quantity", "unwanted", "mover") or lex.has(after[:-1], "unwanted") or after in ("any", ":")
    if after in lex.sets["preposition"] or (named and not clear):
        notes.sign(f"{here.text} may be part of a name")
        return length, "words"
    return length, "order"
