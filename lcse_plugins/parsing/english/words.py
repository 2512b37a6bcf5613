"""A query as a row of words, the tables of `english.txt` they are looked up in, and what a run of words is.

First the tables (`Lexicon`), then the words (`split_words`), then judgements about a run of words: is it a thing, a
verb, an attribute, a request, and what is left of it without article and filler (`content`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from itertools import product
from string import ascii_lowercase
from typing import NamedTuple

__all__ = [
    "Chunk", "Lexicon", "Notes", "Word", "content", "head_noun", "is_attribute", "is_attributive", "is_filler",
    "is_finite", "is_plural", "is_thing", "is_verb", "join", "lexicon", "lows", "match", "split_words",
    "starts_request", "tail_start", "verb_first", "without_dangling", "without_leading",
]  # fmt: skip

# ------------------------------------------------------------------------------------------ the tables

Phrases = Mapping[str, tuple[Sequence[int], Mapping[tuple[str, ...], str]]]
"""By their first word: how long the phrases are, the longest first, and the table that each comes from."""

CUES = (
    "fixed", "leeway", "emphatic", "exclusive", "exactly one", "not both", "neither", "except list", "nobody",
    "absent", "no", "without", "not", "order", "nor", "both", "either", "but", "or", "and", "only",
)  # fmt: skip
"""The tables of cues; of equal phrases the one in the first table counts."""


class Lexicon:
    """What the grammar knows about words: single words by table, and phrases by their first word."""

    def __init__(self, text: str) -> None:
        self.tables = {
            name: tuple(entry for part in body.split(",") if (entry := " ".join(part.split())))
            for name, body in re.findall(r"\[(.+?)\]([^\[]*)", re.sub(r"#.*", "", text))
        }
        self.sets = {name: frozenset(entries) for name, entries in self.tables.items()}
        self.spelling = self._spelling()
        self.cues = self._phrases(*CUES)
        self.leading = self._phrases("request", "opening", "determiner")
        self.links = self._phrases("link")
        self.frames = self._phrases("frame")
        self.names = self._phrases("request in names")
        # these are searched from the end of a text: their words stand backwards
        self.closing = self._phrases("closing", backwards=True)
        self.closing_absent = self._phrases("closing", "closing absent", backwards=True)
        self.permission = self._phrases("permission", backwards=True)
        self.dangling = self._phrases("dangling", backwards=True)

    def has(self, word: str, *names: str) -> bool:
        """Whether a word stands in one of these tables."""
        return any(word in self.sets[name] for name in names)

    def knows(self, word: str) -> bool:
        """Whether a word stands in any table."""
        return any(word in words for words in self.sets.values())

    def _phrases(self, *names: str, backwards: bool = False) -> Phrases:
        index: dict[str, dict[tuple[str, ...], str]] = {}
        for name in names:
            for entry in self.tables[name]:
                choices = [self.tables[word[1:-1]] if word[0] == "{" else (word,) for word in entry.split()]
                for chosen in product(*choices):
                    words = tuple(" ".join(chosen).split())[:: -1 if backwards else 1]
                    index.setdefault(words[0], {}).setdefault(words, name)
        return {first: (sorted({*map(len, entry)}, reverse=True), entry) for first, entry in index.items()}

    def _spelling(self) -> dict[str, str]:
        """What people type, and what they mean: the table of spellings, and a slip in a long cue."""
        pairs = (entry.partition("=") for entry in self.tables["spelling"])
        spelling = {left.strip(): right.strip() for left, _, right in pairs}
        own = self.sets["repaired"] | self.sets["no slip"]
        slips = {slip: spelling.get(word, word) for word in self.tables["repaired"] for slip in _typed(word)}
        return {slip: word for slip, word in slips.items() if slip not in own} | spelling


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The tables, read once."""
    return Lexicon(files("lcse_plugins.parsing.english").joinpath("english.txt").read_text("utf-8"))


def match(phrases: Phrases, words: Sequence[str], at: int = 0) -> tuple[int, str]:
    """The length and table of the longest phrase at a place; `(0, "")` when there is none."""
    if at < len(words):
        lengths, found = phrases.get(words[at], ((), {}))
        for length in lengths:
            if at + length <= len(words) and (table := found.get(tuple(words[at : at + length]))):
                return length, table
    return 0, ""


def _typed(word: str) -> Iterator[str]:
    """The texts that are one letter, or two neighbours in the wrong order, away from a word."""
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        yield head + tail[1:]
        yield head + tail[1:2] + tail[:1] + tail[2:]
        for letter in ascii_lowercase + "-":
            yield head + letter + tail
            yield head + letter + tail[1:]


