"""What `and`, `or` and commas join in an English query: things in a list, or words of one description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from lcse_plugins.parsing.english.items import GROUPS, NEGATIONS, Item, Tag, is_negation, is_words, negation_of, tag_at
from lcse_plugins.parsing.english.phrases import Phrases
from lcse_plugins.parsing.english.words import Chunk

__all__ = ["join_attributes", "join_or_describe", "read_commas"]

_ONLY = frozenset({"only", "just"})
_BE = frozenset({"is", "are", "was", "were", "be", "been"})
_FAR = 20
_NARROWING = frozenset({"preferably", "ideally", "specifically", "namely", "maybe", "perhaps", "possibly", "like"})


def join_attributes(items: list[Item], phrases: Phrases) -> list[Item]:
    """Make one operand of attributes and the noun that they share: `no red and white flowers`, `a tall, slim man`.

    Only beside a negation or a group, where a part of the operand would be taken for all of it.
    """
    if not any(is_negation(items, at) or item.tag in (*GROUPS, "absent") for at, item in enumerate(items)):
        return items
    out: list[Item] = []
    at = 0
    while at < len(items):
        end = _end_of_attributes(items, at, phrases)
        last = items[end].words
        if end > at and phrases.starts_with_attribute(last) and not phrases.is_only_attributes(last):
            out.append(_attributed(items[at : end + 1], phrases))
            at = end + 1
        else:
            out.extend(items[at : max(end, at + 1)])
            at = max(end, at + 1)
    return out


def _end_of_attributes(items: Sequence[Item], at: int, phrases: Phrases) -> int:
    """Where the row of attributes ends that begins here, its noun included; `at` when there is none.

    There is none in `bottles that are not | open and green glasses`, and in `no | red and a blue ball`.
    """
    end = at
    if tag_at(items, at - 1) == "not" and any(word.low in _BE for word in items[at - 1].words):
        return at
    while is_words(items, end) and tag_at(items, end + 1) in ("and", "comma") and is_words(items, end + 2):
        this = items[end].words if end > at else phrases.last_thing(items[end].words)
        following = items[end + 2].words
        anew = phrases.starts_with_determiner(following) and not phrases.starts_with_determiner(this)
        if items[end + 1].framed or anew or not phrases.takes_noun_of_next(this, following):
            break
        end += 2
    return end


def _attributed(run: Sequence[Item], phrases: Phrases) -> Item:
    """A row of attributes and their noun as one operand, in which the joints are known for what they are."""
    shared = phrases.is_only_attributes(run[0].words)  # unlike "a man in a red | and blue shirt"
    words = list(run[0].words)
    for joint, item in zip(run[1::2], run[2::2], strict=True):
        words += [word._replace(kind="joint") if shared else word for word in joint.words]
        words += item.words
    loose = not phrases.starts_with_determiner(words) and all(joint.tag == "comma" for joint in run[1::2])
    return replace(run[0], words=words, doubtful=loose or any(item.doubtful for item in run))


def join_or_describe(items: list[Item], phrases: Phrases) -> list[Item]:
    """Things joined by `and` are logic when each is a thing by itself; otherwise the row is a description."""
    out: list[Item] = []
    at = 0
    reached = False
    while at < len(items):
        before = tag_at(out, len(out) - 1)
        reached = before in NEGATIONS or (reached and before in ("words", "or", "nor"))  # "no cars or | buses, trees"
        scoped = reached or before in GROUPS
        end = at
        while _row_goes_on(items, end, before, phrases):
            end += 2
        if scoped or end == at or not is_words(items, at):
            if scoped and end > at:
                out.extend(items[at : end + 1])
                at = end + 1
            else:
                out.append(items[at])
                at += 1
            continue
        run = items[at : end + 1]
        chosen = tag_at(items, end + 1) == "or" and _lists_sorts(run, phrases)
        out.extend(run if chosen else _glued(run, phrases))
        at = end + 1
    return out


def _row_goes_on(items: Sequence[Item], at: int, before: str, phrases: Phrases) -> bool:
    """Whether a joint and a thing follow the thing at `at`; not in `a car, red or blue, | parked in a street`."""
    if not is_words(items, at) or tag_at(items, at + 1) not in ("and", "comma") or not is_words(items, at + 2):
        return False
    return before != "or" or not (phrases.says_sort(items[at].words) and phrases.sets_scene(items[at + 2].words))


def _lists_sorts(run: list[Item], phrases: Phrases) -> bool:
    """Whether commas alone list attributes, of a thing in front or of one to come: `red, blue` (or green cars)."""
    listed = all(joint.tag == "comma" for joint in run[1::2])
    return listed and all(phrases.is_only_attributes(item.words) for item in run[2::2])


def _glued(run: list[Item], phrases: Phrases) -> list[Item]:
    """The row as it is when it lists things, as one operand when it describes."""
    chunks = [item.words for item in run[::2]]
    if all(phrases.is_thing(chunk) for chunk in chunks):
        loose = any(
            phrases.takes_noun_of_next(left, right)
            or (phrases.has_of(left) and not phrases.starts_with_determiner(right))
            for left, right in pairwise(chunks)
        ) or any(
            joint.tag == "comma" and right[0].low == "with" for joint, right in zip(run[1::2], chunks[1:], strict=True)
        )
        if not loose:
            run[0].doubtful |= any(_may_be_name(left, right) for left, right in pairwise(chunks))
            return run
    out = [Item("words", list(run[0].words))]
    for joint, item in zip(run[1::2], run[2::2], strict=True):
        framed = joint.tag == "and" and (joint.framed or phrases.starts_with_frame(item.words))
        strong = joint.strong and all(map(phrases.is_plain_description, (out[-1].words, item.words)))
        if strong or (framed and (phrases.starts_with_frame(out[-1].words) or phrases.is_thing(out[-1].words))):
            out += [joint, Item("words", list(item.words))]
        else:
            out[-1].words.extend((*joint.words, *item.words))
    return out


def _may_be_name(left: Chunk, right: Chunk) -> bool:
    """Whether two things may be one name: `Harley and Davidson museum`."""
    return len(left) == 1 < len(right) and left[0].capital and right[0].capital


def _balanced(items: Sequence[Item], at: int) -> bool:
    """Whether `or` stands between two contrasts: `a cat but no dog or a dog but no cat`."""
    left = tag_at(items, at - 3) == "but" and is_negation(items, at - 2) and is_words(items, at - 1)
    return left and is_words(items, at + 1) and tag_at(items, at + 2) == "but" and is_negation(items, at + 3)


def read_commas(items: list[Item], phrases: Phrases) -> list[Item]:
    """Say of every comma what it stands for: `and`, `or`, a weaker `and` or `or`, or nothing but a list."""
    out = list(items)
    for at in range(len(items) - 1, -1, -1):
        item = out[at]
        if item.tag == "or" and _balanced(out, at):
            item.tag = "weak or"
        elif item.tag == "nor" and is_negation(out, at + 1):  # "no dogs nor without cats"
            out[at] = Item("and", item.words)
        elif item.tag in ("and", "or") and item.comma:
            serial = tag_at(out, at - 1) == "words" and tag_at(out, at - 2) == "comma"
            if not serial:
                item.tag = "weak and" if item.tag == "and" else "weak or"
        elif item.tag == "comma" and is_words(out, at + 1):
            closing = tag_at(out, at + 2) if out[at + 1].words[0].low not in _ONLY else ""  # ", only birds or fish"
            if closing == "or":
                out[at] = Item(_before_choice(out, at, phrases), item.words)
            else:
                out[at] = Item(closing if closing in ("and", "nor") else "list", item.words)
        elif item.tag == "comma":
            out[at] = Item("weak and", item.words)
    return out


def _before_choice(items: list[Item], at: int, phrases: Phrases) -> Tag:
    """What the comma in front of a choice stands for: `cats, | dogs or birds`, `a dress, | red or blue`.

    Where one may doubt it, that is noted at the first alternative.
    """
    head, first = items[at - 1].words if is_words(items, at - 1) else [], items[at + 1]
    if not head or phrases.says_sort(head):
        return "or"
    choice = [first.words]
    for place in range(at + 2, at + 2 * _FAR, 2):
        if tag_at(items, place) != "or" or not is_words(items, place + 1):
            break
        choice.append(items[place + 1].words)
    describes, doubtful = _describe(head, choice, phrases)
    negated = negation_of(items, at - 1) is not None  # "no cats, black or white"
    items[at + 1] = replace(first, doubtful=first.doubtful or doubtful or (describes and negated))
    return "weak and" if describes and not negated else "or"


def _describe(head: Chunk, choice: Sequence[Chunk], phrases: Phrases) -> tuple[bool, bool]:
    """Whether the choice says which sort of the head is meant, and whether one may doubt that it does or does not."""
    first, last = choice[0], choice[-1]
    if first[0].low in _NARROWING:  # "a bird, preferably a robin or a sparrow"
        return True, True
    if all(map(phrases.says_sort, choice)):
        return True, any(map(phrases.names_stuff, choice))
    if phrases.says_sort(first) and not phrases.names_stuff(first):  # "a kitchen, modern or farmhouse"
        return not phrases.starts_with_attribute(last), True  # unlike "trucks, red or blue cars"
    rich = all(map(phrases.starts_with_attribute, (first, last))) and not phrases.starts_with_attribute(head)
    return False, rich and not phrases.starts_with_determiner(first)  # "a woman, red dress or blue dress"
