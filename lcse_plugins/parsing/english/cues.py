"""From words to items: runs of words, and the cues between them that may be logic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lcse_plugins.parsing.english.lexicon import Lexicon, match
from lcse_plugins.parsing.english.phrases import is_attribute, is_plural, without_leading
from lcse_plugins.parsing.english.words import Chunk, Notes, Word, lows

__all__ = ["NEGATIONS", "Item", "tag_cues"]

NEGATIONS = frozenset({"no", "without", "not", "order", "nobody", "neither", "except list"})
"""The tables of cues that negate what follows."""

_ENDS = frozenset({",", ".", ";", "?", "!", ")", "(", ":", "and", "or", "but", "nor"})
_UNCAPITAL = frozenset({"a", "an", "the", "of", "in", "on", "or", "and", "for", "to", "at"})
_STOPS = frozenset({".", ";", "?", "!"})
_DOUBTFUL_TITLE = frozenset({"no", "without", "not", "nobody", "neither", "absent", "or", "but"})


class Item(NamedTuple):
    """A run of words, or a cue; `tag` is `words`, `free`, a mark, or the table of the cue."""

    tag: str
    words: Chunk


def tag_cues(words: Chunk, lex: Lexicon, notes: Notes) -> list[Item]:
    """The words as items: what stays words, what negates, what joins."""
    low = lows(words)
    items: list[Item] = []
    negated = False
    run: Chunk = []
    free: Chunk = []

    def flush() -> None:
        nonlocal run, free
        if run:
            items.append(Item("words", run))
        items.extend(Item("free", [word]) for word in free)
        run, free = [], []

    at = 0
    while at < len(words):
        word = words[at]
        if word.kind in ("mark", "dash") and (tag := _mark(words, at)):
            flush()
            items.append(Item(tag, [word]))
            at += 1
            continue
        if word.kind not in ("word", "emoji"):
            run.append(word)
            at += 1
            continue
        if absent := _free_word(words, at, run, lex, notes):
            length, thing = absent
            if length < 0:
                run.pop()
            free.append(thing)
            at += 1
            continue
        length, tag = match(lex.cues, low, at)
        if (
            not length
            and run
            and negated
            and run[-1].low not in lex.sets["relative"]
            and (wish := _wish_length(low, at, lex))
        ):
            length, tag = wish, "wish"
        if length:
            length, tag = _sense(words, low, at, length, tag, run, items, lex, notes, negated=negated)
            negated |= tag in NEGATIONS or tag == "absent"
        if not length or tag == "words":
            length = max(length, 1)
            run.extend(words[at : at + length])
        else:
            flush()
            items.append(Item(tag, words[at : at + length]))
        at += length
    flush()
    return items


def _mark(words: Chunk, at: int) -> str:
    """The tag of a punctuation mark, or nothing where it is part of the words."""
    word = words[at]
    if word.kind == "dash":
        return "-"
    if word.low == "." and at and words[at - 1].low in ("no", "dr", "mr", "mrs", "st", "excl", "incl", "vs"):
        return ""
    if word.low in _STOPS:
        return "."
    return word.low if word.low in (",", ":", "(", ")") else ""


# ---------------------------------------------------------------------------------------- `dog-free`, `laptop-less`


def _free_word(words: Chunk, at: int, run: Chunk, lex: Lexicon, notes: Notes) -> tuple[int, Word] | None:
    """What a word such as `dog-free`, or the word in front of `free`, says is absent."""
    word = words[at]
    after = words[at + 1].low if at + 1 < len(words) else ""
    if word.low == "free" and run and run[-1].kind == "word" and after not in ("of", "from"):
        thing = run[-1]
        mover = thing.low in lex.sets["mover"] or thing.low in lex.sets["unwanted"]
        alone = len(run) == 1 and (not after or after in _ENDS)
        if not mover or after in lex.sets["given free"] or f"{thing.low}-free" in lex.sets["lexical"]:
            return None
        if after in lex.sets["sign"] or not (alone or after in lex.sets["place"] or after in lex.sets["image"]):
            notes.sign(f"{thing.low} free")
            return None
        return -1, thing
    for ending in ("-free", "-less"):
        stem = word.low.removesuffix(ending)
        if stem == word.low or not stem or word.low in lex.sets["lexical"]:
            continue
        if after in lex.sets["sign"]:
            notes.sign(word.low)
            return None
        cut = Word(stem, word.start, word.end - len(ending), "word", capital=word.capital)
        if run and run[-1].low in ("cell", "hot", "wine", "stop", "traffic", "fire", "tennis", "baseball", "teddy",
                                   "potted", "dining", "sports", "parking", "hair"):  # fmt: skip
            first = run.pop()
            cut = cut._replace(start=first.start, low=f"{first.low} {stem}")
        return 1, cut
    stem = word.low.removesuffix("less")
    if len(word.low) > len(stem) > 2 and stem.isalpha() and f"{stem}-less" not in lex.sets["lexical"]:
        notes.shape(f"{word.low!r} was not taken as logic")
    return None


# -------------------------------------------------------------------------------------------- what a cue means here


def _sense(
    words: Chunk,
    low: Sequence[str],
    at: int,
    length: int,
    tag: str,
    run: Chunk,
    items: Sequence[Item],
    lex: Lexicon,
    notes: Notes,
    *,
    negated: bool,
) -> tuple[int, str]:
    """The length and tag of a cue at this place; the tag `words` where it is none."""
    end = at + length
    after = low[end] if end < len(low) else ""
    before = low[at - 1] if at else ""
    first = low[at]
    if tag == "fixed":
        if any(word.low in ("no", "not", "without", "never") for word in words[at:end]):
            notes.idiom = True
        return length, "words"
    if tag == "wish":
        return length, "only"
    if tag == "exclusive" and after and after not in _ENDS:
        return length, "not both"
    if tag == "leeway":
        notes.sign(" ".join(low[at:end]))
        return length, "words"
    if tag in _DOUBTFUL_TITLE | NEGATIONS and _in_title(words, at, end):
        notes.sign("a title")
        return length, "words"
    if tag == "absent":
        return _absent_sense(low, at, length, run, lex, notes)
    if tag in NEGATIONS and _is_written(words, at, run, items, lex):
        notes.idiom = True
        return length, "words"
    if tag == "no":
        return _no_sense(words, low, at, length, run, lex, notes)
    if tag == "order":
        return _order_sense(words, low, at, length, run, lex, notes)
    if first in ("minus", "plus") and (after[:1].isdigit() or before[:1].isdigit() or before in ("a", "the")):
        return length, "words"
    if tag == "not" and after == "you" and end + 1 >= len(low) - 1:  # "you have dogs, don't you?"
        return length + 1, "words"
    if tag in ("not", "without") and (not after or after in _ENDS - {"("}) and first != "except":
        notes.sign(f"{' '.join(low[at:end])} stands alone")
        return length, "words"
    if tag in ("not", "without") and (sign := _sign_length(low, at, end, lex)):
        notes.sign("what a sign says")
        return sign, "words"
    if tag == "only":
        inside = run and run[-1].low in lex.sets["preposition"]
        return (length, "only") if negated and not inside and after else (length, "words")
    if tag == "nobody" and before in ("a", "the"):
        notes.sign("nobody")
        return length, "words"
    if tag in ("either", "both", "exactly one") and not _has_pair(low, end, tag):
        return length, "words"
    if tag == "but" and length == 1 and run and match(lex.cues, low, end)[1] not in NEGATIONS:
        start = next((word.low for word in run if word.low not in lex.sets["request word"] - lex.sets["universal"]), "")
        start = (
            start
            if start in lex.sets["universal"]
            else next((w.low for w in run[:3] if w.low in lex.sets["universal"]), "")
        )
        if start and after != "with":
            return length, "without"
    return length, tag


def _has_pair(low: Sequence[str], end: int, tag: str) -> bool:
    """Whether `both` and `either` are followed by what they pair: `both a dog and a cat`."""
    ahead = low[end : end + 24]
    return "and" in ahead or (tag != "both" and "or" in ahead) or "," in ahead or "as" in ahead


def _wish_length(low: Sequence[str], at: int, lex: Lexicon) -> int:
    """The length of a new request behind an exclusion: `instead of dogs show me cats`."""
    if low[at] not in ("show", "give", "find", "i", "include"):
        return 0
    return match(lex.leading, low, at)[0]


def _in_title(words: Chunk, at: int, end: int) -> bool:
    """Whether a cue is written as in a title: `Rebel Without a Cause`."""
    if not words[at].capital:
        return False
    following = [word for word in words[end : end + 4] if word.kind == "word" and word.low not in _UNCAPITAL]
    if at == 0:
        return len(following) > 1 and all(word.capital for word in following)
    return bool(following) and following[0].capital


def _is_written(words: Chunk, at: int, run: Chunk, items: Sequence[Item], lex: Lexicon) -> bool:
    """Whether what follows is written on the thing in front: `a sign that says no more war`, `a sign: no dogs`."""
    lettered = lex.sets["sign"] | lex.sets["lettered"]
    if not run:
        if len(items) >= 2 and items[-1].tag == ":" and items[-2].tag == "words":
            return items[-2].words[-1].low in lettered
        return False
    if run[-1].low not in lex.sets["saying"] or words[at].low in ("without", "except", "excluding"):
        return False
    if run[-1].low in ("reading", "labeled", "labelled"):
        return words[at].low != "no"
    return any(word.low in lettered for word in run)


def _sign_length(low: Sequence[str], at: int, end: int, lex: Lexicon) -> int:
    """The length of what a sign says, sign included: `no dogs allowed sign`; 0 where there is no sign."""
    for place in range(end, min(end + 5, len(low))):
        if low[place] in (",", ".", ";", "but", "and", "(", ")", "without", "no", "not"):
            return 0
        if low[place] in lex.sets["sign"] or (low[place] in lex.sets["lettered"] and low[place] in ("tattoo", "flag")):
            if place == end or low[place - 1] in lex.sets["kind of sign"] or is_attribute(low[place - 1], lex):
                return 0
            if low[place - 1] in lex.sets["article"] or low[place - 1] in lex.sets["preposition"]:
                return 0
            if low[place - 1] in ("or", "any", "smiling", "crying", "nike", "apple", "us"):
                return 0
            return place + 1 - at
    return 0


def _no_sense(
    words: Chunk, low: Sequence[str], at: int, length: int, run: Chunk, lex: Lexicon, notes: Notes
) -> tuple[int, str]:
    """`no` before a number, before a sign, in a name."""
    end = at + length
    after = low[end] if end < len(low) else ""
    if sign := _sign_length(low, at, end, lex):
        prohibited = after in lex.sets["prohibition"] or (run and run[-1].low in ("a", "the"))
        if prohibited:
            notes.idiom = True
        else:
            notes.sign("what a sign says")
        return sign, "words"
    if low[at] in ("0", "zero") and (after in ("-", "%") or (run and not _ends_thing(run, lex))):
        return length, "words"
    if after[:1].isdigit() and low[at] == "no":
        notes.sign("`no` may be a number")
        return length, "words"
    if at and low[at - 1] in ("a", "the", "an"):
        notes.sign("a name with `no` in it")
        return length, "words"
    return length, "no"


def _ends_thing(run: Chunk, lex: Lexicon) -> bool:
    """Whether `zero` behind these words counts: `a lobby with zero people`, and not `coke zero`."""
    return run[-1].low in lex.sets["preposition"] or run[-1].low in lex.sets["show"] or run[-1].low in lex.sets["be"]


def _absent_sense(low: Sequence[str], at: int, length: int, run: Chunk, lex: Lexicon, notes: Notes) -> tuple[int, str]:
    """`is missing` behind a thing, `missing a tooth` before one."""
    end = at + length
    after = low[end] if end < len(low) else ""
    last = low[end - 1]
    ends = not after or after in _ENDS or after == "from" or after in ("please", "either", "there", "at", "though")
    if run and ends and after != "from":
        if " in " in f" {' '.join(low[at:end])} " and (
            len(run) > 4 or run[-1].low in lex.sets["depiction"] or run[-1].low in ("paintings", "pictures", "photos")
        ):
            notes.sign("it is unclear what is not there")
        return length, "absent"
    if length > 1 and low[at] in (*lex.sets["be"], "not", "am"):
        shorter, tag = (2, "not") if low[at + 1] == "not" else (1, "not") if low[at] == "not" else (0, "")
        if shorter and after != "from":
            return shorter, tag
    if last == "missing" and run and run[-1].low not in ("a", "the", "with", "of", "for", "an"):
        if after in ("a", "an", "its", "his", "her", "any", "their", "the") or is_plural(after, lex):
            return length, "without"
    if last == "missing" and not run and after in ("a", "an", "the", "any"):
        return length, "without"
    notes.sign(" ".join(low[at:end]))
    return length, "words"


def _order_sense(
    words: Chunk, low: Sequence[str], at: int, length: int, run: Chunk, lex: Lexicon, notes: Notes
) -> tuple[int, str]:
    """An order excludes where a request may begin; `a man trying to avoid a puddle` orders nothing."""
    end = at + length
    after = low[end] if end < len(low) else ""
    first = low[at]
    if not after or after in _ENDS - {":", "("}:
        return length, "words"
    asked = not without_leading(run, lex) or run[-1].low in ("please", "should", "must")
    if not asked:
        doer = run[-1].low in lex.sets["mover"] or any(word.low in lex.sets["mover"] for word in run)
        if first in ("exclude", "omit", "filter", "leave", "get", "please") and run[0].low not in lex.sets["article"]:
            return length, "order"
        if first == "hate" or doer or run[-1].low in ("that", "who", "which", "can", "a", "the"):
            return length, "words"
        notes.sign(f"{' '.join(low[at:end])} may be an order")
        return length, "words"
    if first in ("cut", "take") and after not in lex.sets["quantity"] and after != "any":
        notes.sign(f"{first} out may be part of a name")
        return length, "words"
    if " ".join(low[at:end]) in lex.sets["order in names"]:
        article = after in lex.sets["quantity"] or after in ("any", "all", ":")
        wanted = is_plural(after, lex) or after in lex.sets["unwanted"] or after in lex.sets["mover"]
        if not (article or wanted or any(is_plural(word, lex) for word in low[end : end + 3])):
            notes.sign(f"{first} may be part of a name")
            return length, "words"
    return length, "order"
