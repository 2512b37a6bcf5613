"""Where the words of a concept stand in a query, up to inflection, accents, hyphens and the kind of quotes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from lcse_plugins.parsing.grounding.exclusion import cues_of, privative
from lcse_plugins.parsing.grounding.inflection import same_word

__all__ = ["ARTICLES", "PEOPLE", "Place", "folded", "places_of", "stands_for", "wanted_words", "words_of"]

ARTICLES = frozenset({"a", "an", "the"})
PEOPLE = frozenset({"people", "person", "anyone", "anybody", "human"})
"""What a query with `nobody` may be said to exclude."""

_TOKEN = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # written without spaces
    r"|[^\W_][^\W_\u0300-\u036f]*(?:[\u0300-\u036f]+[^\W_]*)*(?:['’][^\W_]+)*|[^\w\s]"
)
_HYPHENATED = re.compile(r"[^\W_]+(?:[-‐‑][^\W_]+)+")
_ACCENTS = re.compile(r"[\u0300-\u036f]")
_ALIKE = str.maketrans("‘’“”„«»‐‑–—−", '\'\'"""""-----')


@dataclass(frozen=True)
class Place:
    """A word, folded, and where it stands."""

    text: str
    start: int
    end: int


def folded(text: str) -> str:
    """The text as it is compared: one form of each letter, no accents, plain quotes and hyphens."""
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", bare).translate(_ALIKE)


def words_of(query: str) -> tuple[Place, ...]:
    """The words of a query, `t-shirt` also as `tshirt`, and for each `nobody` the people it speaks of."""
    found = _tokens(query)
    found += [Place(_joined(match[0]), *match.span()) for match in _HYPHENATED.finditer(query)]
    found += [Place(word, cue.end, cue.end) for cue in cues_of(query) if cue.tag == "nobody" for word in sorted(PEOPLE)]
    return tuple(sorted(found, key=lambda word: word.start))


def wanted_words(concept: str, words: Sequence[Place]) -> list[str]:
    """The words of a concept; `t-shirt` is one where the query has it as one."""

    def one_or_two(match: re.Match[str]) -> str:
        joined = _joined(match[0])
        return joined if any(same_word(word.text, joined) for word in words) else match[0]

    return [word.text for word in _tokens(_HYPHENATED.sub(one_or_two, concept))]


def _tokens(text: str) -> list[Place]:
    return [
        Place(folded(match[0]), *match.span())
        for match in _TOKEN.finditer(text)
        if match[0][0].isalnum() or unicodedata.category(match[0][0]) == "So"
    ]


def _joined(compound: str) -> str:
    return folded(compound).replace("-", "")


def stands_for(word: str, wanted: str) -> bool:
    """Whether a word of the query carries the wanted one: the same, inflected, or as `treeless` carries `tree`."""
    return same_word(word, wanted) or bool((stem := privative(word)) and same_word(stem, wanted))


def places_of(concept: str, words: Sequence[Place]) -> list[tuple[int, ...]]:
    """Positions of the concept's words in the query, once for every place they may be read from."""
    wanted = wanted_words(concept, words)
    wanted = [word for word in wanted if word not in ARTICLES] or wanted
    if not wanted:
        return []
    starts = [at for at, word in enumerate(words) if stands_for(word.text, wanted[0])]
    places = [place for at in starts if (place := _in_order(wanted, words, at))]
    return places or list(filter(None, [_in_any_order(wanted, words)]))


def _in_order(wanted: Sequence[str], words: Sequence[Place], start: int) -> tuple[int, ...] | None:
    """The nearest places of the wanted words, one behind the other; the first of them stands at `start`."""
    place = [start]
    for word in wanted[1:]:
        following = (i for i in range(place[-1] + 1, len(words)) if stands_for(words[i].text, word))
        if (position := next(following, None)) is None:
            return None
        place.append(position)
    return tuple(place)


def _in_any_order(wanted: Sequence[str], words: Sequence[Place]) -> tuple[int, ...] | None:
    used: list[int] = []
    for word in wanted:
        free = (i for i, other in enumerate(words) if i not in used and stands_for(other.text, word))
        if (position := next(free, None)) is None:
            return None
        used.append(position)
    return tuple(sorted(used))
