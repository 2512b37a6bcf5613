"""How far a negation reaches over the list behind it: `no dogs, cats or birds`.

The answers are pairs: whether it goes on over the next thing, and whether one may doubt that.
"""

from __future__ import annotations

from collections.abc import Sequence

from lcse_plugins.parsing.english.items import Item, is_negation, is_words, tag_at
from lcse_plugins.parsing.english.phrases import Phrases

__all__ = ["group_goes_on", "negation_goes_on"]

Answer = tuple[bool, bool]
_DO = frozenset({"do", "does", "did"})
_INFINITIVES = frozenset({"have", "contain", "show", "include", "feature"})
_TRADES = frozenset({"instead", "rather", "apart", "aside", "other", "besides"})
_STOPS, _GOES_ON = (False, False), (True, False)


def negation_goes_on(items: Sequence[Item], cue: int, at: int, phrases: Phrases) -> Answer:
    """Whether the negation at `cue` goes on over the thing behind the joint `at`."""
    joint, thing = items[at], items[at + 1].words
    kind, first = items[cue].tag, items[cue + 1].words
    if joint.tag == "nor":
        return _GOES_ON
    if joint.tag == "list":
        return _list_goes_on(items, cue, at, phrases)
    if joint.strong and joint.words[0].low == "plus":  # "dogs minus cats plus birds"
        return _STOPS
    if joint.framed:  # "that does not ring or have a screen"
        infinitive = joint.words[-1].low in _INFINITIVES and items[cue].words[0].low in _DO
        return joint.tag == "or" and infinitive, False
    if phrases.framed(thing):
        return _STOPS
    if (doubt := _negates_anew(items, cue, at, phrases)) is not None:
        return False, doubt
    contested = is_negation(items, at + 2)  # "no collar or leash that is not black"
    if phrases.verbal(thing) and phrases.governor(first) is None and not phrases.verbal(first):
        apart = joint.tag == "and"  # "a man without a helmet and riding a bike"
        return not apart, not apart or kind == "not" or cue == 0
    if phrases.determined(thing):
        if kind == "no":
            return joint.tag == "or", joint.tag == "or"
        like_first = phrases.determined(first)
        return joint.tag != "and" or like_first, contested or joint.tag == "and" or not like_first
    if joint.tag != "and":
        return True, contested or _is_parallel(items, cue, at)
    if phrases.maybe_verbal(thing) and phrases.determined(first):
        return False, True  # "a cook without a hat and chopping onions"
    doubt = kind == "no" or phrases.maybe_verbal(thing) or (kind == "not" and phrases.verbal(first))
    doubt |= phrases.described(thing) > phrases.described(first)  # "a beach without people and blue sky"
    if kind == "not" and phrases.adjectival(first) and not phrases.adjectival(thing):
        return False, doubt  # "bottles that are not open and glasses"
    alike = kind != "no" or phrases.described(thing) <= phrases.described(first)
    return alike and (phrases.governor(thing) is None or phrases.governor(first) is not None), doubt


def _list_goes_on(items: Sequence[Item], cue: int, at: int, phrases: Phrases) -> Answer:
    """Whether the negation at `cue` goes on over a thing behind a mere comma.

    A verb governs all that it lists: `avoid people, cars, text`. Behind `no` or `without` a bare thing may be of the
    list or a wish by itself: `no people, cars`. In a row of keywords it is a wish: `beach, no people, sunset`.
    """
    negation, first, thing = items[cue], items[cue + 1].words, items[at + 1].words
    closed = any(items[place].tag in ("or", "and", "nor") for place in range(cue, at))
    if closed or phrases.framed(thing) or phrases.stated(thing) or phrases.verbal(thing) or not phrases.simple(thing):
        return _STOPS
    if negation.order:
        single = not cue and at == 2 and tag_at(items, 4) != "list" and not phrases.determined(thing)
        alike = phrases.plural(first[-1].low) and phrases.plural(thing[-1].low)  # unlike "skip people, beach"
        doubt = phrases.described(thing) or (single and not alike)
        return phrases.determined(thing) <= phrases.determined(first), doubt
    if negation.tag == "not" or negation.words[0].low in _TRADES or phrases.determined(thing):
        return _STOPS
    keyword = items[cue - 1].words[:1] if tag_at(items, cue - 1) == "weak and" else []
    alike = not keyword or keyword[0].low != "," or (phrases.plural(first[-1].low) and phrases.plural(thing[-1].low))
    return False, alike and phrases.described(thing) <= phrases.described(first)


def _negates_anew(items: Sequence[Item], cue: int, at: int, phrases: Phrases) -> bool | None:
    """None when the thing behind the joint has no negation of its own; else whether one may doubt that it has.

    It has one in `a dog without a cat or | a cat without a dog`, not in `no dogs or | cats and no birds`.
    """
    clear = phrases.determined(items[at + 1].words)
    if is_negation(items, at + 2):
        if tag_at(items, at + 2) in ("not", "not both"):
            return True if items[at].tag == "and" else None
        host = items[cue - 1].words if is_words(items, cue - 1) else []
        if items[at].tag == "or" and not clear and (not host or phrases.determined(host)):
            return None  # "a dog with no collar or leash without a tag"
        return not host or (items[at].tag != "weak or" and not (clear and phrases.determined(host)))
    if items[at].tag == "and":
        return None
    if items[at].tag == "weak or" and tag_at(items, at + 2) in ("and", "but", "weak and"):
        return not clear if is_negation(items, at + 3) else None
    return False if clear and _is_parallel(items, cue, at) else None


def _is_parallel(items: Sequence[Item], cue: int, at: int) -> bool:
    """Whether both things are joined alike to a negation: `a cat and no dog or a bird and no fish`."""
    return tag_at(items, cue - 1) == tag_at(items, at + 2) in ("and", "but") and is_negation(items, at + 3)


def group_goes_on(items: Sequence[Item], at: int, phrases: Phrases, *, closed: bool) -> Answer:
    """Whether the list behind `neither` or `none of` goes on behind the joint `at`.

    Args:
        items: The row.
        at: The place of the joint, with a thing in front of it.
        phrases: What is known of phrases.
        closed: An `or` or `nor` has already led to a last thing: `neither dogs nor cats | , a park`.
    """
    if is_negation(items, at + 1):
        return _STOPS
    if not is_words(items, at + 1):
        return _GOES_ON
    joint, thing = items[at], items[at + 1].words
    if joint.tag in ("or", "nor"):
        return _GOES_ON
    if thing[0].low in ("only", "just") or phrases.verbal(thing):
        return _STOPS
    if not closed:
        return _GOES_ON
    determined = phrases.determined(thing)
    if joint.words[0].low == ",":
        return False, not determined and phrases.governor(thing) != 0
    return not determined or phrases.determined(items[at - 1].words), True
