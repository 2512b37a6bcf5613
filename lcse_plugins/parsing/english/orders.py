"""Verbs that ask for absence behind other words: `a sunset exclude people`, and not `a man trying to avoid people`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from lcse_plugins.parsing.english.kinds import Kinds
from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.senses import Answer
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["acts", "asks_for_absence", "may_end_thing"]

_PLAIN = frozenset({"exclude", "omit"})
"""Nobody in a picture does this."""
_OWN = frozenset({"a", "an", "his", "her", "its", "their", "each", "one"})
_NUMBERS = frozenset("two three four five six seven eight nine ten several many both".split())
_CAUSES = frozenset(
    "help helps helping watch watches watching see sees seeing make makes making let lets letting".split()
)
"""Behind these, someone does it: `a dad helping his son remove a splinter`."""


def asks_for_absence(low: Sequence[str], at: int, length: int, host: Chunk, lexicon: Lexicon, *, many: bool) -> Answer:
    """Whether the verb of some words at `at` asks for absence, behind the words of its `host`.

    A bare verb says nothing about one thing (`a beach | avoid`), so it asks; `many` things in front may do it
    themselves, and so may someone, where an ending is left out (`man | remove snow`).
    """
    verb, after = " ".join(low[at : at + length]), low[at + length] if at + length < len(low) else ""
    if verb not in lexicon.words("order anywhere"):
        return "no"
    before = host[-1].low
    if before == "please":
        return "yes"
    if verb in lexicon.words("order in names"):
        return "maybe" if may_end_thing(before, lexicon) and _is_left_out(after, lexicon) else "no"
    if not may_end_thing(before, lexicon):
        return _asked(host, verb, lexicon)
    if verb not in _PLAIN and not _CAUSES.isdisjoint(word.low for word in host):
        return "no"
    if not after or (before in lexicon.words("unwanted") and after.isalpha()):
        return "maybe"  # "people exclude", "background remove tool"
    if verb in _PLAIN or after == ":":
        return "yes"
    if many or _is_many(host, lexicon):
        return _done_by(host, after, lexicon)
    return "maybe" if acts(before, lexicon) else "yes"


def acts(low: str, lexicon: Lexicon) -> bool:
    """Whether what a word names does things by itself."""
    return any(low in lexicon.words(table) for table in ("mover", "agent", "many"))


def _is_many(host: Chunk, lexicon: Lexicon) -> bool:
    """Whether the host speaks of more than one: `dogs`, `a couple`, `two salmon`."""
    kinds, first, last = _kinds(lexicon), host[0].low, host[-1].low
    counted = (first in _NUMBERS or (first.isdigit() and first != "1")) and kinds.find_governor(host) is None
    return counted or kinds.is_plural(last) or last in lexicon.words("many")


def _is_left_out(low: str, lexicon: Lexicon) -> bool:
    return low in ("the", "any", "all") or low in lexicon.words("mover") or low in lexicon.words("unwanted")


def may_end_thing(low: str, lexicon: Lexicon) -> bool:
    """Whether a word may be the last of a thing: a noun, or what cannot be told from one."""
    return low[-1:].isalnum() and not low.endswith("ly") and low not in _no_nouns(lexicon)


def _asked(host: Chunk, verb: str, lexicon: Lexicon) -> Answer:
    """The answer behind words that lead up to a verb: `I want to | exclude people`, `photos that | omit people`."""
    low = [word.low for word in host]
    framed = not low[0].endswith("ing") and _asking(lexicon).issuperset(low)
    if framed or lexicon.requests.match(low)[0] == len(low):
        return "yes" if verb in _PLAIN or verb == "avoid" else "maybe"
    return "maybe" if verb in _PLAIN else "no"


def _done_by(host: Chunk, after: str, lexicon: Lexicon) -> Answer:
    """The answer behind many, who may do it: `workers | remove snow`; one may doubt that `cats | ignore dogs`."""
    if after in _OWN:
        return "no"
    doer = host[-1].low in lexicon.words("mover") or host[-1].low in lexicon.words("agent")
    asked = after in lexicon.words("mover") or lexicon.requests.match([word.low for word in host])[0]
    return "no" if doer and not asked else "maybe"


@lru_cache(maxsize=1)
def _kinds(lexicon: Lexicon) -> Kinds:
    return Kinds(lexicon)


@lru_cache(maxsize=1)
def _no_nouns(lexicon: Lexicon) -> frozenset[str]:
    tables = ("preposition", "quantity", "determiner", "verb", "do", "owner", "pointer")
    return frozenset({"not", "never", "of"}).union(*(lexicon.words(table) for table in tables))


@lru_cache(maxsize=1)
def _asking(lexicon: Lexicon) -> frozenset[str]:
    return lexicon.words("request word") | lexicon.words("image") | lexicon.words("do")