# ------------------------------------------------------------------------------------------- the words

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
_WRAPS_AFTER = frozenset({"a", "an", "the", "no", "not", "of", "any", "some", "and", "or", "but", "nor", "without"})
_WRAPS_BEFORE = frozenset({"of", "and", "or", "but", "nor", "that", "which", "who"})


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
    """What a reader would hesitate about."""

    signs: dict[str, None] = field(default_factory=dict)  # is it wanted or unwanted? The query then stays plain
    shapes: dict[str, None] = field(default_factory=dict)  # how do the parts belong together? The reading stands
    idiom: bool = False  # a cue was seen that is part of a name or of a text on a sign

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
        kind, low = str(hit.lastgroup), hit[0].removesuffix("\ufe0f")
        if kind == "line":
            listed |= lows(found[-1:]) == [":"]
            found.append(Word("," if listed else ";", hit.start(), hit.end(), "line"))
            continue
        low = {"[": "(", "]": ")"}.get(low, low)
        if kind == "word":
            low = unicodedata.normalize("NFKC", low.translate(_APOSTROPHES)).lower()
        if hit[0] == "OR" and lex.sets["oregon"] & {*lows(found[-2:])}:
            low = "OR"
        elif low == "&":
            kind, low = "word", "&" if _joins_names(text, hit.start()) else "and"
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
    return before.low not in _WRAPS_AFTER | lex.sets["preposition"] and after.low not in _WRAPS_BEFORE


def _joins_names(text: str, at: int) -> bool:
    """Whether an ampersand joins two names: `Tom & Jerry`."""
    before, after = text[max(0, at - 40) : at].split()[-1:], text[at + 1 : at + 40].split()[:1]
    return bool(before and after) and before[0][0].isupper() and after[0][0].isupper() and not text[:200].isupper()


def _opened(low: str, lex: Lexicon) -> Sequence[str]:
    if low in lex.spelling:
        return lex.spelling[low].split()
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
        else:
            pieces.append(text[end : word.end] if follows else f" {text[word.start : word.end]}")
            start, end = start if follows else word.start, word.end
    return "".join(pieces).strip()


# ---------------------------------------------------------------------------------------- kinds of words

_TRIMMINGS = ("mark", "dash", "emoji")
_AFTER_VERB = frozenset({"to", "up", "down", "out", "off", "away", "around", "together", "alone"})


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
    words = [low for low in lows(chunk) if low not in lex.sets["article"] and low not in (",", "and", "not")]
    return bool(words) and all(is_attribute(low, lex) for low in words)


def is_verb(chunk: Chunk, at: int, lex: Lexicon) -> bool:
    """Whether the word at a place is a verb in -ing, or a participle behind a noun."""
    low = chunk[at].low
    after = chunk[at + 1].low if at + 1 < len(chunk) else ""
    leads_on = lex.has(after, "preposition", "quantity") or after in _AFTER_VERB or after == "of"
    if low in lex.sets["preposition"]:
        return False
    if low.endswith("ing") and len(low) > 4:
        if low not in lex.sets["ing noun"]:
            return True
        return leads_on if after else low in lex.sets["action"] and (at > 0 or len(chunk) == 1)
    if low in lex.sets["participle"] or (low.endswith("ed") and len(low) > 4 and low not in lex.sets["ed noun"]):
        leads_on |= is_attribute(after, lex)
        return at > 0 and (leads_on or not after) and not is_attribute(chunk[at - 1].low, lex)
    return False


def verb_first(chunk: Chunk, lex: Lexicon) -> str:
    """Whether a chunk begins with what somebody does: `yes`, `no`, or `maybe` for `jumping horses`."""
    low = lows(chunk)
    if not is_verb(chunk, 0, lex):
        return "no"
    if len(low) == 1 or low[0] in lex.sets["taking"] or low[1] in _AFTER_VERB:
        return "yes"
    return "yes" if lex.has(low[1], "quantity", "preposition") else "maybe"


def is_finite(low: str, lex: Lexicon) -> bool:
    """Whether a word is a verb that one thing does: `wears`, `jumps`."""
    return low in lex.sets["verb"] or (low.endswith("s") and (lex.has(low[:-1], "doing") or lex.has(low[:-2], "doing")))


