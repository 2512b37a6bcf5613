"""A query as a row of words, each knowing where it stands in the text, and the doubts about how to read them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lcse_plugins.parsing.english.lexicon import Lexicon

__all__ = ["Chunk", "Notes", "Word", "join", "lows", "split_words"]

_WORD = re.compile(
    r"""  (?P<quoted> "[^"]*" | “[^“”]*” | «[^«»]*» | (?<!\w)'[^'\n]{2,80}'(?!\w) )
        | (?P<smiley> [:;=]['\-]?[()DPp](?!\w) )
        | (?P<word>   w/(?!\w) | (?i:excl|incl|w\.o)\. | --no(?!\w) | \d+(?:[.,:]\d+)+
                      | [^\W_]+(?:(?:['’‘ʼ´`&_+\-]|[./](?!(?:no|not|without)\s)|(?<=yes)/)[^\W_]+)* )
        | (?P<emoji>  [🚫❌]\ufe0f?
                      | [\u2600-\u27bf\U0001f000-\U0001faff][\u200d\ufe0f\u2600-\u27bf\U0001f000-\U0001faff]* )
        | (?P<dash>   (?<!\S)[-–—]+(?!\S) | [–—] )
        | (?P<line>   [\n\r\u2028\u2029]\s* )
        | (?P<mark>   \S )""",
    re.VERBOSE,
)
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ´`", "'"))
_HIDDEN = {"n't": "not", "'m": "am", "'re": "are", "'d": "would", "'ll": "will", "'ve": "have"}
_LEADS = frozenset({"a", "an", "the", "no", "not", "of", "any", "some", "and", "or", "but", "nor", "without"})
_FOLLOWS = frozenset({"of", "and", "or", "but", "nor", "that", "which", "who"})


class Word(NamedTuple):
    """One word: what it is compared by (lower case, spelling repaired), its place, and its kind.

    `kind` is `word`, `quoted`, `smiley`, `emoji`, `dash` or `mark`; `instead` is the text to use for it where that is
    not the text it stands for; `capital` says whether it is written with one capital in front.
    """

    low: str
    start: int
    end: int
    kind: str = "word"
    instead: str | None = None
    capital: bool = False


Chunk = list[Word]
"""A run of words."""


@dataclass
class Notes:
    """What a reader would hesitate about.

    Attributes:
        signs: doubts whether something is wanted or unwanted; the query then stays plain.
        shapes: doubts about how the parts belong together; the reading stands, and is not sure.
        idiom: whether a cue was seen that is part of a name or of a text on a sign.
    """

    signs: dict[str, None] = field(default_factory=dict)
    shapes: dict[str, None] = field(default_factory=dict)
    idiom: bool = False

    def sign(self, why: str) -> None:
        """Note a doubt about a sign."""
        self.signs[why] = None

    def shape(self, why: str) -> None:
        """Note a doubt about structure."""
        self.shapes[why] = None


def lows(chunk: Sequence[Word]) -> list[str]:
    """The words as they are compared."""
    return [word.low for word in chunk]


def split_words(text: str, start: int, end: int, lex: Lexicon) -> Chunk:
    """The words of `text` between two places; a contraction gives several words at one place.

    The end of a line is a semicolon, unless it merely wraps a clause; below a heading it is a comma.
    """
    found: Chunk = []
    listed = False
    for hit in _WORD.finditer(text, start, end):
        kind = str(hit.lastgroup)
        if kind == "line":
            listed |= [word.low for word in found[-1:]] == [":"]
            found.append(Word("," if listed else ";", hit.start(), hit.end(), "line"))
            continue
        low = _compared(hit[0]) if kind == "word" else hit[0].removesuffix("\ufe0f")
        if hit[0] == "OR" and found and found[-1].low in ("portland", "salem", "eugene", "bend", "ashland", "astoria"):
            low = "OR"
        if low == "&":
            kind, low = "word", "&" if _in_name(text, hit.start()) else "and"
        capital = hit[0][0].isupper() and not (hit[0].isupper() and len(hit[0]) > 1)
        for part in _opened(low, lex) if kind == "word" else (low,):
            found.append(Word(part, hit.start(), hit.end(), kind, capital=capital))
    return [
        word._replace(kind="mark") if word.kind == "line" else word
        for at, word in enumerate(found)
        if word.kind != "line" or _ends_line(found, at, lex)
    ]


def _ends_line(words: Sequence[Word], at: int, lex: Lexicon) -> bool:
    """Whether the end of a line ends a clause too, and does not merely wrap it: `no dogs or | cats`."""
    if not 0 < at < len(words) - 1:
        return False
    before, after = words[at - 1], words[at + 1]
    if before.kind in ("dash", "line") or (before.kind == "mark" and before.low != ")") or after.kind == "dash":
        return False
    return before.low not in _LEADS | lex.sets["preposition"] and after.low not in _FOLLOWS


def _compared(text: str) -> str:
    """A word in lower case, with plain letters and apostrophes."""
    if text.isascii():
        return text.lower().replace("`", "'")
    return unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).lower()


def _in_name(text: str, at: int) -> bool:
    """Whether an ampersand joins two names: `Tom & Jerry`."""
    before, after = text[max(0, at - 40) : at].split()[-1:], text[at + 1 : at + 40].split()[:1]
    return bool(before and after) and before[0][0].isupper() and after[0][0].isupper() and not text[:200].isupper()


def _opened(low: str, lex: Lexicon) -> Sequence[str]:
    if low in lex.spelling:
        return lex.spelling[low].split()
    if "'" in low:
        for ending, meaning in _HIDDEN.items():
            if low.endswith(ending) and len(low) > len(ending):
                return [low[: -len(ending)], meaning]
    return [low]


def join(text: str, words: Sequence[Word]) -> str:
    """The words as they are written; what stands between neighbours is kept, a gap becomes one space."""
    pieces: list[str] = []
    start, end = 0, -1
    for word in words:
        follows = start <= word.start and end >= 0 and (word.start <= end or text[end : word.start].isspace())
        if word.instead is not None:
            pieces.append(f" {word.instead}")
            end = -1
        elif follows and word.end <= end:
            continue
        else:
            pieces.append(text[end : word.end] if follows else f" {text[word.start : word.end]}")
            start, end = start if follows else word.start, word.end
    return "".join(pieces).strip()
