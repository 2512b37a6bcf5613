"""A query as a row of words, each knowing where it stands in the text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

from lcse_plugins.parsing.english.lexicon import Lexicon

__all__ = ["Chunk", "Kind", "Word", "join", "split_words", "trimmed", "unpaired"]

_WORD = re.compile(
    r"""  (?P<quoted> "[^"]*" | “[^“”]*” | «[^«»]*» | (?<!\w)'[^'\n]{2,80}'(?!\w) )
        | (?P<smiley> [:;=]['\-]?[()DPp](?!\w) )
        | (?P<word>   w/(?!\w) | --no(?!\w) | \d+(?:[.,:]\d+)+
                      | [^\W_]+(?:(?:['’‘ʼ´`&_+\-]|[./](?!(?:no|not|without)\s)|(?<=yes)/)[^\W_]+)* )
        | (?P<emoji>  [🚫❌]\ufe0f?
                      | [\u2600-\u27bf\U0001f000-\U0001faff][\u200d\ufe0f\u2600-\u27bf\U0001f000-\U0001faff]* )
        | (?P<dash>   (?<!\S)[-–—]+(?!\S) | [–—] )
        | (?P<line>   [\n\r\u2028\u2029]\s* )
        | (?P<mark>   \S )""",
    re.VERBOSE,
)
_TRIMMINGS: tuple[Kind, ...] = ("mark", "dash", "emoji")
_ABOUT = frozenset({"in", "on", "at", "with", "near", "by", "of"})
_LEADS = frozenset({"a", "an", "the", "no", "not", "of", "any", "some", "and", "or", "but", "nor"})
_FOLLOWS = frozenset({"of", "and", "or", "but", "nor", "that", "which", "who"})
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ´`", "'"))


Kind = Literal[
    "word",
    "quoted",  # a text in quotation marks, as one word
    "smiley",  # `:)`
    "emoji",
    "dash",  # one that stands by itself
    "mark",  # any other sign
    "joint",  # an `and` or a comma between attributes that share a noun: `red and white flowers`
]
"""What a word is."""


class Word(NamedTuple):
    """One word.

    Attributes:
        low: what it is compared by: lower case, spelling repaired, contractions opened.
        start: where it begins in the text.
        end: where it ends.
        kind: what it is.
        instead: the text to use for it, where that is not the text it stands for.
        capital: whether it is written with one capital in front.
    """

    low: str
    start: int
    end: int
    kind: Kind = "word"
    instead: str | None = None
    capital: bool = False


Chunk = list[Word]
"""A run of words: an operand, or a part of one."""


def split_words(text: str, lexicon: Lexicon) -> list[Word]:
    """The words of `text`; a contraction gives several words at one place.

    The end of a line ends a clause; below a heading it lists: `exclude:`, then a thing on each line.
    """
    found: list[Word] = []
    listed = False
    for match in _WORD.finditer(text):
        if match.lastgroup == "line":
            listed |= [word.low for word in found[-1:]] == [":"]
            found.append(Word("," if listed else ";", match.start(), match.end(), "mark"))
            continue
        kind = cast("Kind", match.lastgroup)
        low = _compared(match[0]) if kind == "word" else match[0].removesuffix("\ufe0f")
        if match[0] == "&":
            kind, low = "word", "&" if _in_name(text, match.start()) else "and"
        for part in _opened(low, lexicon) if kind == "word" else (low,):
            capital = match[0][0].isupper() and not match[0].isupper()
            found.append(Word(part, match.start(), match.end(), kind, capital=capital))
    return [word for at, word in enumerate(found) if not text[word.start].isspace() or _ends_line(found, at, lexicon)]


def _ends_line(words: Sequence[Word], at: int, lexicon: Lexicon) -> bool:
    """Whether the end of a line at `at` ends a clause too, and does not merely wrap it: `no dogs or | cats`."""
    if not 0 < at < len(words) - 1:
        return False
    before, after = words[at - 1], words[at + 1]
    if before.kind == "dash" or (before.kind == "mark" and before.low != ")") or after.kind == "dash":
        return False
    return before.low not in _LEADS | lexicon.words("preposition") and after.low not in _FOLLOWS


def unpaired(words: Chunk) -> Chunk:
    """The parentheses among the words that are never closed, or close nothing."""
    opened: Chunk = []
    found: Chunk = []
    for word in words:
        if word.kind == "mark" and word.low == "(":
            opened.append(word)
        elif word.kind == "mark" and word.low == ")":
            found += [word] if not opened else []
            opened = opened[:-1]
    return found + opened


def _compared(text: str) -> str:
    """A word in lower case, with plain letters and apostrophes."""
    if text.isascii():
        return text.lower().replace("`", "'")
    return unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).lower()


def _in_name(text: str, ampersand: int) -> bool:
    """Whether an ampersand joins two names: `Tom & Jerry`."""
    before, after = (
        text[max(0, ampersand - 40) : ampersand].split()[-1:],
        text[ampersand + 1 : ampersand + 40].split()[:1],
    )
    return bool(before and after) and before[0][0].isupper() and after[0][0].isupper() and not text.isupper()


def _opened(low: str, lexicon: Lexicon) -> list[str]:
    if low in lexicon.spelling:
        return lexicon.spelling[low].split()
    if "'" in low:
        for ending, meaning in lexicon.contraction.items():
            if low.endswith(ending) and len(low) > len(ending):
                return [low[: -len(ending)], meaning]
    return [low]


def join(text: str, words: Chunk) -> str:
    """The words as they are written; what stands between neighbours is kept, a gap becomes one space."""
    pieces: list[str] = []
    run: tuple[int, int] | None = None
    for word in words:
        if run is not None and word.instead is None:
            if word.start < run[1] or text[run[1] : word.start].isspace() or word.start == run[1]:
                run = (run[0], max(run[1], word.end))
                continue
        if run is not None:
            pieces.append(text[slice(*run)])
        run = (word.start, word.end) if word.instead is None else None
        if word.instead is not None:
            pieces.append(word.instead)
    if run is not None:
        pieces.append(text[slice(*run)])
    return " ".join(pieces)


def trimmed(words: Chunk) -> Chunk:
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
