"""Judging runs of words by the tables: what is a thing, a verb, an attribute, and where a description begins."""

from __future__ import annotations

from collections.abc import Sequence

from lcse_plugins.parsing.english.lexicon import Lexicon, match
from lcse_plugins.parsing.english.words import Chunk, lows

__all__ = [
    "content", "head_noun", "is_attribute", "is_attributive", "is_filler", "is_finite", "is_plural", "is_thing",
    "is_verb", "only_points", "permitted", "starts_request", "tail_start", "verb_first",
    "without_dangling", "without_leading",
]  # fmt: skip

_TRIMMINGS = ("mark", "dash", "emoji")
_ABOUT = frozenset({"in", "on", "at", "with", "near", "by", "of"})
_NO_PARTICIPLE = frozenset({"hundred", "speed", "breed", "naked", "weed", "embed", "sacred", "seaweed", "bobsled"})
_AFTER_VERB = frozenset({"to", "up", "down", "out", "off", "away", "around", "together", "alone"})


# ------------------------------------------------------------------------------------------ kinds of words


def is_plural(low: str, lex: Lexicon) -> bool:
    """Whether a word looks like several things."""
    if low in lex.sets["many"]:
        return True
    return len(low) > 3 and low.endswith("s") and not low.endswith("ss") and low not in lex.sets["s noun"]


def is_attribute(low: str, lex: Lexicon) -> bool:
    """Whether a word describes rather than names: `red`, `wooden`."""
    if low in lex.sets["adjective"]:
        return True
    return len(low) > 6 and low.endswith(lex.tables["attribute ending"]) and low not in lex.sets["no attribute"]


def is_attributive(chunk: Chunk, lex: Lexicon) -> bool:
    """Whether a chunk is made of attributes only, and waits for a noun: `red`, `a tall, slim`."""
    words = [low for low in lows(chunk) if low not in lex.sets["article"] and low not in (",", "and", "very", "not")]
    return bool(words) and (all(is_attribute(low, lex) for low in words) or " ".join(words) in lex.sets["shade"])


def is_verb(chunk: Chunk, at: int, lex: Lexicon) -> bool:
    """Whether the word at a place is a verb in -ing, or a participle behind a noun."""
    low = chunk[at].low
    if low in lex.sets["preposition"]:
        return False
    after = chunk[at + 1].low if at + 1 < len(chunk) else ""
    leads_on = after in lex.sets["preposition"] or after in lex.sets["quantity"] or after in _AFTER_VERB
    leads_on |= after == "of"
    if low.endswith("ing") and len(low) > 4:
        if low not in lex.sets["ing noun"]:
            return True
        return leads_on if after else low in lex.sets["action"] and (at > 0 or len(chunk) == 1)
    if low in lex.sets["participle"] or (low.endswith("ed") and len(low) > 4 and low not in _NO_PARTICIPLE):
        leads_on |= is_attribute(after, lex)
        return at > 0 and (leads_on or not after) and not is_attribute(chunk[at - 1].low, lex)
    return False


def verb_first(chunk: Chunk, lex: Lexicon) -> str:
    """Whether a chunk begins with what somebody does: `yes`, `no`, or `maybe` for `jumping horses`."""
    low = lows(chunk)
    if is_finite(low[0], lex) and len(low) > 1 and not is_plural(low[-1], lex):
        return "yes"
    if is_finite(low[0], lex) and len(low) > 1 and low[0] in ("wears", "has", "is", "holds", "carries"):
        return "yes"
    if not is_verb(chunk, 0, lex):
        return "no"
    if len(low) == 1 or low[0] in lex.sets["taking"] or low[1] in _AFTER_VERB or low[1] in lex.sets["owner"]:
        return "yes"
    return "yes" if low[1] in lex.sets["quantity"] or low[1] in lex.sets["preposition"] else "maybe"


def is_finite(low: str, lex: Lexicon) -> bool:
    """Whether a word is a verb that one thing does: `wears`, `jumps`."""
    if low in lex.sets["verb"]:
        return True
    return low.endswith("s") and (low[:-1] in lex.sets["doing"] or low[:-2] in lex.sets["doing"])


def tail_start(chunk: Chunk, lex: Lexicon, at: int = 1) -> int:
    """Where a description of the thing begins, at `at` or behind it: `people | in swimsuits`."""
    for place in range(max(at, 0), len(chunk)):
        low = chunk[place].low
        if low in lex.sets["preposition"] or low in lex.sets["relative"] or is_verb(chunk, place, lex):
            return place
        if low in lex.sets["verb"] or (low == "to" and place):
            return place
    return len(chunk)


def is_thing(chunk: Chunk, lex: Lexicon) -> bool:
    """Whether a chunk names a thing and tells nothing about it."""
    if not chunk or is_attributive(chunk, lex):
        return False
    for place, word in enumerate(chunk):
        if word.low in lex.sets["preposition"] or word.low in lex.sets["relative"] or word.low in lex.sets["verb"]:
            return False
        if place and is_verb(chunk, place, lex):
            return False
        if not place and len(chunk) == 1 and word.low.endswith("ing") and is_verb(chunk, 0, lex):
            return False
        if word.low in lex.sets["pointing"] and word.low != "her":
            return False
        if place and word.low in ("a", "an", "the", "some") and chunk[place - 1].low != "of":
            return False
    return True


def head_noun(chunk: Chunk, lex: Lexicon) -> str:
    """The noun that a chunk is about: the last word before `of`, or before what describes it."""
    end = tail_start(chunk, lex)
    words = [word.low for word in chunk[:end] if word.kind == "word"]
    if "of" in words[1:]:
        words = words[: words.index("of", 1)]
    return words[-1] if words else ""