def tail_start(chunk: Chunk, lex: Lexicon, at: int = 1) -> int:
    """Where a description of the thing begins, at `at` or behind it: `people | in swimsuits`."""
    for place in range(max(at, 0), len(chunk)):
        low = chunk[place].low
        if lex.has(low, "preposition", "relative") or is_verb(chunk, place, lex) or (low == "to" and place):
            return place
        if low in lex.sets["verb"] and not (place and chunk[place - 1].low in lex.sets["article"]):
            return place
    return len(chunk)


def is_thing(chunk: Chunk, lex: Lexicon) -> bool:
    """Whether a chunk names a thing and tells nothing about it."""
    if not chunk or is_attributive(chunk, lex) or (len(chunk) == 1 and is_verb(chunk, 0, lex)):
        return False
    return not any(
        lex.has(word.low, "preposition", "relative", "verb", "pointing")
        or (place and (is_verb(chunk, place, lex) or (lex.has(word.low, "article") and chunk[place - 1].low != "of")))
        for place, word in enumerate(chunk)
    )


def head_noun(chunk: Chunk, lex: Lexicon) -> str:
    """The noun that a chunk is about: the last word before `of`, or before what describes it."""
    words = [word.low for word in chunk[: tail_start(chunk, lex)] if word.kind == "word"]
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
    """The chunk without request frames, existential openings and articles in front; empty where it only points."""
    low = lows(chunk)
    at = _request_length(low, lex)
    while at < len(low):
        length = _picture_frame(low, at, lex) or _leading_length(low, at, lex)
        if not length:
            break
        at += length
    return [] if all(lex.has(word, "pointer", "article") for word in low[at:]) else chunk[at:]


def starts_request(chunk: Chunk, lex: Lexicon) -> bool:
    """Whether a chunk begins like a request: `show me dogs`, `I want cats`."""
    low = lows(chunk)
    length, table = match(lex.leading, low)
    named = match(lex.names, low)[0] > length
    return _picture_frame(low, 0, lex) > 1 or (table == "request" and not named and length < len(low))


def without_dangling(chunk: Chunk, lex: Lexicon) -> Chunk:
    """The chunk without the words that only led up to a negation: `that has`, `with`, `where there are`."""
    low = lows(chunk)[::-1]
    at = 0
    while (length := match(lex.dangling, low, at)[0]) > 0:
        if low[at] == "it" and at + 1 < len(low) and low[at + 1] in lex.sets["preposition"]:
            break  # "a table with food on it"
        if low[at] == "show" and low[at + 1 : at + 2] == ["the"]:
            break  # "a stage before the show"
        at += length
    return chunk[: len(chunk) - at]


def is_filler(chunk: Chunk, lex: Lexicon) -> bool:
    """Whether a chunk asks for nothing: politeness (`if possible`) or a permission (`dogs are fine`)."""
    low = lows(chunk)
    if match(lex.permission, low[-8:][::-1])[0] and not any(word in lex.sets["relative"] for word in low):
        return True
    return match(lex.closing, low[::-1])[0] == len(low)


def _request_length(low: Sequence[str], lex: Lexicon) -> int:
    """Where a request such as `I was hoping to find some photos of` ends; 0 when there is none."""
    for at, word in enumerate(low[:16]):
        if word in lex.sets["image"] and ((length := _picture_frame(low, at, lex)) > 1 or at + 1 == len(low)):
            return at + length
        if word not in lex.sets["request word"]:
            return 0
    return 0


def _picture_frame(low: Sequence[str], at: int, lex: Lexicon) -> int:
    if not low or low[at] not in lex.sets["image"]:
        return 0
    length, _ = match(lex.links, low, at + 1)
    return 1 + length if length or at + 1 == len(low) else 0


def _leading_length(low: Sequence[str], at: int, lex: Lexicon) -> int:
    length, table = match(lex.leading, low, at)
    after = low[at + length] if at + length < len(low) else ""
    if table == "request":
        if match(lex.names, low, at)[0] > length:
            return 0  # "display case", "make sure sign"
        if length == 1 and (after.endswith("ing") or after in _AFTER_VERB or (at and lex.has(low[at - 1], "article"))):
            return 0  # "show jumping", "keep off", "a display of fruit"
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
    """The words without marks and emoji around them; parentheses are part of what they hold."""
    first, last = 0, len(words)
    while first < last and words[first].kind in _TRIMMINGS and words[first].low != "(":
        first += 1
    while last > first and words[last - 1].kind in _TRIMMINGS and words[last - 1].low != ")":
        last -= 1
    return words[first:last] or [word for word in words if word.kind == "emoji"]
