"""Absence that is said behind a thing or in one word: `is missing`, `leave … out`, `dog-free`, `people free`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from lcse_plugins.parsing.english.items import NEGATIONS, Item, is_words, tag_at
from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.names import may_be_free, may_be_noun
from lcse_plugins.parsing.english.orders import acts, may_end_thing
from lcse_plugins.parsing.english.senses import Answer
from lcse_plugins.parsing.english.words import Chunk, Word

__all__ = ["absence_length", "is_free", "left_out_length", "may_be_outside", "put_absent"]

_JOINTS = frozenset({"and", "or", "but", "nor", "exclusive"})
_PLACES = frozenset({"in", "on", "at", "off"})
_LONGEST_CLOSING = 5


def absence_length(words: Sequence[Word], low: Sequence[str], at: int, lexicon: Lexicon) -> int:
    """The length of a phrase such as `is missing`, where a phrase of a thing ends with it; else 0."""
    length, _ = lexicon.absent.match(low, at)
    end = at + length
    if not length or (low[end - 1] == "not" and lexicon.cues.match(low, end - 1)[1] == "emphatic"):
        return 0  # "is not missing"
    if low[end - 1] != "not" and low[end : end + 2] in (["from", "the"], ["from", "a"], ["from", "this"]):
        return length + 1
    if _ends_clause(words, end):
        return length
    if low[end - 1] in ("missing", "absent") and (low[end].endswith("ing") or low[end] in lexicon.words("be")):
        return length
    closing = next((k for k in range(1, _LONGEST_CLOSING + 1) if _closes(words, low, end, k, lexicon)), 0)
    _, tag = lexicon.cues.match(low, end)
    if closing or tag in _JOINTS or tag in NEGATIONS:
        return length + closing
    lacks = low[end - 1] in ("missing", "absent") and lexicon.cues.match(low, end - 1)[1] != "fixed"
    return length + 1 if lacks and end + 1 < len(words) and _may_lack_at(low[end], low[at - 1], lexicon) else 0


def may_be_outside(items: Sequence[Item], lexicon: Lexicon) -> bool:
    """Whether the last words are a thing that may be `not in frame`: `wedding, | bride`, not `room, | paintings`."""
    tables = ("preposition", "pointer", "depiction")
    told = frozenset[str]().union(*(lexicon.words(table) for table in tables))
    low = [word.low for word in items[-1].words]
    bare = told.isdisjoint(low) and told.isdisjoint(word.removesuffix("s") for word in low)
    return bare and not any(word.endswith("ing") for word in low) and tag_at(items, len(items) - 2) == "comma"


def _may_lack_at(place: str, thing: str, lexicon: Lexicon) -> bool:
    """Whether a place may follow that lacks the thing: `a wheel missing | off a car`, not `a child … in woods`."""
    return place == "from" or (place in _PLACES and not acts(thing, lexicon))


def _ends_clause(words: Sequence[Word], end: int) -> bool:
    return end >= len(words) or words[end].kind in ("mark", "dash")


def _closes(words: Sequence[Word], low: Sequence[str], at: int, length: int, lexicon: Lexicon) -> bool:
    """Whether these words are filler that ends the clause: `(is missing) in the picture`."""
    end = at + length
    return _ends_clause(words, end) and lexicon.closing.match(low[at:end][::-1])[0] == length


def left_out_length(words: Sequence[Word], low: Sequence[str], at: int, operand: Chunk, lexicon: Lexicon) -> int:
    """The length of the end of `leave the cats | out`, `keep cats | out of it`; the operand loses the beginning."""
    length = 1 + lexicon.of_picture.match(low, at + 1)[0]
    if at + length < len(low) and words[at + length].kind == "word":
        return 0
    verb = next((k for k, word in enumerate(operand) if word.low in ("leave", "keep")), len(operand))
    asked = all(word.low in lexicon.words("request word") for word in operand[:verb])
    if not asked or verb + 1 >= len(operand):
        return 0
    del operand[: verb + 1]
    return length


def is_free(low: Sequence[str], at: int, lexicon: Lexicon) -> Answer:
    """Whether the word at `at` is the `free` of `people free beach`, `text free photo`."""
    if low[at] != "free" or not at or not may_end_thing(low[at - 1], lexicon):
        return "no"
    before, after = low[at - 1], low[at + 1] if at + 1 < len(low) else ""
    unwanted = before in lexicon.words("unwanted")
    named = unwanted or before in lexicon.words("mover")
    if f"{before}-free" in lexicon.words("lexical"):
        return "no"
    if not after.isalpha():
        return _ends_free(low[at - 2] if at > 1 else "", lexicon) if named else "no"
    if after in lexicon.words("sign") or after.endswith("ing"):
        return "maybe" if unwanted or before in lexicon.words("stuff") else "no"  # "plastic free packaging"
    if not may_be_noun(low, at + 1, lexicon):
        return "no"
    joined = lexicon.cues.match(low, at + 1)[0] > 0
    if named:
        return "yes" if not joined and (unwanted or may_be_free(low, at + 1, lexicon)) else "maybe"
    return "maybe" if not joined and _may_lack(after, before, lexicon) else "no"


def _ends_free(before: str, lexicon: Lexicon) -> Answer:
    """The answer at the end, by what stands in front of the thing: `a beach, | people free`, `setting a | dog free`."""
    if before == ",":
        return "yes"
    return "no" if before in lexicon.words("quantity") or before.endswith("ing") else "maybe"


def _may_lack(host: str, thing: str, lexicon: Lexicon) -> bool:
    """Whether a host may be free of a thing, and does not go free itself: `rust free car`, not `football free kick`."""
    if host in lexicon.words("given free") or (len(thing) > 5 and thing.endswith(("ing", "ed"))):
        return False
    return thing not in lexicon.words("adjective") or thing in lexicon.words("stuff")


def put_absent(items: list[Item], thing: Chunk, lexicon: Lexicon) -> None:
    """Put down an absent thing, with the nouns in front of it: `a sunny | parking meter-free` street."""
    rest = items.pop() if is_words(items, len(items) - 1) else Item("words")
    ends = _ends_of_nouns(lexicon)
    while rest.words and rest.words[-1].low not in ends and rest.words[-1].kind == "word":
        thing = [rest.words.pop(), *thing]
    items.append(Item("words", thing, negated=True))
    if rest.words:
        items.append(rest)


@lru_cache(maxsize=1)
def _ends_of_nouns(lexicon: Lexicon) -> frozenset[str]:
    tables = ("adjective", "quantity", "preposition", "request")
    return frozenset({"of", "any", "me"}).union(*(lexicon.words(table) for table in tables))