# --------------------------------------------------------------------------------------------------- filler


def content(chunk: Chunk, lex: Lexicon, *, absent: bool = False) -> Chunk:
    """The chunk without request, article, filler and punctuation around it; may be empty."""
    words = _trimmed(chunk)
    for _ in range(2):  # punctuation may hide filler: `old bicycles, please?`
        inner = without_leading(words, lex)
        if absent and len(inner) > 1 and inner[0].low in lex.sets["owner"]:
            inner = inner[1:]
        inner = _without_closing(inner, lex, absent=absent)
        words = _trimmed(inner)
        if len(words) == len(inner):
            break
    return words


def without_leading(chunk: Chunk, lex: Lexicon) -> Chunk:
    """The chunk without request frames, existential openings and articles in front."""
    low = lows(chunk)
    at = _request_length(low, lex)
    while at < len(low):
        length = _picture_frame(low, at, lex) or _leading_length(low, at, lex)
        if not length:
            break
        at += length
    return [] if only_points(chunk[at:], lex) else chunk[at:]


def only_points(chunk: Chunk, lex: Lexicon) -> bool:
    """Whether a chunk names nothing to look for: `it`, `any of these`."""
    return all(word.low in lex.sets["pointer"] or word.low in lex.sets["article"] for word in chunk)


def starts_request(chunk: Chunk, lex: Lexicon) -> bool:
    """Whether a chunk begins like a request: `show me dogs`, `I want cats`."""
    low = lows(chunk)
    if not low:
        return False
    length, table = match(lex.leading, low)
    named = match(lex.names, low)[0] > length
    return _picture_frame(low, 0, lex) > 1 or (table == "request" and not named and length < len(low))


def without_dangling(chunk: Chunk, lex: Lexicon) -> Chunk:
    """The chunk without the words that only led up to a negation: `that has`, `with`, `where there are`."""
    low = lows(chunk)[::-1]
    at = 0
    while (length := match(lex.dangling, low, at)[0]) > 0:
        at += length
    return chunk[: len(chunk) - at]


def is_filler(chunk: Chunk, lex: Lexicon) -> bool:
    """Whether a chunk is politeness and no more: `please`, `if possible`."""
    low = lows(chunk)
    return match(lex.closing, low[::-1])[0] == len(low) or match(lex.leading, low) == (len(low), "request")


def permitted(chunk: Chunk, lex: Lexicon) -> bool:
    """Whether a chunk allows a thing without asking for it: `dogs are fine`."""
    return bool(match(lex.permission, lows(chunk[-8:])[::-1])[0])


def _request_length(low: Sequence[str], lex: Lexicon) -> int:
    """Where a request such as `I was hoping to find some photos of` ends; 0 when there is none."""
    for at, word in enumerate(low[:16]):
        if word in lex.sets["image"] and ((length := _picture_frame(low, at, lex)) > 1 or at + 1 == len(low)):
            return at + length
        if word not in lex.sets["request word"]:
            return 0
    return 0


def _picture_frame(low: Sequence[str], at: int, lex: Lexicon) -> int:
    if low[at] not in lex.sets["image"]:
        return 0
    if at + 1 == len(low):
        return 1
    length, _ = match(lex.links, low, at + 1)
    return 1 + length if length else 0


def _leading_length(low: Sequence[str], at: int, lex: Lexicon) -> int:
    length, table = match(lex.leading, low, at)
    if not length:
        return 0
    after = low[at + length] if at + length < len(low) else ""
    if low[at + length - 1] == "a" and after in ("few", "lot", "couple", "bunch", "group", "pair", "dozen", "number"):
        length -= 1
    if table == "request" and match(lex.names, low, at)[0] > length:
        return 0  # "display case", "make sure sign"
    if table == "request" and length == 1:
        if after.endswith("ing") or after in _AFTER_VERB or (at and low[at - 1] in lex.sets["article"]):
            return 0  # "show jumping", "keep off", "a display of fruit"
        if low[at] in ("alexa", "siri") and after and after not in lex.sets["request word"]:
            return 0
    return length


def _without_closing(chunk: Chunk, lex: Lexicon, *, absent: bool) -> Chunk:
    """The chunk without what is said after a thing: `please`, `in the picture`, `is present`."""
    table = lex.closing_absent if absent else lex.closing
    low = lows(chunk)[::-1]
    at = 0
    while at + 1 < len(low):
        length, _ = match(table, low, at)
        if not length or at + length >= len(low) or low[at + length] in lex.sets["article"]:  # "with a present"
            worn = low[at] == "on" and low[at + 1] in lex.sets["clothing"]
            stands_in = absent and low[at] in ("one", "ones") and is_attribute(low[at + 1], lex)
            if not (worn or stands_in):
                break
            length = 1
        at += length
    return chunk[: len(chunk) - at]


def _trimmed(words: Chunk) -> Chunk:
    """The words without punctuation at the ends; parentheses are part of what they hold.

    An emoji at an end is decoration, unless nothing else is there (`🍕 without 🍍`) or it is spoken of (`🐕 on 🏖`).
    """
    first, last = 0, len(words)
    while first < last and words[first].kind in _TRIMMINGS and words[first].low != "(":
        first += 1
    if 0 < first < last and words[first - 1].kind == "emoji" and words[first].low in _ABOUT:
        first -= 1
    while last > first and words[last - 1].kind in _TRIMMINGS and words[last - 1].low != ")":
        last -= 1
    if first < last < len(words) and words[last].kind == "emoji" and words[last - 1].low in _ABOUT:
        last += 1
    return words[first:last] or [word for word in words if word.kind == "emoji"]
