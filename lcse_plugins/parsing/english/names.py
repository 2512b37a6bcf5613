"""Cue words that are part of a name: a sign, a title, a brand, a kind of thing."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache

from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.words import Word

__all__ = [
    "is_title",
    "is_written",
    "may_be_free",
    "may_be_name",
    "may_be_noun",
    "may_order",
    "means_none",
    "name_length",
    "sign_length",
]

_LONGEST_NAME = 7


def sign_length(words: Sequence[Word], low: Sequence[str], at: int, lexicon: Lexicon) -> int:
    """The length of `no … sign`, `do not … sign`: the name of a sign, not a wish."""
    signs = lexicon.words("sign")
    if low[at : at + 2] == ["do", "not"]:
        if low[at + 2 : at + 3] and low[at + 2] in lexicon.words("show"):
            return 0
    elif low[at] != "no":
        return 0
    if low[at + 1 : at + 2] and low[at + 1] in lexicon.words("prohibition"):
        end = at + 2
        if end == len(low) or low[end] in signs or _is_any_time(low, end) or words[end].kind != "word":
            return 2
        return 2 if lexicon.cues.match(low, end)[0] or low[end] in lexicon.words("locative") else 0
    for end in range(at + 2, min(at + 9, len(low))):
        word = low[end]
        if word in signs:
            inner = low[at + 1 : end]
            last = inner[-1]
            if low[at] == "do" or last.endswith(("ing", "allowed")) or (last.endswith("s") and last[-2:] != "ss"):
                return end + 1 - at
            return 0
        if words[end].kind != "word" and word != ",":
            return 0
    return 0


def _is_any_time(low: Sequence[str], at: int) -> bool:
    """`no parking | anytime`."""
    return low[at] == "anytime" or low[at : at + 2] == ["any", "time"]


def name_length(low: Sequence[str], at: int, lexicon: Lexicon) -> int:
    """The length of the name of a sign that may begin a query: `no war banner`; or 0."""
    if low[at] != "no" or not _begins_thing(low, at, lexicon):
        return 0
    end = _sign_end(low, at + 1, lexicon.words("sign"))
    return 3 if end == at + 2 and low[at + 1] in lexicon.words("forbidden") else 0


def is_written(low: Sequence[str], at: int, lexicon: Lexicon) -> bool:
    """Whether the words at `at` stand on a thing: `a sign that says | no war`, `a poster reading | not today`."""
    if low[at] not in ("no", "not", "never", "do") or not at or low[at - 1] not in lexicon.words("saying"):
        return False
    thing = at - 3 if low[at - 2 : at - 1] in (["that"], ["which"]) else at - 2
    lettered = frozenset() if low[at - 1] == "reading" else lexicon.words("lettered")  # "a woman in a shirt reading"
    return thing >= 0 and low[thing] in lexicon.words("sign") | lettered


def may_be_name(low: Sequence[str], at: int, lexicon: Lexicon) -> bool:
    """Whether a cue may begin a name, though what follows may be absent: `no iron shirt`, `missing puzzle piece`."""
    before, after = low[at - 1] if at else "", low[at + 1] if at + 1 < len(low) else ""
    held = before.endswith("ing") and before not in lexicon.words("showing")  # "holding | no war sign"
    if not held and not _begins_thing(low, at, lexicon):
        return False
    if low[at] == "missing":
        return after not in lexicon.words("quantity") and may_be_noun(low, at + 2, lexicon)
    if low[at] != "no":
        return False
    if after in lexicon.words("deed"):
        return may_be_noun(low, at + 2, lexicon)
    end = _sign_end(low, at + 1, lexicon.words("sign"))
    if not end or low[end] in lexicon.words("unwanted"):
        return False
    placed = not lexicon.words("preposition").isdisjoint(low[at + 1 : end - 1])  # "no turn on red sign"
    return placed or (end == at + 2 and after not in _no_text(lexicon))


def _begins_thing(low: Sequence[str], at: int, lexicon: Lexicon) -> bool:
    """Whether nothing but a request or an article stands in front: `show me | no war banner`."""
    return not at or low[at - 1] in lexicon.words("article") or lexicon.leading.match(low)[0] == at


def _sign_end(low: Sequence[str], start: int, signs: Set[str]) -> int:
    """Where the sign stands whose text may begin at `start`; 0 when there is none."""
    ends = range(start + 1, min(start + _LONGEST_NAME, len(low)))
    end = next((k for k in ends if low[k] in signs or not low[k].isalpha()), 0)
    return end if end and low[end] in signs and not low[end].endswith("s") and low[end + 1 : end + 2] != [","] else 0


@lru_cache(maxsize=1)
def _no_text(lexicon: Lexicon) -> frozenset[str]:
    """What stands in front of a sign and tells what kind it is, or that it is a thing by itself."""
    tables = ("kind of sign", "adjective", "quantity", "preposition", "determiner")
    return frozenset({"of"}).union(*(lexicon.words(table) for table in tables))


def is_title(words: Sequence[Word], at: int, length: int, lexicon: Lexicon) -> bool:
    """Whether a cue with a capital stands in a title that describes a noun: `a Doctors Without Borders truck`."""
    if not at or not words[at].capital or not words[at - 1].capital:
        return False
    end = at + length
    if end < len(words) and words[end].low in lexicon.words("article"):
        end += 1
    start = end
    while end < len(words) and words[end].capital:
        end += 1
    if start == end or end == len(words) or words[end].kind != "word" or words[end].low.endswith("ing"):
        return False
    return words[end].low not in lexicon.words("preposition") and not lexicon.cues.match([words[end].low])[0]


def may_order(words: Sequence[Word], at: int, length: int, lexicon: Lexicon) -> bool:
    """Whether a verb in front of everything asks for absence: `hide people`, `skip logos`, and not `drop tower`."""
    if " ".join(word.low for word in words[at : at + length]) not in lexicon.words("order in names"):
        return True
    if at + length == len(words) or not words[at + length].low.isalpha():
        return True
    after = words[at + length]
    many = length == 1 and len(after.low) > 3 and after.low.endswith("s") and after.low not in lexicon.words("s noun")
    name = after.capital and not words[at].capital
    return (
        many
        or name
        or any(after.low in lexicon.words(table) for table in ("determiner", "quantity", "mover", "image", "unwanted"))
    )


def means_none(low: Sequence[str], at: int, lexicon: Lexicon) -> bool:
    """Whether `zero` counts: `zero cars`, `with zero furniture`, and not `a zero emission bus`."""
    before = low[at - 1] if at else ""
    after, further = (low[at + k] if at + k < len(low) else "" for k in (1, 2))
    if not after.isalpha() or after in lexicon.words("preposition"):
        return False
    if after in lexicon.words("mover") or (after.endswith("s") and not after.endswith("ss")):
        return True
    if not before.isalpha():
        return not further.isalpha() or lexicon.cues.match(low, at + 2)[0] > 0
    return before in lexicon.words("dangling") - lexicon.words("article")


def may_be_noun(low: Sequence[str], at: int, lexicon: Lexicon) -> bool:
    """Whether a noun may stand here that does not make a sign of what is in front: `people free | beach`."""
    word = low[at] if at < len(low) else ""
    if word in lexicon.words("sign"):
        return False
    return word.isalpha() and not word.endswith(("ing", "ly")) and word not in lexicon.words("preposition")


def may_be_free(low: Sequence[str], at: int, lexicon: Lexicon) -> bool:
    """Whether a place or a picture is named here, which may be free of something: `people free | sandy beach`."""
    places = lexicon.words("place") | lexicon.words("image")
    return not places.isdisjoint(low[at : at + 2])
