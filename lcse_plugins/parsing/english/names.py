"""Cue words that are part of a name: a sign, a title, a brand, a kind of thing."""

from __future__ import annotations

from collections.abc import Sequence

from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.words import Word

__all__ = ["is_title", "may_be_free", "may_be_noun", "may_order", "means_none", "sign_length"]


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
        if end == len(low) or low[end] in signs or words[end].kind != "word":
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
