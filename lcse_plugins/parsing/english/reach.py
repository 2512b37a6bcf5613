"""How far a negation reaches over the list behind it: `no dogs, cats or birds`.

The answers are pairs: whether it goes on over the next thing, and whether one may doubt that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lcse_plugins.parsing.english.items import Item, Tag, is_negation, is_words, tag_at
from lcse_plugins.parsing.english.phrases import Phrases
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["group_goes_on", "negation_goes_on"]

Answer = tuple[bool, bool]
_DO = frozenset({"do", "does", "did"})
_INFINITIVES = frozenset({"have", "contain", "show", "include", "feature"})
_WITHIN = frozenset({"in it", "on it", "in them", "on them", "inside", "inside it"})
_TRADES = frozenset({"instead", "rather", "apart", "aside", "other", "besides"})
_SUBJECTS = frozenset({"he", "she", "it", "they", "we", "i"})
_STOPS, _GOES_ON = (False, False), (True, False)


def negation_goes_on(items: Sequence[Item], cue: int, at: int, phrases: Phrases) -> Answer:
    """Whether the negation at `cue` goes on over the thing behind the joint `at`."""
    case = _Case(items, cue, at, phrases)
    for rule in _RULES:
        if (answer := rule(case)) is not None:
            return answer
    return _by_likeness(case)


@dataclass(frozen=True)
class _Case:
    """A negation at `cue` with the first thing of its list behind it, and a joint at `at` with the next thing."""

    items: Sequence[Item]
    cue: int
    at: int
    phrases: Phrases

    @property
    def kind(self) -> Tag:
        return self.items[self.cue].tag

    @property
    def first(self) -> Chunk:
        return self.items[self.cue + 1].words

    @property
    def joint(self) -> Item:
        return self.items[self.at]

    @property
    def thing(self) -> Chunk:
        return self.items[self.at + 1].words

    @property
    def contested(self) -> bool:
        """Whether a negation follows that may speak about the thing: `no collar or leash that is not black`."""
        return is_negation(self.items, self.at + 2)

    @property
    def richer(self) -> bool:
        """Whether the thing has an attribute where the first has none: `without people and | blue sky`."""
        return self.phrases.starts_with_attribute(self.thing) and not self.phrases.starts_with_attribute(self.first)


# ------------------------------------------------------------------------ rules: an answer, or None for no say


def _by_joint(case: _Case) -> Answer | None:
    """`no dogs nor cats`, `no dogs, cats`, `dogs minus cats | plus birds`, `does not ring | or have a screen`."""
    joint = case.joint
    if joint.tag == "nor":
        return _GOES_ON
    if joint.tag == "list":
        return _list_goes_on(case)
    if joint.strong and joint.words[0].low == "plus":
        return _STOPS
    if joint.framed:
        infinitive = joint.words[-1].low in _INFINITIVES and case.items[case.cue].words[0].low in _DO
        return joint.tag == "or" and infinitive, False
    return None


def _by_opening(case: _Case) -> Answer | None:
    """`no dogs and | there is a cat`, `he has no hat and | he is smiling`."""
    told = len(case.thing) > 1 and case.thing[0].low in _SUBJECTS
    return _STOPS if told or case.phrases.starts_with_frame(case.thing) else None


def _by_next_negation(case: _Case) -> Answer | None:
    """`a dog without a cat or | a cat without a dog`."""
    doubt = _negates_anew(case.items, case.cue, case.at, case.phrases)
    return None if doubt is None else (False, doubt)


def _by_action(case: _Case) -> Answer | None:
    """`a man without a helmet and | riding a bike`, unlike `without smiling or | waving`."""
    first, phrases = case.first, case.phrases
    if not phrases.says_action(case.thing) or phrases.says_action(first) or phrases.find_governor(first) is not None:
        return None
    if case.joint.tag == "and":
        return False, case.kind == "not" or case.cue == 0
    return True, True


def _by_place(case: _Case) -> Answer | None:
    """`a road without cars and | mountains behind it`, unlike `a table without cups and | plates on it`."""
    items, cue, phrases, thing = case.items, case.cue, case.phrases, case.thing
    place = phrases.place_at_host(thing)
    if not place or items[cue].order or phrases.find_governor(case.first) is not None:
        return None
    joined = all(item.tag == "and" and item.words[0].low != "," for item in items[cue + 2 : case.at + 1 : 2])
    if not joined or not any(phrases.content(item.words) for item in items[:cue] if item.tag == "words"):
        return None  # "a photo without people and cars in it"
    many = phrases.is_plural(case.first[-1].low) and phrases.is_plural(thing[place - 1].low)
    return many and " ".join(word.low for word in thing[place:]) in _WITHIN, True


def _by_article(case: _Case) -> Answer | None:
    """`no clouds and | a rainbow`, `without a dog and | a cat`."""
    if not case.phrases.starts_with_determiner(case.thing):
        return None
    joined = case.joint.tag == "and"
    if case.kind == "no":
        return case.joint.tag == "or", case.joint.tag == "or"
    like_first = case.phrases.starts_with_determiner(case.first)
    return not joined or like_first, case.contested or joined or not like_first


def _by_choice(case: _Case) -> Answer | None:
    """`no dogs or | cats`."""
    if case.joint.tag == "and":
        return None
    return True, case.contested or _is_parallel(case.items, case.cue, case.at)


def _by_possible_action(case: _Case) -> Answer | None:
    """`a cook without a hat and | chopping onions`."""
    apart = case.phrases.may_say_action(case.thing) and case.phrases.starts_with_determiner(case.first)
    return (False, True) if apart else None


def _by_predicate(case: _Case) -> Answer | None:
    """`bottles that are not open and | glasses`."""
    phrases = case.phrases
    if case.kind != "not" or not phrases.is_only_attributes(case.first) or phrases.is_only_attributes(case.thing):
        return None
    return False, _may_doubt_and(case)


def _by_likeness(case: _Case) -> Answer:
    """`without dogs and | cats`, unlike `no dogs and | cats on a sofa`."""
    phrases = case.phrases
    placed = phrases.find_governor(phrases.without_closing(case.thing, absent=True)) is not None
    placed &= phrases.find_governor(case.first) is None
    set_off = case.kind == "no" and (placed or case.richer)
    return not set_off, placed or _may_doubt_and(case)


_RULES: tuple[Callable[[_Case], Answer | None], ...] = (
    _by_joint, _by_opening, _by_next_negation, _by_action, _by_place, _by_article, _by_choice, _by_possible_action,
    _by_predicate,
)  # fmt: skip


def _may_doubt_and(case: _Case) -> bool:
    """Whether a mere `and` may join the thing to the wish as well as to what is absent: `no dogs and cats`."""
    acts = case.phrases.may_say_action(case.thing) or (case.kind == "not" and case.phrases.says_action(case.first))
    return case.kind == "no" or acts or case.richer


# ------------------------------------------------------------------------ commas, and negations that follow


def _list_goes_on(case: _Case) -> Answer:
    """Whether the negation goes on over a thing behind a mere comma.

    A verb governs all that it lists: `avoid people, cars, text`. Behind `no` or `without` a bare thing may be of the
    list or a wish by itself: `no people, cars`. In a row of keywords it is a wish: `beach, no people, sunset`.
    """
    items, cue, phrases, thing = case.items, case.cue, case.phrases, case.thing
    closed = any(items[place].tag in ("or", "and", "nor") for place in range(cue, case.at))
    spoken = phrases.starts_with_frame(thing) or phrases.says_present(thing) or phrases.says_action(thing)
    if closed or spoken or not phrases.is_thing(thing):
        return _STOPS
    determined = phrases.starts_with_determiner(thing)
    many = phrases.is_plural(case.first[-1].low) and phrases.is_plural(thing[-1].low)
    if items[cue].order:
        single = not cue and case.at == 2 and tag_at(items, 4) != "list" and not determined
        doubt = phrases.starts_with_attribute(thing) or (single and not many)  # "skip people, beach"
        return not determined or phrases.starts_with_determiner(case.first), doubt
    if case.kind == "not" or items[cue].words[0].low in _TRADES or determined:
        return _STOPS
    in_keywords = tag_at(items, cue - 1) == "weak and" and [word.low for word in items[cue - 1].words[:1]] == [","]
    return False, (many or not in_keywords) and not case.richer


def _negates_anew(items: Sequence[Item], cue: int, at: int, phrases: Phrases) -> bool | None:
    """None when the thing behind the joint has no negation of its own; else whether one may doubt that it has.

    It has one in `a dog without a cat or | a cat without a dog`, not in `no dogs or | cats and no birds`.
    """
    clear = phrases.starts_with_determiner(items[at + 1].words)
    if is_negation(items, at + 2):
        if tag_at(items, at + 2) in ("not", "not both"):
            return True if items[at].tag == "and" else None
        host = items[cue - 1].words if is_words(items, cue - 1) else []
        if items[at].tag == "or" and not clear and (not host or phrases.starts_with_determiner(host)):
            return None  # "a dog with no collar or leash without a tag"
        return not host or (items[at].tag != "weak or" and not (clear and phrases.starts_with_determiner(host)))
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
    if thing[0].low in ("only", "just") or phrases.says_action(thing):
        return _STOPS
    if not closed:
        return _GOES_ON
    determined = phrases.starts_with_determiner(thing)
    if joint.words[0].low == ",":
        return False, not determined and phrases.find_governor(thing) != 0
    return not determined or phrases.starts_with_determiner(items[at - 1].words), True
