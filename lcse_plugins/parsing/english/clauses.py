"""Settle what each operator of an English query joins, before the tree is built.

A word that could be logic is often not: `both sides`, `small but fast`, `a man and a woman riding bikes`. The steps
below turn such operators back into words, give stray words to the phrase they speak about, and say of every comma
what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from lcse_plugins.errors import QueryTooComplex
from lcse_plugins.parsing.english.attachment import end_keywords, give_back, give_to_pictures
from lcse_plugins.parsing.english.coordination import join_attributes, join_or_describe, read_commas
from lcse_plugins.parsing.english.items import GROUPS, Item, Tag, is_negation, is_paired, is_words, negation_of, tag_at
from lcse_plugins.parsing.english.phrases import Phrases

__all__ = ["settle"]

_BREAKS: frozenset[Tag] = frozenset({"but", "stop"})
_PARENTHESES: frozenset[Tag] = frozenset({"open", "close"})
_REMARK: frozenset[Tag] = frozenset({"open", "close", "words", "comma"})
_MAX_GROUPS = 40
_FAR = 60


def settle(items: list[Item], phrases: Phrases) -> list[Item]:
    """The items with every operator either certain or turned into words."""
    items = _parentheses(items, phrases)
    items = _commas_before(items)
    items = _some_of_many(_groups(items, phrases), phrases)
    items = join_attributes(items, phrases)
    items = _absence(items, phrases)
    items = _contrast(items, phrases)
    items = _exceptions(items, phrases)
    items = _permissions(items, phrases)
    items = give_to_pictures(items, phrases)
    items = give_back(end_keywords(items, phrases), phrases)
    return read_commas(join_or_describe(items, phrases), phrases)


def _merged(items: Sequence[Item]) -> list[Item]:
    """Neighbouring operands as one."""
    out: list[Item] = []
    for item in items:
        if item.tag != "words" or item.negated:
            out.append(item)
        elif is_words(out, len(out) - 1):
            out[-1].words.extend(item.words)
            out[-1].doubtful |= item.doubtful
        else:
            out.append(Item("words", list(item.words), doubtful=item.doubtful))
    return out


def _parentheses(items: list[Item], phrases: Phrases) -> list[Item]:
    """Keep parentheses that group logic; a negated remark becomes a clause, any other remark is words.

    Pairs around a whole operand group nothing and are dropped: `a dog or ((a cat))`. So is a request in front of a
    group: `show me (a dog or a cat) and no person`.
    """
    if not any(item.tag in _PARENTHESES for item in items):
        return items
    out: list[Item | None] = list(items)
    operands = list(accumulate((item.tag not in _PARENTHESES for item in items), initial=0))
    operators = list(accumulate((item.tag not in _REMARK for item in items), initial=0))
    kept = remark = 0
    for first, last in _pairs(items):
        if first < remark:
            continue
        logic = operators[last] > operators[first]
        requested = is_words(items, first - 1) and not phrases.content(items[first - 1].words)
        before = tag_at(items, first - 1) not in ("words", "close") or requested
        apart = before and tag_at(items, last + 1) not in ("words", "open")
        if logic and apart:
            kept += 1
            if requested:
                out[first - 1] = None
        elif is_negation(items, first + 1) or tag_at(items, first + 1) in ("but", "exclusive"):
            out[first], out[last] = Item("comma", items[first].words), Item("comma", items[last].words)
        elif apart and operands[last] - operands[first] == 1:
            out[first] = out[last] = None
        else:
            remark = last
            for place in range(first, last + 1):
                out[place] = Item("words", items[place].words)
    if kept > _MAX_GROUPS:
        raise QueryTooComplex(f"the query has more than {_MAX_GROUPS} groups in parentheses; write it flatter")
    return _merged([item for item in out if item is not None])


def _pairs(items: Sequence[Item]) -> list[tuple[int, int]]:
    """Where parentheses that belong together stand, by the first of each."""
    opened: list[int] = []
    pairs: list[tuple[int, int]] = []
    for at, item in enumerate(items):
        if item.tag == "open":
            opened.append(at)
        elif item.tag == "close" and opened:
            pairs.append((opened.pop(), at))
    return sorted(pairs)


def _commas_before(items: list[Item]) -> list[Item]:
    """A comma in front of `and` or `or` is noted there; in front of other joints it says nothing."""
    out: list[Item] = []
    for at, item in enumerate(items):
        after = tag_at(items, at + 1)
        if item.tag == "comma" and after in ("and", "or", "but", "nor", "stop", "exclusive", "comma", "close", ""):
            continue
        if out and item.tag in ("and", "or") and out[-1].tag == item.tag:
            continue  # "and and"
        comma = item.tag in ("and", "or") and tag_at(items, at - 1) == "comma"
        out.append(replace(item, words=[*items[at - 1].words, *item.words], comma=True) if comma else item)
    return out


def _groups(items: list[Item], phrases: Phrases) -> list[Item]:
    """`both` without `and`, `either` without `or` are words; `not both` at the end means `but not both`."""
    out: list[Item] = []
    for at, item in enumerate(items):
        if item.tag == "stop" and tag_at(items, at - 1) in (*GROUPS, "neither", "not both"):
            continue
        tag = _group_tag(items, at, phrases) if item.tag in ("not both", "exclusive", *GROUPS) else item.tag
        out.append(item if tag == item.tag else replace(item, tag=tag))
    return _merged(out)


def _group_tag(items: Sequence[Item], at: int, phrases: Phrases) -> Tag:
    """What the mark of a group at `at` is, by what follows it."""
    mark, ahead = items[at], _ahead(items, at, phrases)
    joined = "and" in ahead
    if is_paired(mark):
        joined = "or" in ahead
    elif mark.tag in ("either", "exactly one"):
        joined |= "or" in ahead or "comma" in ahead
    if mark.words[-1].low == "of" and is_words(items, at + 1):  # "one of the men is …"
        joined &= phrases.is_thing(items[at + 1].words)
    led = ahead[:1] == ["words"]
    if mark.tag == "exclusive":
        return "not both" if joined and led else "exclusive"
    if joined:
        return mark.tag
    if mark.tag == "not both":
        return "not" if led else "exclusive"
    return "words"


def _ahead(items: Sequence[Item], at: int, phrases: Phrases) -> list[Tag]:
    """The tags of what the group at `at` may join, as far as a list goes.

    An `and` in front of a negation, or between some of many and a thing by itself, is no joint of an alternative:
    `any of the cats | and no dogs`, `one of the players | and a referee`.
    """
    many = items[at].tag == "either" and is_words(items, at + 1) and phrases.is_definite_plural(items[at + 1].words)
    tags: list[Tag] = []
    for place in range(at + 1, min(at + 1 + _FAR, len(items))):
        tag = items[place].tag
        if tag in _BREAKS and tags:
            break
        tags.append("words" if tag == "and" and many and _begins_anew(items, place + 1, phrases) else tag)
    return tags


def _begins_anew(items: Sequence[Item], at: int, phrases: Phrases) -> bool:
    """Whether a negation, or a thing with its own article, stands here."""
    return is_negation(items, at) or (is_words(items, at) and phrases.starts_with_determiner(items[at].words))


def _some_of_many(items: list[Item], phrases: Phrases) -> list[Item]:
    """Doubt a negation that speaks of some of the things in front only: `two men, one | without a hat`."""
    out = list(items)
    for at in range(1, len(items)):
        led = is_negation(items, at) and is_words(items, at - 1)
        if led and phrases.names_some(items[at - 1].words, apart=at > 1):
            out[at] = replace(items[at], doubtful=True)
    return out


def _absence(items: list[Item], phrases: Phrases) -> list[Item]:
    """`dogs and cats are absent`: the things in front are negated."""
    out: list[Item] = []
    for item in items:
        hosted = is_words(items, 0) and len(out) > 1 and out[-1].negated and is_words(out, len(out) - 2)
        if hosted and item.tag == "words" and phrases.starts_with_predicate(item.words):  # "… is on a plate"
            out[-2].words.extend(item.words)
            continue
        if item.tag != "absent":
            out.append(item)
            continue
        many = item.words[0].low in ("are", "were")
        at = len(out) - 1
        about, thing = phrases.split_possession(out[at].words) if is_words(out, at) else ([], [])
        if phrases.content(about):  # "a pizza with a slice missing"
            out[at:] = [Item("words", about), Item("words", thing, negated=True)]
            continue
        while at >= 0 and out[at].tag == "words":
            out[at] = Item("words", out[at].words, negated=True)
            before = tag_at(out, at - 1)
            alike = is_words(out, at - 2) and phrases.is_thing(out[at - 2].words) and negation_of(out, at - 2) is None
            if not (many and before in ("and", "comma") and alike and not phrases.says_present(out[at - 2].words)):
                break
            if phrases.starts_with_frame(out[at].words):  # "a beach, make sure that people (are not in it)"
                break
            at -= 2
    return out


def _contrast(items: list[Item], phrases: Phrases) -> list[Item]:
    """`but` without a negation on either side contrasts nothing; `not only … but` adds, `all … but` excludes."""
    out = list(items)
    for at, item in enumerate(items):
        if item.tag != "but":
            continue
        left = _until(items, at, -1)
        right = _until(items, at, 1)
        if any(is_negation(part, place) for part in (left, right) for place in range(len(part))):
            continue
        said = [word.low for part in left if part.tag == "words" for word in phrases.without_request(part.words)]
        excludes = bool(said) and phrases.means_all(said[0])
        tag: Tag = "and" if said[:1] == ["not"] else "without" if excludes else "words"
        out[at] = Item(tag, item.words, framed=item.framed)
    return _merged(out)


def _exceptions(items: list[Item], phrases: Phrases) -> list[Item]:
    """What a negation leaves out is affirmed: `no animals except dogs`, `an empty room except for a chair`."""
    out = list(items)
    for at, item in enumerate(items):
        excepted = item.tag == "without" and phrases.means_except(item.words[0].low)
        if excepted and at == 0 and tag_at(items, 2) == "comma":
            framed = is_words(items, 3) and not phrases.content(items[3].words)
            if is_negation(items, 4 if framed else 3):  # "apart from a dog, there are no animals"
                out[at] = Item("but", item.words)
        if not excepted or not is_words(items, at - 1):
            continue
        alone = not phrases.is_plural(items[at - 1].words[-1].low) or (
            is_words(items, at + 1) and phrases.starts_with_determiner(items[at + 1].words)
        )
        if tag_at(items, at - 2) in ("no", "without", "neither") or (alone and phrases.says_empty(items[at - 1].words)):
            out[at] = Item("but", item.words)
    return out


def _permissions(items: list[Item], phrases: Phrases) -> list[Item]:
    """Beside a negation, what is only allowed is not asked for: `no people | but dogs are fine`."""
    out: list[Item] = []
    for item in items:
        joined = tag_at(out, len(out) - 1) in ("but", "comma", "stop", "and")
        thing = phrases.permitted_thing(item.words) if joined and item.tag == "words" and not item.negated else []
        if thing and phrases.is_thing(thing) and any(is_negation(out, place) for place in range(len(out))):
            out.pop()
        else:
            out.append(item)
    return out


def _until(items: Sequence[Item], at: int, step: int) -> list[Item]:
    """The items on one side, as far as the next contrast or sentence end."""
    part: list[Item] = []
    place = at + step
    while 0 <= place < len(items) and items[place].tag not in _BREAKS:
        part.append(items[place])
        place += step
    return part if step > 0 else part[::-1]
