"""Whether a cue means what it says, by the words around it: `no dogs`, and not `no bigger than a dog`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from lcse_plugins.parsing.english.lexicon import Lexicon
from lcse_plugins.parsing.english.names import means_none

__all__ = ["Answer", "means_it"]

Answer = Literal["yes", "maybe", "no"]
"""Whether words mean what they say here."""

_MODALS = frozenset({"can", "could", "will", "would", "may", "might"})


class _Cue(NamedTuple):
    """A cue in its row of words, and its neighbours; a neighbour outside the row is an empty text."""

    low: Sequence[str]
    at: int
    length: int
    before: str
    after: str
    further: str
    lexicon: Lexicon


def means_it(low: Sequence[str], at: int, length: int, lexicon: Lexicon) -> bool:
    """Whether the cue of some words at `at` is one here, as far as its last word tells."""
    last = low[at + length - 1]
    rule = _RULES.get(last)
    if rule is None:
        return True
    before = low[at - 1] if at else ""
    after, further = (low[place] if place < len(low) else "" for place in (at + length, at + length + 1))
    return rule(_Cue(low, at, length, before, after, further, lexicon))


def _compares(cue: _Cue) -> bool:
    """`no bigger than a cat`, `not smaller than …`."""
    return cue.after.endswith("er") and cue.further == "than"


def _no(cue: _Cue) -> bool:
    """Not in `no the dog`, `No. 5`, `no 5`; longer cues, as `with no`, always negate."""
    if _compares(cue):
        return False
    numbered = cue.after[:1].isdigit() or (cue.after == "." and cue.further.isdigit())
    return cue.length > 1 or (cue.after not in cue.lexicon.words("article") and not numbered)


def _not(cue: _Cue) -> bool:
    """Not in `not to mention`, `not sure`, `it can not`."""
    if _compares(cue) or cue.after in ("to", "certain", "sure"):
        return False
    return cue.length > 1 or cue.before not in _MODALS


def _hold_the(cue: _Cue) -> bool:
    """A burger, `hold the onions`; not `people who hold the flag`."""
    if cue.low[cue.at] != "hold":
        return True
    return cue.before not in ("to", "they", "we", "who", "that") and 0 < cue.at < 5


def _of(cue: _Cue) -> bool:
    """Not in `none of them`, `both of which`."""
    return cue.after not in ("which", "whom", "them", "us", "it")


def _ignoring(cue: _Cue) -> bool:
    """`cars, ignoring trucks`; not `a man on a bench, ignoring his phone`."""
    return not cue.before or (cue.before == "," and cue.after not in cue.lexicon.words("quantity"))


def _nobody(cue: _Cue) -> bool:
    """`nobody on the beach`; not `a nobody in a suit`."""
    return cue.length > 1 or cue.before != "a"


def _see(cue: _Cue) -> bool:
    """`do not see dogs`; not `leggings, not see through`."""
    return cue.after != "through"


def _zero(cue: _Cue) -> bool:
    return means_none(cue.low, cue.at, cue.lexicon)


def _missing(cue: _Cue) -> bool:
    """`a face missing an eye`; not `a missing dog`, `missing for days`, and not at the end."""
    if cue.after in cue.lexicon.words("preposition"):
        return False
    return cue.length > 1 or (cue.before not in cue.lexicon.words("quantity") and bool(cue.after))


def _calculates(cue: _Cue) -> bool:
    """`dogs minus cats`; not `minus 5 degrees`."""
    return bool(cue.before) and not cue.after[:1].isdigit()


def _nought(cue: _Cue) -> bool:
    return cue.after.isalpha()


def _stands_between(cue: _Cue) -> bool:
    """`cats & dogs`; not at an end."""
    return bool(cue.before and cue.after)


def _follows(cue: _Cue) -> bool:
    """`a dog while no cat …`; not `while walking …`."""
    return bool(cue.before)


_RULES: Mapping[str, Callable[[_Cue], bool]] = {
    "no": _no, "not": _not, "the": _hold_the, "of": _of, "ignoring": _ignoring,
    "see": _see, "nobody": _nobody, "zero": _zero, "missing": _missing,
    "0": _nought,
    **dict.fromkeys(("minus", "plus"), _calculates),
    **dict.fromkeys(("&", "+", "n"), _stands_between),
    **dict.fromkeys(("while", "though", "although", "yet", "however", "whereas"), _follows),
}  # fmt: skip
"""The rule for a cue, by its last word."""
